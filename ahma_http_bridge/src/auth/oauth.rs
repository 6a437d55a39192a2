//! JWTs of an OAuth authorization server, as the MCP authorization specification has it: the bridge is a
//! resource server. When the issuer's keys cannot be fetched, every client is refused.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ahma_common::loopback::is_loopback_host;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use parking_lot::Mutex;
use serde::Deserialize;

use super::{Principal, Role};

#[derive(Debug, Clone)]
pub struct OAuthSettings {
    /// The issuer, exactly as its tokens name it.
    pub issuer: String,
    /// The address of this server as clients know it; tokens must be meant for it.
    pub resource: String,
    /// Scopes every token must have.
    pub required_scopes: Vec<String>,
    /// A token with this scope is an operator's.
    pub operator_scope: Option<String>,
    /// A token with this scope may read the metrics, and nothing else.
    pub metrics_scope: Option<String>,
}

/// Asymmetric algorithms only: with a symmetric one, a party that can check a token can make one.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

const KEYS_FRESH_FOR: Duration = Duration::from_secs(600);
/// A token with an unknown key may ask for the keys again, but not more often than this.
const KEYS_ASKED_EVERY: Duration = Duration::from_secs(2);
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
const CLOCK_LEEWAY_SECONDS: u64 = 30;
const NO_SUBJECT: &str = "the token names no client";

