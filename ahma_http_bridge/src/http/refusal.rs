//! Statuses of answers: of errors, with a JSON-RPC error as the body, and of what a backend answered.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};

use crate::auth::AuthError;
use crate::child::{CallFailure, StartError};
use crate::peer::PeerRejected;
use crate::session::{Fault, RequestError, RequestOutcome};
use ahma_common::envelope::{EnvelopeError, error_message};

/// JSON-RPC codes of our own, from the range left to implementations.
const CODE_REFUSED: i64 = -32000;
/// The code the 2026-07-28 revision has for headers that contradict the body.
pub(crate) const CODE_HEADER_MISMATCH: i64 = -32020;

/// Default of `Retry-After`.
const RETRY_SECONDS: u64 = 1;
/// The same while no credential can be checked, which takes a person to mend.
const AUTH_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Attached to the response of a refusal, for the audit trail.
#[derive(Debug, Clone)]
pub(crate) struct Reason(pub(crate) String);

#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: i64,
    message: String,
    /// The request's id as JSON, if it could be read.
    id: Option<Box<str>>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: i64, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            id: None,
            header: None,
        }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, -32600, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, CODE_REFUSED, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, CODE_REFUSED, message)
    }

    pub(crate) fn unavailable(message: impl Into<String>, retry_after: Duration) -> Self {
        // Rounded up, or a client that keeps to it comes a moment too early.
        let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
        let seconds = seconds.max(RETRY_SECONDS);
        Self::new(StatusCode::SERVICE_UNAVAILABLE, CODE_REFUSED, message)
            .with_header(RETRY_AFTER, &seconds.to_string())
    }

    pub(crate) fn method_not_allowed(allowed: &'static str) -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            CODE_REFUSED,
            format!("only {allowed} is allowed here"),
        )
        .with_header(ALLOW, allowed)
    }

    pub(crate) fn for_request(mut self, id: &str) -> Self {
        self.id = Some(id.into());
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        self.header = HeaderValue::from_str(value)
            .ok()
            .map(|value| Box::new((name, value)));
        self
    }

    /// The JSON-RPC message of the refusal.
    fn body(&self) -> Bytes {
        error_message(self.id.as_deref(), self.code, &self.message)
    }
}

/// The JSON-RPC message that tells the client with this request of an error.
pub(crate) fn error_body(error: &RequestError, id: &str) -> Bytes {
    Refusal::from(error.clone()).for_request(id).body()
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = json_response(self.status, self.body());
        response.extensions_mut().insert(Reason(self.message));
        if let Some((name, value)) = self.header.map(|header| *header) {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// A response whose body is JSON.
pub(crate) fn json_response(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
    }
    response
}

/// The rules by which a JSON-RPC error becomes a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// An error of the server is still an answer: 200.
    Legacy,
    /// Some errors have a status of their own.
    Modern,
}

pub(crate) fn status_of(outcome: &RequestOutcome, era: Era) -> StatusCode {
    match outcome {
        RequestOutcome::RpcError(code) if era == Era::Modern => match code {
            -32601 => StatusCode::NOT_FOUND,
            // Header mismatch, missing client capability, unsupported protocol version.
            -32022..=-32020 => StatusCode::BAD_REQUEST,
            _ => StatusCode::OK,
        },
        RequestOutcome::Result | RequestOutcome::RpcError(_) => StatusCode::OK,
        RequestOutcome::Failed(error) => Refusal::of(error).status,
    }
}

impl From<EnvelopeError> for Refusal {
    fn from(error: EnvelopeError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.code(), error.to_string())
    }
}

impl From<PeerRejected> for Refusal {
    fn from(reason: PeerRejected) -> Self {
        Self::forbidden(reason.to_string())
    }
}

impl From<AuthError> for Refusal {
    fn from(error: AuthError) -> Self {
        let (status, message, challenge) = match error {
            AuthError::Unavailable(message) => return Self::unavailable(message, AUTH_RETRY_AFTER),
            AuthError::Unauthorized { message, challenge } => (StatusCode::UNAUTHORIZED, message, challenge),
            AuthError::Forbidden { message, challenge } => (StatusCode::FORBIDDEN, message, challenge),
        };
        Self::new(status, CODE_REFUSED, message).with_header(WWW_AUTHENTICATE, &challenge)
    }
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        if let (RequestError::Start(reason), Fault::Child) = (&error, error.fault()) {
            tracing::error!(error = %reason, "a child could not be started");
        }
        Self::of(&error)
    }
}

impl Refusal {
    /// Gives every error from below the routes its status.
    fn of(error: &RequestError) -> Self {
        let message = error.to_string();
        match error {
            RequestError::Ended(reason) if reason.is_refusal() => Self::forbidden(message),
            RequestError::Ended(_) => Self::not_found(format!("no such session: {message}")),
            RequestError::InitializedAlready => Self::bad_request(message),
            RequestError::Malformed(error) => Self::new(StatusCode::BAD_REQUEST, error.code(), message),
            RequestError::NotReady(_) => Self::new(
                StatusCode::GATEWAY_TIMEOUT,
                CallFailure::TimedOut.rpc_code(),
                message,
            ),
            RequestError::Call(failure) => {
                let status = match failure {
                    CallFailure::ChildDied => StatusCode::INTERNAL_SERVER_ERROR,
                    CallFailure::TimedOut => StatusCode::GATEWAY_TIMEOUT,
                    CallFailure::SessionEnded => StatusCode::NOT_FOUND,
                    // A new attempt finds another child, here or after a restart.
                    CallFailure::ChildStuck | CallFailure::Stopped => StatusCode::SERVICE_UNAVAILABLE,
                    CallFailure::Unreadable | CallFailure::NotForClients => StatusCode::BAD_REQUEST,
                    CallFailure::CannotLimit => StatusCode::FORBIDDEN,
                    // The client asked for it; the error in the body says so.
                    CallFailure::Cancelled => StatusCode::OK,
                };
                Self::new(status, failure.rpc_code(), message)
            }
            RequestError::Start(StartError::Waiting(delay)) => Self::unavailable(message, *delay),
            RequestError::Start(_) if error.fault() == Fault::Child => {
                // The log has the particulars, which are not for every client.
                let message = "the server process cannot be started; see the bridge's log";
                Self::unavailable(message, Duration::ZERO)
            }
            RequestError::Start(_)
            | RequestError::TooManySessionCalls(_)
            | RequestError::TooManyClientCalls(_)
            | RequestError::TooManyClientSessions(_)
            | RequestError::TooManySessions(_)
            | RequestError::Pressure(_)
            | RequestError::ShuttingDown
            | RequestError::Store(_) => Self::unavailable(message, Duration::ZERO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_waits_as_told_is_not_too_early() {
        for (millis, seconds) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (5000, "5")] {
            let refusal = Refusal::unavailable("", Duration::from_millis(millis));
            let response = refusal.into_response();
            assert_eq!(response.headers()[RETRY_AFTER], seconds, "{millis} ms");
        }
    }
}
