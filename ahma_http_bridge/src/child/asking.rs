//! Requests of the bridge itself to a child.

use std::fmt;
use std::time::Duration;

use ahma_common::envelope::{Envelope, RpcRequest};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::answer::{Answer, CallFailure, CallOutcome};
use super::handle::Child;
use super::pending::{CallParams, Reply};

/// Id of what the bridge asks, also on behalf of a client; clients choose others.
const OWN_ID: &str = "ahma-bridge/request";

/// JSON-RPC codes of a child that does not know what it is asked about.
const CODE_NOT_FOUND: i64 = -32002;
const CODE_NO_METHOD: i64 = -32601;

/// Reason why a child does not answer a request of the bridge.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// It knows of no such operation, or is gone.
    #[error("it is not known there")]
    Unknown,
    #[error("{0}")]
    Failed(String),
}

impl Child {
    /// Passes a request on for the bridge itself and waits for its answer.
    pub(crate) async fn ask(&self, request: RpcRequest<'_>, timeout: Duration) -> Answer {
        let (tx, answer) = oneshot::channel();
        // A failure to send has reached the receiver already.
        let _ = self.call(request, CallParams::of_bridge(Reply::Once(tx), timeout));
        answer.await.unwrap_or_else(|_| Answer::lost())
    }

    /// Sends a request that the bridge makes. Its reply gets every failure.
    pub(crate) fn request(&self, method: &str, params: &Value, call: CallParams) {
        let text = json!({ "jsonrpc": "2.0", "id": OWN_ID, "method": method, "params": params }).to_string();
        if let Ok(envelope) = Envelope::parse(text.as_bytes())
            && let Ok(request) = envelope.request()
        {
            let _ = self.call(request, call);
        }
    }

    /// Asks about operations; gives the `result`.
    pub(crate) async fn ask_about_operations(
        &self,
        method: &str,
        params: &Value,
        timeout: Duration,
    ) -> Result<Value, AskError> {
        let failed = |error: &dyn fmt::Display| AskError::Failed(error.to_string());
        let (tx, answer) = oneshot::channel();
        self.request(method, params, CallParams::of_bridge(Reply::Once(tx), timeout));
        let answer = answer.await.unwrap_or_else(|_| Answer::lost());
        let mut body: Value = serde_json::from_slice(&answer.body).map_err(|error| failed(&error))?;
        let message = || body["error"]["message"].as_str().unwrap_or_default();
        match answer.outcome {
            CallOutcome::Result => Ok(body["result"].take()),
            CallOutcome::RpcError(CODE_NOT_FOUND | CODE_NO_METHOD) => Err(AskError::Unknown),
            CallOutcome::Failed(CallFailure::ChildDied | CallFailure::Stopped) => Err(AskError::Unknown),
            CallOutcome::RpcError(_) | CallOutcome::Failed(_) => Err(failed(&message())),
        }
    }
}
