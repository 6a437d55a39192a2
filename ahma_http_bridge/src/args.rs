//! The bridge's flags, for its own binary and for any program that serves over HTTP with it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ahma_common::contract::{HTTP_TOKEN_VARIABLE, HTTP_TOKENS_FILE_VARIABLE};
use ahma_common::secret::Secret;
use ahma_common::value;
use clap::{ArgAction, Args, ValueEnum};

use crate::auth::{AuthSettings, OAuthSettings, TokenSource, oauth_address};
use crate::http::guard::{allowed_host, allowed_origin};
use crate::isolation::Isolation;
use crate::settings::BridgeSettings;
use crate::sse_endpoint::SseEndpoint;
use crate::tls::TlsSettings;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AuthMode {
    /// Every process that can reach the server, except commands.
    None,
    /// A token from --tokens-file or AHMA_HTTP_TOKEN.
    Token,
    /// A JWT of --oauth-issuer.
    Oauth,
}

/// Flags that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgsError {
    #[error("--auth token needs --tokens-file or AHMA_HTTP_TOKEN")]
    NoTokens,
    #[error("--auth none contradicts the tokens given; drop one of them")]
    UnusedTokens,
    #[error("--auth oauth needs --oauth-issuer and --oauth-resource")]
    NoIssuer,
    #[error(
        "--oauth-issuer, --oauth-resource and --oauth-scope contradict --auth {0}; drop them, or use --auth oauth"
    )]
    UnusedIssuer(&'static str),
    #[error("--auth oauth contradicts the tokens of --tokens-file or AHMA_HTTP_TOKEN; drop one of them")]
    TokensAndOauth,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "HTTP")]
pub struct BridgeArgs {
    /// Address to listen on, or localhost [default: 127.0.0.1].
    #[arg(long, env = "AHMA_HTTP_HOST", value_name = "ADDRESS", value_parser = value::listening_host)]
    pub http_host: Option<IpAddr>,

    /// Port to listen on; 0 takes any free one [default: 3000].
    #[arg(long, env = "AHMA_HTTP_PORT", value_name = "PORT")]
    pub http_port: Option<u16>,

    /// Give each session its own server process, confined to the client's first root.
    #[arg(long, env = "AHMA_SESSION_ISOLATION", action = ArgAction::SetTrue, value_parser = value::switch)]
    pub session_isolation: bool,

    /// Path of the HTTP+SSE transport of 2024-11-05. In an address such as http://localhost:8888/mcp/sse, host and port
    /// are what to listen on where --http-host and --http-port do not say [default: /mcp/sse].
    #[arg(long, env = "AHMA_SSE_ENDPOINT", value_name = "PATH|URL")]
    pub sse_endpoint: Option<SseEndpoint>,

