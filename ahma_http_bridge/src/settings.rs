//! Everything the bridge can be told, decided before it starts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ahma_common::loopback::is_loopback;

use crate::auth::AuthSettings;
use crate::dependency::Dependency;
use crate::isolation::Isolation;
use crate::session_store::SessionStore;
use crate::sse_endpoint::SsePath;
use crate::tls::TlsSettings;

/// The settings of one bridge. Every field has a default that is safe on the local machine.
#[derive(Debug, Clone)]
pub struct BridgeSettings {
    pub isolation: Isolation,
    /// The scope of clients that name no root.
    pub default_scope: PathBuf,
    /// Path of the transport of 2024-11-05.
    pub sse_path: SsePath,
    /// Prints every message between bridge and child to standard error.
    pub debug_echo: bool,
    pub auth: AuthSettings,
    pub tls: Option<TlsSettings>,
    /// Allows a bind beyond the local machine without authentication or without TLS.
    pub insecure_http: bool,
    /// Host names that clients may address, in addition to the loopback ones: `name` or `name:port`.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may use the bridge, in addition to those of this machine: exactly as browsers send them.
    pub allowed_origins: Vec<String>,
    /// Serves Prometheus text at `/metrics`.
    pub metrics: bool,
    /// File of the audit trail; without it, session events go to the log.
    pub audit_file: Option<PathBuf>,
    /// Something else that the backends need, for `/healthz` and `/metrics`.
    pub dependency: Option<Arc<dyn Dependency>>,
    /// Records sessions, so that other bridges go on with them.
    pub session_store: Option<Arc<dyn SessionStore>>,
    pub times: Times,
    pub limits: Limits,
}

#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Time that a request may go without an answer or progress.
    pub request: Duration,
    /// Time for a child to answer `initialize`.
    pub start: Duration,
    /// Time for a child to exit, first after the end of its input, again after TERM.
    pub stop_grace: Duration,
    /// Time for open requests and running operations once the bridge is told to stop.
    pub drain: Duration,
    /// Time without requests, open streams and running operations after which a session ends.
    pub session_idle: Duration,
    /// Interval at which an idle event stream carries a comment, so that nothing on the way closes it.
    pub keep_alive: Duration,
    /// Time for a client to send the head of a request, and for a connection to be idle between two.
    pub head: Duration,
    /// Time for a client to send the body of a request.
    pub body: Duration,
    /// Time that a client may go without reading what waits to be sent to it. Longer than `keep_alive`.
    pub write: Duration,
}

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub sessions: usize,
    /// Sessions of one client that is known by name, unless its token says otherwise.
    pub sessions_per_principal: usize,
    pub connections: usize,
    /// Open requests of one session.
    pub calls_per_session: usize,
    pub body_bytes: usize,
    pub head_bytes: usize,
    /// No new sessions above this much memory, in bytes, of the bridge and its children.
    pub memory_bytes: Option<u64>,
    /// No new sessions above this load average per processor.
    pub load_per_cpu: Option<f64>,
}

impl BridgeSettings {
    /// Scheme of the bridge's addresses.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    pub fn new(default_scope: PathBuf) -> Self {
        Self {
            isolation: Isolation::Shared,
            default_scope,
            sse_path: SsePath::default(),
            debug_echo: false,
            auth: AuthSettings::None,
            tls: None,
            insecure_http: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            metrics: false,
            audit_file: None,
            dependency: None,
            session_store: None,
            times: Times::default(),
            limits: Limits::default(),
        }
    }
}

/// A bridge that others can reach must know them and must not be overheard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExposureError {
    #[error("{0} can be reached from other machines, and --auth is none; use --auth token or --auth oauth")]
    NoAuth(SocketAddr),
    #[error("{0} can be reached from other machines, and there is no TLS; use --tls-cert and --tls-key")]
    NoTls(SocketAddr),
}

impl BridgeSettings {
    /// Refuses an address where it is not safe to listen.
    pub fn check_exposure(&self, address: SocketAddr) -> Result<(), ExposureError> {
        let exposed = if is_loopback(address.ip()) {
            Ok(())
        } else if matches!(self.auth, AuthSettings::None) {
            Err(ExposureError::NoAuth(address))
        } else if self.tls.is_none() {
            Err(ExposureError::NoTls(address))
        } else {
            Ok(())
        };
        match exposed {
            Err(error) if self.insecure_http => {
                tracing::warn!("--insecure-http: {error}");
                Ok(())
            }
            checked => checked,
        }
    }
}

impl Default for Times {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(60),
            start: Duration::from_secs(30),
            stop_grace: Duration::from_secs(2),
            drain: Duration::from_secs(10),
            session_idle: Duration::from_secs(30 * 60),
            keep_alive: Duration::from_secs(15),
            head: Duration::from_secs(60),
            body: Duration::from_secs(30),
            write: Duration::from_secs(60),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 50,
            sessions_per_principal: 16,
            connections: 4096,
            calls_per_session: 256,
            body_bytes: 4 << 20,
            head_bytes: 64 << 10,
            memory_bytes: None,
            load_per_cpu: None,
        }
    }
}