#[derive(Debug)]
pub(crate) struct OAuth {
    settings: OAuthSettings,
    /// Sessions that one client may have.
    max_sessions: usize,
    http: reqwest::Client,
    keys: Mutex<Option<Keys>>,
    /// Time of the last failed request for the keys, if none has succeeded since.
    asked_in_vain: Mutex<Option<Instant>>,
    /// Held while fetching, so that a crowd of clients asks the issuer once.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct Keys {
    set: Arc<JwkSet>,
    fetched: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OAuthError {
    /// The token is no good, and why, for the client.
    Invalid(&'static str),
    /// The token lacks these scopes.
    Scopes(String),
    /// The issuer's keys cannot be had.
    IssuerUnreachable,
}

#[derive(Debug, Deserialize)]
struct Claims {
    /// A list would do for the library.
    #[expect(
        dead_code,
        reason = "read for its type; its value is checked with the signature"
    )]
    iss: Option<String>,
    sub: Option<String>,
    client_id: Option<String>,
    scope: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl OAuth {
    pub(crate) fn new(settings: OAuthSettings, max_sessions: usize) -> Result<Self, reqwest::Error> {
        // reqwest was built without a provider of its own; an installed one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .timeout(FETCH_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self {
            settings,
            max_sessions,
            http,
            keys: Mutex::new(None),
            asked_in_vain: Mutex::new(None),
            fetching: tokio::sync::Mutex::new(()),
        })
    }

    pub(crate) fn settings(&self) -> &OAuthSettings {
        &self.settings
    }

    pub(crate) async fn check(&self, token: &str) -> Result<Arc<Principal>, OAuthError> {
        let header = decode_header(token).map_err(|_| OAuthError::Invalid("the token is not a JWT"))?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(OAuthError::Invalid("the token's algorithm is not accepted"));
        }
        // Each of them changes what the token means, and we know none.
        if header.crit.is_some() {
            return Err(OAuthError::Invalid(
                "the token needs an extension that is not known here",
            ));
        }
        let keys = self.candidates(header.kid.as_deref(), header.alg).await?;
        let mut validation = Validation::new(header.alg);
        validation.leeway = CLOCK_LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_audience(&[&self.settings.resource]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        let claims = keys
            .iter()
            .map(|key| decode::<Claims>(token, key, &validation))
            // Any other complaint is of a token whose signature is right.
            .find(|decoded| !matches!(decoded, Err(error) if is_of_another_key(error.kind())))
            .unwrap_or_else(|| Err(ErrorKind::InvalidSignature.into()))
            .map_err(|error| OAuthError::Invalid(why(error.kind())))?
            .claims;
        let granted: Vec<&str> = claims
            .scope
            .as_deref()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        if !self
            .settings
            .required_scopes
            .iter()
            .all(|scope| granted.contains(&scope.as_str()))
        {
            return Err(OAuthError::Scopes(self.settings.required_scopes.join(" ")));
        }
        // A client may have the name of a user.
        let name = match (claims.sub, claims.client_id) {
            (Some(sub), _) if sub.is_empty() => return Err(OAuthError::Invalid(NO_SUBJECT)),
            (None, Some(client)) if client.is_empty() => return Err(OAuthError::Invalid(NO_SUBJECT)),
            (Some(sub), _) => format!("sub:{sub}"),
            (None, Some(client)) => format!("client_id:{client}"),
            (None, None) => return Err(OAuthError::Invalid(NO_SUBJECT)),
        };
        let has = |scope: &Option<String>| scope.as_deref().is_some_and(|scope| granted.contains(&scope));
        let role = match (
            has(&self.settings.operator_scope),
            has(&self.settings.metrics_scope),
        ) {
            (true, _) => Role::Operator,
            (false, true) => Role::Metrics,
            (false, false) => Role::Agent,
        };
        Ok(Arc::new(Principal {
            role: Some(role),
            name: name.into(),
            is_known: true,
            scope: None,
            max_sessions: Some(self.max_sessions),
            tools: None,
        }))
    }

    /// The issuer's keys that a token may be signed with, fetched again when there is none among the known ones.
    async fn candidates(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<DecodingKey>, OAuthError> {
        for _ in 0..2 {
            let keys = self.keys(kid, algorithm).await?;
            let candidates: Vec<_> = fitting(&keys.set, kid, algorithm).collect();
            if !candidates.is_empty() {
                return Ok(candidates);
            }
            if keys.fetched.elapsed() < KEYS_ASKED_EVERY {
                break;
            }
        }
        Err(OAuthError::Invalid(
            "the token is signed with a key the issuer does not have",
        ))
    }

    async fn keys(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<Keys, OAuthError> {
        let usable = |keys: &Keys| {
            let age = keys.fetched.elapsed();
            let has_one = || fitting(&keys.set, kid, algorithm).next().is_some();
            age < KEYS_ASKED_EVERY || (age < KEYS_FRESH_FOR && has_one())
        };
        if let Some(keys) = self.keys.lock().clone().filter(usable) {
            return Ok(keys);
        }
        let _fetching = self.fetching.lock().await;
        if let Some(keys) = self.keys.lock().clone().filter(usable) {
            return Ok(keys);
        }
        // Requests that waited for the same answer do not each wait for another one.
        let asked_in_vain = *self.asked_in_vain.lock();
        if asked_in_vain.is_some_and(|asked| asked.elapsed() < KEYS_ASKED_EVERY) {
            return Err(OAuthError::IssuerUnreachable);
        }
        let fetched = self.fetch().await;
        *self.asked_in_vain.lock() = fetched.is_err().then(Instant::now);
        match fetched {
            Ok(set) => {
                let keys = Keys {
                    set: Arc::new(set),
                    fetched: Instant::now(),
                };
                *self.keys.lock() = Some(keys.clone());
                Ok(keys)
            }
            Err(reason) => {
                tracing::error!(
                    issuer = self.settings.issuer,
                    reason,
                    "the issuer's keys cannot be had"
                );
                Err(OAuthError::IssuerUnreachable)
            }
        }
    }

    async fn fetch(&self) -> Result<JwkSet, String> {
        let mut last = String::new();
        for address in discovery_addresses(&self.settings.issuer) {
            match self.get::<Discovery>(&address).await {
                Ok(found) if found.issuer == self.settings.issuer => return self.get(&found.jwks_uri).await,
                Ok(found) => last = format!("{address} is of issuer {}", found.issuer),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, address: &str) -> Result<T, String> {
        let told = |error: reqwest::Error| format!("{address}: {error}");
        self.http
            .get(address)
            .send()
            .await
            .and_then(reqwest::Response::error_for_status)
            .map_err(told)?
            .json()
            .await
            .map_err(told)
    }
}

/// Reads the address of an issuer or a resource. Keys and tokens that could be read or changed on their way prove nothing.
pub(crate) fn oauth_address(text: &str) -> Result<String, String> {
    const FORM: &str = "expected an address such as https://auth.example.org; http is for this machine only";
    let address = url::Url::parse(text).map_err(|_| FORM)?;
    let is_local = address.host_str().is_some_and(is_loopback_host);
    let is_safe = address.scheme() == "https" || (address.scheme() == "http" && is_local);
    let has_more = address.query().is_some() || address.fragment().is_some();
    let has_user = !address.username().is_empty() || address.password().is_some();
    if is_safe && !has_more && !has_user {
        Ok(text.to_owned())
    } else {
        Err(FORM.to_owned())
    }
}

/// Addresses of an issuer's metadata: RFC 8414, then OpenID Connect.
fn discovery_addresses(issuer: &str) -> Vec<String> {
    let issuer = issuer.trim_end_matches('/');
    let split = issuer
        .find("://")
        .and_then(|scheme| issuer[scheme + 3..].find('/').map(|path| scheme + 3 + path));
    let (origin, path) = issuer.split_at(split.unwrap_or(issuer.len()));
    vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}{path}/.well-known/openid-configuration"),
    ]
}

/// True if another key may still match. A key of the right family may yet be on another curve.
fn is_of_another_key(complaint: &ErrorKind) -> bool {
    matches!(
        complaint,
        ErrorKind::InvalidSignature
            | ErrorKind::InvalidEcdsaKey
            | ErrorKind::InvalidEddsaKey
            | ErrorKind::InvalidRsaKey(_)
            | ErrorKind::InvalidKeyFormat
    )
}

/// The keys that a token may be signed with: the one that it names, else all of its algorithm.
fn fitting(set: &JwkSet, kid: Option<&str>, algorithm: Algorithm) -> impl Iterator<Item = DecodingKey> {
    let fits = move |key: &&Jwk| {
        let id = kid.is_none() || key.common.key_id.as_deref() == kid;
        // A key that names its algorithm is for no other; one that is not for signing at all, for none of ours.
        let named = key.common.key_algorithm.map(|named| named.to_string().parse());
        let signs = key.common.public_key_use != Some(PublicKeyUse::Encryption);
        id && signs
            && named.is_none_or(|named: Result<Algorithm, _>| named.is_ok_and(|named| named == algorithm))
    };
    set.keys
        .iter()
        .filter(fits)
        .filter_map(|key| DecodingKey::from_jwk(key).ok())
        // A key of another family (a shared secret, say) would make the check meaningless.
        .filter(move |key| key.family() == algorithm.family())
}

fn why(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ExpiredSignature => "the token is expired",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidAudience => "the token is meant for another server",
        ErrorKind::InvalidIssuer => "the token is of another issuer",
        ErrorKind::InvalidSignature => "the token's signature is wrong",
        ErrorKind::MissingRequiredClaim(_) => "the token lacks a required claim",
        _ => "the token is malformed",
    }
}