    /// Host name that clients may use besides localhost; may be repeated.
    #[arg(
        long = "allow-host",
        env = "AHMA_ALLOW_HOST",
        value_name = "HOST[:PORT]",
        value_delimiter = ',',
        value_parser = allowed_host
    )]
    pub allow_hosts: Vec<String>,

    /// Origin of web pages that may use the server, besides those of this machine; may be repeated.
    #[arg(
        long = "allow-origin",
        env = "AHMA_ALLOW_ORIGIN",
        value_name = "ORIGIN",
        value_delimiter = ',',
        value_parser = allowed_origin
    )]
    pub allow_origins: Vec<String>,

    /// Sessions that may be open at once.
    #[arg(long, env = "AHMA_MAX_SESSIONS", value_name = "COUNT", default_value_t = 50, value_parser = value::positive_count)]
    pub max_sessions: usize,

    /// Sessions one client of --tokens-file or --auth oauth may have open at once, unless its token says otherwise.
    #[arg(
        long,
        env = "AHMA_MAX_SESSIONS_PER_PRINCIPAL",
        value_name = "COUNT",
        default_value_t = 16,
        value_parser = value::positive_count
    )]
    pub max_sessions_per_principal: usize,

    /// Connections that may be open at once.
    #[arg(
        long,
        env = "AHMA_MAX_CONNECTIONS",
        value_name = "COUNT",
        default_value_t = 4096,
        value_parser = value::positive_count
    )]
    pub max_connections: usize,

    /// Requests one session, or one client without a session, may have open at once.
    #[arg(long, env = "AHMA_MAX_CALLS", value_name = "COUNT", default_value_t = 256, value_parser = value::positive_count)]
    pub max_calls: usize,

    /// Largest request body.
    #[arg(long, env = "AHMA_MAX_BODY", value_name = "BYTES", default_value = "4M", value_parser = value::positive_byte_count)]
    pub max_body: usize,

    /// Time that a request may go without an answer or progress [default: 60s].
    #[arg(long, env = "AHMA_REQUEST_TIMEOUT", value_name = "TIME", value_parser = value::positive_duration)]
    pub request_timeout: Option<Duration>,

    /// Time that a session may be without requests, open streams and running operations before it ends.
    #[arg(
        long,
        env = "AHMA_SESSION_IDLE",
        value_name = "TIME",
        default_value = "30m",
        value_parser = value::positive_duration
    )]
    pub session_idle: Duration,

    /// Time that running operations have to end once the server is told to stop; a second signal cuts it short.
    #[arg(
        long,
        env = "AHMA_DRAIN",
        value_name = "TIME",
        default_value = "10s",
        value_parser = value::duration
    )]
    pub drain: Duration,

    /// Authentication of clients; default is oauth if there is an issuer, token if there are tokens, else none.
    #[arg(long, env = "AHMA_AUTH", value_name = "MODE")]
    pub auth: Option<AuthMode>,

    /// File of hashed tokens; read again when it changes.
    #[arg(long, env = HTTP_TOKENS_FILE_VARIABLE, value_name = "FILE")]
    pub tokens_file: Option<PathBuf>,

    /// One token for all clients. A flag shows in the list of processes, so use the variable.
    #[arg(
        long,
        env = HTTP_TOKEN_VARIABLE,
        hide = true,
        hide_env_values = true,
        conflicts_with = "tokens_file"
    )]
    pub http_token: Option<Secret>,

    /// Authorization server whose tokens are accepted.
    #[arg(long, env = "AHMA_OAUTH_ISSUER", value_name = "URL", value_parser = oauth_address)]
    pub oauth_issuer: Option<String>,

    /// Address of this server as clients know it; tokens must be meant for it.
    #[arg(long, env = "AHMA_OAUTH_RESOURCE", value_name = "URL", value_parser = oauth_address)]
    pub oauth_resource: Option<String>,

    /// Scope every token must have; may be repeated.
    #[arg(
        long = "oauth-scope",
        env = "AHMA_OAUTH_SCOPE",
        value_name = "SCOPE",
        value_delimiter = ','
    )]
    pub oauth_scopes: Vec<String>,

    /// Scope that makes a token an operator's: the admin API, and no tools.
    #[arg(
        long,
        env = "AHMA_OAUTH_OPERATOR_SCOPE",
        value_name = "SCOPE",
        requires = "oauth_issuer"
    )]
    pub oauth_operator_scope: Option<String>,

    /// Scope of a token that may read /metrics, and nothing else.
    #[arg(
        long,
        env = "AHMA_OAUTH_METRICS_SCOPE",
        value_name = "SCOPE",
        requires = "oauth_issuer"
    )]
    pub oauth_metrics_scope: Option<String>,

    /// Certificate chain for TLS, in PEM; read again when it changes.
    #[arg(long, env = "AHMA_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Private key for TLS, in PEM.
    #[arg(long, env = "AHMA_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Listen beyond this machine without authentication or without TLS.
    #[arg(long, env = "AHMA_INSECURE_HTTP", action = ArgAction::SetTrue, value_parser = value::switch)]
    pub insecure_http: bool,

    /// No new sessions above this much memory of the server and everything it runs.
    #[arg(long, env = "AHMA_MAX_MEMORY", value_name = "BYTES", value_parser = value::positive_byte_count)]
    pub max_memory: Option<usize>,

    /// No new sessions above this load average per processor.
    #[arg(long, env = "AHMA_MAX_LOAD", value_name = "LOAD", value_parser = value::positive_number)]
    pub max_load: Option<f64>,

    /// Serve Prometheus text at /metrics.
    #[arg(long, env = "AHMA_METRICS", action = ArgAction::SetTrue, value_parser = value::switch)]
    pub metrics: bool,

    /// Append an audit trail to this file.
    #[arg(long, env = "AHMA_AUDIT_FILE", value_name = "FILE")]
    pub audit_file: Option<PathBuf>,
}

/// Port at which clients expect a server of this kind.
const DEFAULT_PORT: u16 = 3000;

