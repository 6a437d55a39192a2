//! Every answer that is not a child's: an HTTP status and a JSON-RPC error, decided in this one file.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};

use crate::backend::StartError;
use crate::child::{Answer, CallFailure, Verdict};
use crate::envelope::{EnvelopeError, error_message};
use crate::peer::Unwelcome;
use crate::session::{OpenError, SessionError};

/// JSON-RPC codes of our own, from the range left to implementations.
const CODE_REFUSED: i64 = -32000;
/// The code the 2026-07-28 revision has for headers that contradict the body.
pub(crate) const CODE_HEADER_MISMATCH: i64 = -32020;

/// When to come back if we cannot know better.
const RETRY_SECONDS: u64 = 1;

/// Goes with the response of a refusal to whoever writes it down.
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
        // Up, or whoever keeps to it comes a moment too early.
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

    pub(crate) fn unauthorized(message: impl Into<String>, challenge: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, CODE_REFUSED, message).with_header(WWW_AUTHENTICATE, challenge)
    }

    pub(crate) fn for_request(mut self, id: &str) -> Self {
        self.id = Some(id.into());
        self
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
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

    /// The same as the end of a call, for a client whose answer is a stream.
    pub(crate) fn into_answer(self, id: &str) -> Answer {
        let body = error_message(Some(id), self.code, &self.message);
        Answer {
            body,
            verdict: Verdict::Refused(self.status.as_u16()),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = error_message(self.id.as_deref(), self.code, &self.message);
        let mut response = json_response(self.status, body);
        response.extensions_mut().insert(Reason(self.message));
        if let Some((name, value)) = self.header.map(|header| *header) {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// A response whose body is JSON.
pub(crate) fn json_response(status: StatusCode, body: bytes::Bytes) -> Response {
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

/// Which rules turn a JSON-RPC error into a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// An error of the server is still an answer: 200.
    Legacy,
    /// Some errors have a status of their own.
    Modern,
}

pub(crate) fn status_of(verdict: Verdict, era: Era) -> StatusCode {
    match verdict {
        Verdict::Result => StatusCode::OK,
        Verdict::RpcError(code) if era == Era::Modern => match code {
            -32601 => StatusCode::NOT_FOUND,
            // Header mismatch, missing client capability, unsupported protocol version.
            -32022..=-32020 => StatusCode::BAD_REQUEST,
            _ => StatusCode::OK,
        },
        Verdict::RpcError(_) => StatusCode::OK,
        Verdict::Failed(failure) => match failure {
            CallFailure::ChildDied => StatusCode::INTERNAL_SERVER_ERROR,
            CallFailure::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            CallFailure::SessionEnded => StatusCode::NOT_FOUND,
            // Whoever comes again finds another one, here or after a restart.
            CallFailure::ChildStuck | CallFailure::Stopped => StatusCode::SERVICE_UNAVAILABLE,
            CallFailure::Unreadable | CallFailure::NotForClients => StatusCode::BAD_REQUEST,
            // The client asked for it; the error in the body says so.
            CallFailure::Cancelled => StatusCode::OK,
        },
        Verdict::Refused(status) => StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

impl From<EnvelopeError> for Refusal {
    fn from(error: EnvelopeError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.code(), error.to_string())
    }
}

impl From<Unwelcome> for Refusal {
    fn from(reason: Unwelcome) -> Self {
        Self::forbidden(reason.to_string())
    }
}

impl From<StartError> for Refusal {
    fn from(error: StartError) -> Self {
        match &error {
            StartError::Waiting(delay) => Self::unavailable(error.to_string(), *delay),
            StartError::Stopped => Self::unavailable(error.to_string(), Duration::ZERO),
            StartError::Spawn(_) | StartError::Died | StartError::Silent | StartError::Refused(_) => {
                // The log has the particulars, which are not for every client.
                tracing::error!(%error, "a child could not be started");
                Self::unavailable(
                    "the server process cannot be started; see the bridge's log",
                    Duration::ZERO,
                )
            }
        }
    }
}

impl From<SessionError> for Refusal {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Ended(reason) if reason.is_refusal() => Self::forbidden(reason.to_string()),
            SessionError::Ended(reason) => Self::not_found(format!("no such session: {reason}")),
            SessionError::InitializedAlready => Self::bad_request(error.to_string()),
            SessionError::NotReady(_) => Self::new(
                StatusCode::GATEWAY_TIMEOUT,
                CallFailure::TimedOut.rpc_code(),
                error.to_string(),
            ),
            // The client asked for it; the error in the body says so.
            SessionError::Cancelled => Self::new(
                StatusCode::OK,
                CallFailure::Cancelled.rpc_code(),
                error.to_string(),
            ),
            SessionError::TooManyCalls(_) => Self::unavailable(error.to_string(), Duration::ZERO),
            SessionError::Open(error) => error.into(),
            SessionError::Start(error) => error.into(),
        }
    }
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        Self::unavailable(error.to_string(), Duration::from_secs(RETRY_SECONDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_back_when_told_is_not_too_early() {
        for (millis, seconds) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (5000, "5")] {
            let refusal = Refusal::unavailable("", Duration::from_millis(millis));
            let response = refusal.into_response();
            assert_eq!(response.headers()[RETRY_AFTER], seconds, "{millis} ms");
        }
    }
}
