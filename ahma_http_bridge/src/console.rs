//! Facts about the server and its visitor that the pages of a console need.
//!
//! The bridge has no pages of its own: the program hands them in as a router. `routes/console.rs` controls access.

use std::path::PathBuf;
use std::sync::Arc;

use ahma_common::contract::OutputPlace;
use serde_json::Value;

use crate::auth::{AuthSettings, Principal, TokenSource};
use crate::bridge::Bridge;
use crate::bridge_admin::{AdminError, Asked, did};

/// The person who requests a page; an extension of every request.
#[derive(Debug, Clone)]
pub enum Visitor {
    Nobody {
        entry: Entry,
        /// The server that clients can be connected to; none for a console on its own.
        server: Option<ServerAccess>,
        /// Reason why a login failed.
        refused: Option<String>,
    },
    Operator(Operator),
}

/// The way to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// By the link that the terminal shows.
    Link,
    /// By a button: a visitor who can reach the server may do everything anyway.
    Button,
    /// By the token of an operator.
    Token,
}

/// A person who is logged in.
#[derive(Debug, Clone)]
pub struct Operator {
    pub name: Arc<str>,
    /// Every form has to send it as `form_token`. Requests without it do not get to a page.
    pub form_token: Arc<str>,
    /// The server that has these pages at `/`; none for a console on its own.
    pub server: Option<ServerAccess>,
}

impl Operator {
    /// The sentence that a client reads about what was done to its work.
    pub fn did(&self, deed: &str, reason: Option<&str>) -> String {
        did(&self.name, deed, reason)
    }
}

/// The server behind a console at `/`.
#[derive(Debug, Clone)]
pub struct ServerAccess(pub(crate) Arc<Bridge>);

impl ServerAccess {
    /// Open sessions, in the form of the admin API.
    pub fn sessions(&self) -> Vec<Value> {
        self.0.described_sessions()
    }

    /// True if clients have names, so that an operator is not the local user.
    pub fn knows_clients(&self) -> bool {
        !matches!(self.0.settings.auth, AuthSettings::None)
    }

    /// True if its clients come with a token.
    pub fn takes_tokens(&self) -> bool {
        matches!(self.0.settings.auth, AuthSettings::Token(_))
    }

    /// True if `ahma_mcp token new` makes tokens for it.
    pub fn has_tokens_file(&self) -> bool {
        matches!(self.0.settings.auth, AuthSettings::Token(TokenSource::File(_)))
    }

    pub fn has_tls(&self) -> bool {
        self.0.settings.tls.is_some()
    }

    pub fn audit_file(&self) -> Option<PathBuf> {
        self.0.settings.audit_file.clone()
    }

    /// True if there is a server process to ask. With isolation there is none without a session.
    pub fn has_backends(&self) -> bool {
        !self.0.children().is_empty()
    }

    /// Operations that have not ended, in the form of the admin API.
    pub async fn open_operations(&self) -> Vec<Value> {
        self.0.described_operations(Asked::Open).await
    }

    pub async fn operation(&self, id: &str) -> Option<Value> {
        let found = self.0.described_operations(Asked::One(id)).await;
        found.into_iter().next()
    }

    pub async fn output(&self, id: &str, place: OutputPlace) -> Result<Value, String> {
        let read = self.0.read_output(id, place).await;
        read.map_err(|error| error.to_string())
    }

    pub async fn findings(&self, id: &str) -> Result<Value, String> {
        let read = self.0.read_findings(id, 0).await;
        read.map_err(|error| error.to_string())
    }

    /// Stops an operation; answers when nothing of it is left. False if no server process here has it.
    pub async fn cancel(&self, operator: &Operator, id: &str, reason: Option<&str>) -> Result<bool, String> {
        match self.0.cancel_operation(&principal(operator), id, reason).await {
            Ok(_) => Ok(true),
            Err(AdminError::UnknownOperation(_)) => Ok(false),
            Err(error @ AdminError::Backend(_)) => Err(error.to_string()),
        }
    }

    /// Ends a session with all it runs. False if there is none of that id.
    pub async fn end_session(&self, operator: &Operator, id: &str, reason: Option<&str>) -> bool {
        self.0.end_session_for(&principal(operator), id, reason).await
    }
}

fn principal(operator: &Operator) -> Principal {
    Principal {
        name: Arc::clone(&operator.name),
        ..Principal::anonymous()
    }
}
