//! The error of this crate: what failed, and whose fault it is.
//!
//! Messages name the server and never hold a secret. Logins have an error of their own, [`LoginError`].

use rmcp::{model::ErrorData, service::ServerInitializeError};

use crate::{
    oauth::LoginError,
    session::{Attempt, CREDENTIALS_REFUSED, ConnectFailure},
};

#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error("there is no remote server `{server}`")]
    UnknownServer { server: String },
    /// Every transport was tried.
    #[error("cannot connect to server `{server}`: {}", list(attempts))]
    Connect { server: String, attempts: Vec<Attempt> },
    /// No server was contacted.
    #[error("cannot connect to server `{server}`: {reason}")]
    TokenFile { server: String, reason: String },
    /// Nothing was sent.
    #[error("remote server `{server}` is not available: {reason}")]
    Unavailable { server: String, reason: String },
    /// `how` is the page to open, or the command to run.
    #[error("remote server `{server}` requires a login: {how}")]
    LoginRequired { server: String, how: String },
    #[error("the login to server `{server}` failed")]
    Login { server: String, source: Box<LoginError> },
    /// The server rejects the request, and a login would not change that.
    #[error("remote server `{server}` refused the request: {reason}")]
    Refused { server: String, reason: String },
    /// The server reported a failure of its own; the request may have had its effect.
    #[error("remote server `{server}` failed during the request, which may or may not have run: {reason}")]
    Broken { server: String, reason: String },
    /// The request was sent and its answer is lost; it may have had its effect.
    #[error(
        "the connection to remote server `{server}` was lost during the request, which may or may not have run: {reason}"
    )]
    Lost { server: String, reason: String },
    /// The server's own JSON-RPC error, to be passed on unchanged.
    #[error("the remote server answered with an error")]
    Protocol(ErrorData),
    #[error("the request was cancelled")]
    Cancelled,
    /// The client of a front.
    #[error("cannot read the client's first message")]
    ClientInput(#[source] std::io::Error),
    /// The client of a front.
    #[error("the client did not start an MCP session")]
    ClientHandshake(#[source] Box<ServerInitializeError>),
}

/// The party that has to act before a request can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The user: a login, credentials, a file or a name.
    User,
    /// The remote server answered, and not as it should.
    Server,
    /// The server cannot be reached, or the connection broke.
    Connection,
    /// The client that sent the request.
    Client,
}

impl RemoteError {
    pub fn fault(&self) -> Fault {
        match self {
            Self::UnknownServer { .. }
            | Self::TokenFile { .. }
            | Self::LoginRequired { .. }
            | Self::Login { .. } => Fault::User,
            Self::Connect { attempts, .. } if attempts.iter().any(refuses_credentials) => Fault::User,
            Self::Refused { reason, .. } if reason == CREDENTIALS_REFUSED => Fault::User,
            Self::Refused { .. } | Self::Broken { .. } | Self::Protocol(_) => Fault::Server,
            Self::Connect { .. } | Self::Unavailable { .. } | Self::Lost { .. } => Fault::Connection,
            Self::Cancelled | Self::ClientInput(_) | Self::ClientHandshake(_) => Fault::Client,
        }
    }

    /// Advice about a server that cannot be reached over HTTP.
    pub fn http_hint(&self) -> &'static str {
        if self.to_string().contains("invalid peer certificate") {
            "its certificate is not trusted here: name a file with that of its authority in SSL_CERT_FILE, or with its own \
             if it signed itself (it must not say that it is an authority, CA:TRUE)"
        } else {
            "is the server running, and is the address right?"
        }
    }

    /// `how` tells the user what to do where a login is required.
    pub(crate) fn of_connect(failure: ConnectFailure, server: &str, how: String) -> Self {
        let server = server.to_owned();
        match failure {
            ConnectFailure::LoginRequired { .. } => Self::LoginRequired { server, how },
            ConnectFailure::TokenFile(reason) => Self::TokenFile { server, reason },
            ConnectFailure::Exhausted(attempts) => Self::Connect { server, attempts },
        }
    }
}

fn refuses_credentials(attempt: &Attempt) -> bool {
    attempt.outcome.as_ref().err().map(String::as_str) == Some(CREDENTIALS_REFUSED)
}

fn list(attempts: &[Attempt]) -> String {
    let attempts: Vec<String> = attempts.iter().map(ToString::to_string).collect();
    attempts.join("; ")
}
