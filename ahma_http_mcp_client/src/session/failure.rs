//! Turns rmcp's nested errors into one line, and into what to do about it.

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::transport::HttpMcpError;

/// More of a server's error page than this helps nobody.
const LONGEST_QUOTE: usize = 200;

/// rmcp reports an answer that can no longer come in the server's name; it is not the server's.
const RMCP_SESSION_RENEWED: &str = "streamable HTTP session was re-initialized before the response arrived";

/// Said instead of a wish for a login, where the user brings the credentials.
pub(crate) const CREDENTIALS_REFUSED: &str =
    "the server does not accept the `Authorization` header of the configuration";

/// Why a connection could not be made or was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nobody listens there: no other HTTP transport will do better.
    Unreachable(String),
    /// The server wants a login; the text is its challenge.
    LoginRequired(String),
    Other(String),
}

impl Failure {
    pub(crate) fn of_start(error: &ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::TransportError { error, .. } => Self::of_transport(error),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Self::of_start(fallback),
            ClientInitializeError::ConnectionClosed(_) => {
                Self::Other("the connection closed during the handshake".to_owned())
            }
            ClientInitializeError::JsonRpcError(error) => Self::Other(format!(
                "the server refused the handshake: {}",
                quote(&error.message)
            )),
            other => Self::Other(quote(&other.to_string())),
        }
    }

    pub(crate) fn of_transport(error: &DynamicTransportError) -> Self {
        match error.error.downcast_ref::<HttpMcpError>() {
            Some(error) => Self::of_http(error),
            None => Self::Other(quote(&crate::error_chain(error.error.as_ref()))),
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
            StreamableHttpError::Client(error) if error.is_connect() => Self::Unreachable(innermost(error)),
            StreamableHttpError::Client(error) => Self::Other(quote(&crate::error_chain(error))),
            StreamableHttpError::UnexpectedServerResponse(text) => Self::Other(quote(text)),
            StreamableHttpError::UnexpectedContentType(Some(kind)) => Self::Other(format!(
                "the answer is {}, not JSON or an event stream",
                quote(kind)
            )),
            other => Self::Other(quote(&other.to_string())),
        }
    }

    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Unreachable(reason) | Self::Other(reason) => reason,
            Self::LoginRequired(_) => "the server wants a login",
        }
    }
}

/// Why a request on a live connection failed; `None` when the server answered with an error of its own.
pub(crate) fn describe_call(error: &ServiceError) -> Option<Failure> {
    match error {
        ServiceError::McpError(error) if error.message == RMCP_SESSION_RENEWED => Some(Failure::Other(
            "the server restarted and forgot the session".to_owned(),
        )),
        ServiceError::McpError(_) => None,
        ServiceError::TransportSend(error) => Some(Failure::of_transport(error)),
        ServiceError::TransportClosed => Some(Failure::Other("the connection was lost".to_owned())),
        other => Some(Failure::Other(quote(&other.to_string()))),
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
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
