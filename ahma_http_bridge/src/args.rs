//! The bridge's flags, for its own binary and for any program that serves over HTTP with it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::settings::{BridgeSettings, Isolation};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "HTTP")]
pub struct BridgeArgs {
    /// Address to listen on.
    #[arg(long, env = "AHMA_HTTP_HOST", value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub http_host: IpAddr,

    /// Port to listen on; 0 takes any free one.
    #[arg(long, env = "AHMA_HTTP_PORT", value_name = "PORT", default_value_t = 3000)]
    pub http_port: u16,

    /// Give each session its own server process, confined to the client's first root.
    #[arg(long, env = "AHMA_SESSION_ISOLATION")]
    pub session_isolation: bool,

    /// Path of the HTTP+SSE transport of 2024-11-05.
    #[arg(
        long,
        env = "AHMA_SSE_ENDPOINT",
        value_name = "PATH",
        default_value = "/mcp/sse"
    )]
    pub sse_endpoint: String,

    /// Host name clients may use beside localhost; may be repeated.
    #[arg(
        long = "allow-host",
        env = "AHMA_ALLOW_HOST",
        value_name = "HOST[:PORT]",
        value_delimiter = ','
    )]
    pub allow_hosts: Vec<String>,

    /// Origin of web pages that may use the server, beside those of this machine; may be repeated.
    #[arg(
        long = "allow-origin",
        env = "AHMA_ALLOW_ORIGIN",
        value_name = "ORIGIN",
        value_delimiter = ','
    )]
    pub allow_origins: Vec<String>,

    /// Sessions that may be open at once.
    #[arg(long, env = "AHMA_MAX_SESSIONS", value_name = "COUNT", default_value_t = 50)]
    pub max_sessions: usize,

    /// Connections that may be open at once.
    #[arg(
        long,
        env = "AHMA_MAX_CONNECTIONS",
        value_name = "COUNT",
        default_value_t = 4096
    )]
    pub max_connections: usize,

    /// Requests one session may have open at once.
    #[arg(long, env = "AHMA_MAX_CALLS", value_name = "COUNT", default_value_t = 256)]
    pub max_calls: usize,

    /// Largest request body, in bytes.
    #[arg(long, env = "AHMA_MAX_BODY", value_name = "BYTES", default_value_t = 4 << 20)]
    pub max_body: usize,

    /// Seconds a request may go without an answer or progress.
    #[arg(
        long,
        env = "AHMA_REQUEST_TIMEOUT",
        value_name = "SECONDS",
        default_value_t = 60
    )]
    pub request_timeout: u64,

    /// Seconds without requests or open streams after which a session ends.
    #[arg(
        long,
        env = "AHMA_SESSION_IDLE",
        value_name = "SECONDS",
        default_value_t = 1800
    )]
    pub session_idle: u64,
}

impl BridgeArgs {
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.http_host, self.http_port)
    }

    /// The settings these flags make, for clients that name no root in `default_scope`.
    pub fn settings(&self, default_scope: PathBuf) -> BridgeSettings {
        let mut settings = BridgeSettings::new(default_scope);
        if self.session_isolation {
            settings.isolation = Isolation::PerSession;
        }
        settings.sse_path.clone_from(&self.sse_endpoint);
        settings.allowed_hosts.clone_from(&self.allow_hosts);
        settings.allowed_origins.clone_from(&self.allow_origins);
        settings.limits.sessions = self.max_sessions;
        settings.limits.connections = self.max_connections;
        settings.limits.calls_per_session = self.max_calls;
        settings.limits.body_bytes = self.max_body;
        settings.times.request = Duration::from_secs(self.request_timeout);
        settings.times.session_idle = Duration::from_secs(self.session_idle);
        settings
    }
}