impl BridgeArgs {
    /// Address to listen on.
    pub fn address(&self) -> SocketAddr {
        let (host, port) = self
            .sse_endpoint
            .as_ref()
            .and_then(|endpoint| endpoint.listen)
            .unwrap_or((IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT));
        SocketAddr::new(self.http_host.unwrap_or(host), self.http_port.unwrap_or(port))
    }

    /// True if a flag or variable is about authentication, even to switch it off.
    pub fn has_auth(&self) -> bool {
        let said = self.auth.is_some() || self.tokens_file.is_some() || self.http_token.is_some();
        said || self.oauth_issuer.is_some()
    }

    /// Files with credentials or the audit trail: no command may reach them.
    pub fn private_files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.tokens_file, &self.tls_key, &self.audit_file]
            .into_iter()
            .flatten()
    }

    /// The settings these flags make, for clients that name no root in `default_scope`.
    pub fn settings(&self, default_scope: PathBuf) -> Result<BridgeSettings, ArgsError> {
        let mut settings = BridgeSettings::new(default_scope);
        if self.session_isolation {
            settings.isolation = Isolation::PerSession;
        }
        if let Some(endpoint) = &self.sse_endpoint {
            settings.sse_path = endpoint.path.clone();
        }
        settings.allowed_hosts.clone_from(&self.allow_hosts);
        settings.allowed_origins.clone_from(&self.allow_origins);
        settings.limits.sessions = self.max_sessions;
        settings.limits.sessions_per_principal = self.max_sessions_per_principal;
        settings.limits.connections = self.max_connections;
        settings.limits.calls_per_session = self.max_calls;
        settings.limits.body_bytes = self.max_body;
        if let Some(timeout) = self.request_timeout {
            settings.times.request = timeout;
        }
        settings.times.session_idle = self.session_idle;
        settings.times.drain = self.drain;
        settings.auth = self.auth_settings()?;
        settings.tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(TlsSettings {
                certificate: certificate.clone(),
                key: key.clone(),
            }),
            _ => None,
        };
        settings.insecure_http = self.insecure_http;
        settings.limits.memory_bytes = self.max_memory.map(|bytes| bytes as u64);
        settings.limits.load_per_cpu = self.max_load;
        settings.metrics = self.metrics;
        settings.audit_file.clone_from(&self.audit_file);
        Ok(settings)
    }

    fn auth_settings(&self) -> Result<AuthSettings, ArgsError> {
        let source = match (&self.tokens_file, &self.http_token) {
            (Some(file), _) => Some(TokenSource::File(file.clone())),
            (None, Some(token)) => Some(TokenSource::Single(token.clone())),
            (None, None) => None,
        };
        let names_issuer =
            self.oauth_issuer.is_some() || self.oauth_resource.is_some() || !self.oauth_scopes.is_empty();
        // What is given for a way to authenticate asks for that way: it must never be left out silently.
        let wanted = self.auth.unwrap_or(match (&source, names_issuer) {
            (_, true) => AuthMode::Oauth,
            (Some(_), false) => AuthMode::Token,
            (None, false) => AuthMode::None,
        });
        match (wanted, source) {
            (AuthMode::None, _) if names_issuer => Err(ArgsError::UnusedIssuer("none")),
            (AuthMode::Token, _) if names_issuer => Err(ArgsError::UnusedIssuer("token")),
            (AuthMode::None, None) => Ok(AuthSettings::None),
            (AuthMode::None, Some(_)) => Err(ArgsError::UnusedTokens),
            (AuthMode::Token, Some(source)) => Ok(AuthSettings::Token(source)),
            (AuthMode::Token, None) => Err(ArgsError::NoTokens),
            (AuthMode::Oauth, Some(_)) => Err(ArgsError::TokensAndOauth),
            (AuthMode::Oauth, None) => match (&self.oauth_issuer, &self.oauth_resource) {
                (Some(issuer), Some(resource)) => Ok(AuthSettings::OAuth(OAuthSettings {
                    issuer: issuer.clone(),
                    resource: resource.clone(),
                    required_scopes: self.oauth_scopes.clone(),
                    operator_scope: self.oauth_operator_scope.clone(),
                    metrics_scope: self.oauth_metrics_scope.clone(),
                })),
                _ => Err(ArgsError::NoIssuer),
            },
        }
    }
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
