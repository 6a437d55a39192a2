//! The request that a worker carries out, and the signature that shows who asked.
//!
//! Permissions of NATS do not keep a request in its pool: a server sends answers of its API to any subject that the asker
//! names. So the request names its pool and its operation itself, and workers with keys take signed ones only.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use nkeys::KeyPair;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::names::Pool;

/// A call of a tool. The worker plans it with its own tool files, as it would a client's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub pool: String,
    pub operation: String,
    pub owner: String,
    /// None for the local user of the front end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The session it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Name that the client's program gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// Directory that the front end works in, to which paths in the arguments refer.
    pub scope: String,
    /// The command on one short line, as the front end understands the call.
    pub command: String,
    /// The directory it runs in, as the front end understands it.
    #[serde(default)]
    pub directory: String,
    /// It is meant to run until it is cancelled.
    #[serde(default)]
    pub keeps_running: bool,
    /// Time of the call, in seconds since 1970.
    pub issued_at: u64,
}

/// A request as it was written, and its signature.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedRequest {
    /// The request as JSON; a signature covers bytes, not meaning.
    pub request: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// Signs the requests of a front end.
pub struct Signer(KeyPair);

/// Public keys of the front ends that a worker listens to.
#[derive(Debug, Clone, Default)]
pub struct RequestKeys {
    /// Empty: requests need no signature.
    keys: Vec<String>,
}

/// Reason why a worker does not carry a request out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    #[error("the request cannot be read: {0}")]
    Unreadable(String),
    #[error("the request is not signed, and this worker takes signed requests only")]
    Unsigned,
    #[error("the request is not signed by a front end that this worker knows")]
    UnknownSigner,
    #[error("the request was made for another pool or another operation")]
    Misdirected,
    #[error("the request is {0} s old, which is more than the queue keeps")]
    TooOld(u64),
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer")
    }
}

impl Signer {
    /// The signer with this seed, which is a secret.
    pub fn from_seed(seed: &str) -> Result<Self, nkeys::error::Error> {
        KeyPair::from_seed(seed.trim()).map(Self)
    }

    fn sign(&self, text: &str) -> Option<String> {
        let signature = self.0.sign(text.as_bytes()).ok()?;
        Some(STANDARD.encode(signature))
    }
}

impl RequestKeys {
    pub fn new(keys: Vec<String>) -> Self {
        Self { keys }
    }

    /// True if requests need no signature.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn check(&self, signed: &SignedRequest) -> Result<(), BadRequest> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let signature = signed.signature.as_deref().ok_or(BadRequest::Unsigned)?;
        let signature = STANDARD
            .decode(signature)
            .map_err(|_| BadRequest::UnknownSigner)?;
        let is_by = |key: &String| {
            KeyPair::from_public_key(key)
                .is_ok_and(|key| key.verify(signed.request.as_bytes(), &signature).is_ok())
        };
        match self.keys.iter().any(is_by) {
            true => Ok(()),
            false => Err(BadRequest::UnknownSigner),
        }
    }
}

impl Request {
    pub fn sign(&self, signer: Option<&Signer>) -> SignedRequest {
        let request = serde_json::to_string(self).unwrap_or_default();
        SignedRequest {
            signature: signer.and_then(|signer| signer.sign(&request)),
            request,
        }
    }

    /// Seconds since 1970.
    pub fn now() -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, |since| since.as_secs())
    }
}

impl SignedRequest {
    /// The request without a look at its signature: for showing it.
    pub fn read(&self) -> Result<Request, BadRequest> {
        serde_json::from_str(&self.request).map_err(|error| BadRequest::Unreadable(error.to_string()))
    }

    /// The request, if it is one that a worker of `pool` may carry out as this operation.
    pub fn verified(
        &self,
        keys: &RequestKeys,
        pool: &Pool,
        (owner, operation): (&str, &str),
        now: u64,
    ) -> Result<Request, BadRequest> {
        /// As long as the queue keeps a job, and five minutes for clocks that differ.
        const MAX_AGE_SECONDS: u64 = 3_600 + 300;

        keys.check(self)?;
        let request = self.read()?;
        if request.pool != pool.as_str() || request.operation != operation || request.owner != owner {
            return Err(BadRequest::Misdirected);
        }
        let age = now.saturating_sub(request.issued_at);
        if age > MAX_AGE_SECONDS {
            return Err(BadRequest::TooOld(age));
        }
        Ok(request)
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
