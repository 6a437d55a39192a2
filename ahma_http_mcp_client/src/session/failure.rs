//! Turns rmcp's nested errors into one line and a kind of failure.

use ahma_common::words::shorten;
use rmcp::{
    service::{ClientInitializeError, ServiceError},
    transport::{DynamicTransportError, streamable_http_client::StreamableHttpError},
};

use crate::{shown::without_secrets, transport::HttpMcpError};

/// Number of characters of a server's error page that are shown.
const MAX_QUOTE: usize = 200;

/// rmcp reports an answer that can no longer come as an error of the server, which it is not.
const RMCP_SESSION_RENEWED: &str = "streamable HTTP session was re-initialized before the response arrived";

/// Replaces a required login where the user supplies the credentials.
pub(crate) const CREDENTIALS_REFUSED: &str = "the server rejects the configured `Authorization` header";

/// A failure to connect, or of a request on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nothing listens there: no other HTTP transport will do better.
    Unreachable(String),
    /// The server requires a login; the text is its challenge.
    LoginRequired(String),
    /// There is no token to send, because it could not be renewed: nothing was sent.
    NoToken(String),
    /// The token file cannot be used; no other transport will do better.
    TokenFile(String),
    /// The server refused, or its answer is not valid.
    Refused(String),
    /// The server answered that it failed.
    Broken(String),
    /// The request may have arrived, and its effect is not known.
    Lost(String),
}

impl Failure {
    pub(crate) fn of_start(error: &ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::TransportError { error, .. } => Self::of_transport(error),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Self::of_start(fallback),
            ClientInitializeError::ConnectionClosed(_) => {
                Self::Lost("the connection closed during the handshake".to_owned())
            }
            ClientInitializeError::JsonRpcError(error) => Self::Refused(format!(
                "the server refused the handshake: {}",
                quote(&error.message)
            )),
            other => Self::Refused(quote(&other.to_string())),
        }
    }

    fn of_transport(error: &DynamicTransportError) -> Self {
        match error.error.downcast_ref::<HttpMcpError>() {
            Some(error) => Self::of_http(error),
            None => Self::Lost(quote(&ahma_common::error_chain(error.error.as_ref()))),
        }
    }

    pub(crate) fn of_http(error: &HttpMcpError) -> Self {
        match error {
            StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
                Self::LoginRequired(error.auth_challenge().unwrap_or_default().to_owned())
            }
            StreamableHttpError::Auth(rmcp::transport::AuthError::AuthorizationRequired) => {
                Self::LoginRequired(String::new())
            }
            StreamableHttpError::Auth(rmcp::transport::AuthError::CredentialStoreError(reason)) => {
                Self::TokenFile(quote(reason))
            }
            StreamableHttpError::Auth(error) => Self::NoToken(quote(&format!("no token for it: {error}"))),
            StreamableHttpError::HttpStatus(error) => {
                let later = error.retry_after.as_ref();
                let later = later.map(|after| format!(" (Retry-After: {})", quote(after)));
                Self::of_status(error.status, &later.unwrap_or_default())
            }
            StreamableHttpError::Client(error) if error.is_connect() => Self::Unreachable(innermost(error)),
            StreamableHttpError::Client(error) if error.is_redirect() => Self::Refused(innermost(error)),
            StreamableHttpError::Client(error) => match error.status() {
                Some(status) => Self::of_status(status.as_u16(), ""),
                None => Self::Lost(quote(&ahma_common::error_chain(error))),
            },
            StreamableHttpError::UnexpectedServerResponse(text) => Self::Refused(quote(text)),
            StreamableHttpError::UnexpectedContentType(Some(kind)) => Self::Refused(format!(
                "the answer is {}, not JSON or an event stream",
                quote(kind)
            )),
            other => Self::Lost(quote(&other.to_string())),
        }
    }

    fn of_status(status: u16, addition: &str) -> Self {
        let code = http::StatusCode::from_u16(status).ok();
        let words = code.and_then(|code| code.canonical_reason()).unwrap_or_default();
        let reason = format!("HTTP {status} {words}{addition}");
        if status >= 500 {
            Self::Broken(reason)
        } else {
            Self::Refused(reason)
        }
    }

    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Unreachable(reason)
            | Self::NoToken(reason)
            | Self::TokenFile(reason)
            | Self::Refused(reason)
            | Self::Broken(reason)
            | Self::Lost(reason) => reason,
            Self::LoginRequired(_) => "the server requires a login",
        }
    }
}

/// The failure of a request on a live connection; `None` when the server answered with an error of its own.
pub(crate) fn describe_call(error: &ServiceError) -> Option<Failure> {
    match error {
        ServiceError::McpError(error) if error.message == RMCP_SESSION_RENEWED => Some(Failure::Lost(
            "the server restarted and forgot the session".to_owned(),
        )),
        ServiceError::McpError(_) => None,
        ServiceError::TransportSend(error) => Some(Failure::of_transport(error)),
        ServiceError::TransportClosed => Some(Failure::Lost("the connection was closed".to_owned())),
        other => Some(Failure::Lost(quote(&other.to_string()))),
    }
}

/// The reason of a failed request, also if it is the server's own error.
pub(crate) fn reason_of(error: &ServiceError) -> String {
    match describe_call(error) {
        Some(failure) => failure.reason().to_owned(),
        None => quote(&error.to_string()),
    }
}

/// The last link of the chain: for a connection it is what the kernel said.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    quote(&last.to_string())
}

fn quote(text: &str) -> String {
    let text = without_secrets(text);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    shorten(line, MAX_QUOTE)
}

#[cfg(test)]
mod tests {
    use rmcp::transport::AuthError;
    use rmcp::transport::streamable_http_client::HttpStatusError;

    use super::*;

    #[test]
    fn only_what_may_have_arrived_is_lost() {
        let status = |status, after: Option<&str>| {
            StreamableHttpError::HttpStatus(HttpStatusError::new(status, after.map(str::to_owned)))
        };
        for (error, expected) in [
            (
                status(429, Some("30")),
                Failure::Refused("HTTP 429 Too Many Requests (Retry-After: 30)".to_owned()),
            ),
            (
                status(500, None),
                Failure::Broken("HTTP 500 Internal Server Error".to_owned()),
            ),
            (
                StreamableHttpError::UnexpectedServerResponse("HTTP 413 Payload Too Large: no".into()),
                Failure::Refused("HTTP 413 Payload Too Large: no".to_owned()),
            ),
            (
                StreamableHttpError::Auth(AuthError::TokenRefreshFailed("down".to_owned())),
                Failure::NoToken("no token for it: OAuth token refresh failed: down".to_owned()),
            ),
            (
                StreamableHttpError::Auth(AuthError::CredentialStoreError("token file t".to_owned())),
                Failure::TokenFile("token file t".to_owned()),
            ),
            (
                StreamableHttpError::Auth(AuthError::MetadataError("no https://u:p@x.example/?k=s\n".into())),
                Failure::NoToken("no token for it: Metadata error: no https://…@x.example/?k=…".to_owned()),
            ),
            (
                StreamableHttpError::UnexpectedEndOfStream,
                Failure::Lost("unexpected end of stream".to_owned()),
            ),
        ] {
            assert_eq!(Failure::of_http(&error), expected);
        }
    }
}
