//! One remote server as it is configured.

use std::{collections::BTreeMap, fmt, path::PathBuf, str::FromStr};

use ahma_common::secret::Secret;
use http::{HeaderName, HeaderValue};
use url::Url;

/// One remote server, by the name its tools are mounted under.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub name: String,
    pub transport: TransportChoice,
    /// Its address; `None` for a server that is only a program.
    pub http: Option<HttpEndpoint>,
    /// The program to start: the server itself, or the last resort when HTTP fails.
    pub stdio: Option<StdioCommand>,
}

/// The transports that may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransportChoice {
    /// Modern, then Streamable HTTP, then HTTP+SSE, then the program if there is one.
    #[default]
    Auto,
    Http,
    Sse,
    Stdio,
}

impl FromStr for TransportChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "http" | "streamable-http" | "streamable_http" | "streamableHttp" => Ok(Self::Http),
            "sse" => Ok(Self::Sse),
            "stdio" => Ok(Self::Stdio),
            other => Err(format!(
                "`{other}` is not a transport; use auto, http, sse or stdio"
            )),
        }
    }
}

#[derive(Debug, Clone)]
pub struct HttpEndpoint {
    pub url: Url,
    /// Sent with every request; values are marked sensitive, so they never reach a log.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub oauth: OAuthIdentity,
    /// The discovered file that the address comes from. A login made for it is valid for this file alone: a foreign
    /// project must not obtain the user's logins by naming a known address.
    pub found_in: Option<PathBuf>,
}

impl HttpEndpoint {
    pub fn new(url: Url) -> Self {
        Self {
            url,
            headers: Vec::new(),
            oauth: OAuthIdentity::default(),
            found_in: None,
        }
    }

    /// A fixed `Authorization` header means the user brings the credentials: no OAuth then.
    pub fn has_own_credentials(&self) -> bool {
        self.headers
            .iter()
            .any(|(name, _)| *name == http::header::AUTHORIZATION)
    }
}

/// Parses an address that a user typed.
pub fn address(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|error| match error {
        url::ParseError::RelativeUrlWithoutBase => format!("write https://{text}"),
        error => error.to_string(),
    })
}

/// The identity of this client towards an authorization server.
///
/// A pre-registered id comes first, then the metadata document, and only then dynamic registration.
#[derive(Debug, Clone, Default)]
pub struct OAuthIdentity {
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    /// HTTPS address of a client-id metadata document.
    pub client_metadata_url: Option<String>,
    /// Empty for those that the server asks for.
    pub scopes: Vec<String>,
    /// The port of the callback address; `None` is 8080, or the next free one.
    pub callback_port: Option<u16>,
}

#[derive(Clone)]
pub struct StdioCommand {
    pub program: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub working_directory: Option<PathBuf>,
}

impl fmt::Debug for StdioCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioCommand")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("working_directory", &self.working_directory)
            .finish()
    }
}
