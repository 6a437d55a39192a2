//! The one a request is made by.

use std::path::PathBuf;
use std::sync::Arc;

/// A client as far as rights are concerned. Two requests with the same name are the same client.
#[derive(Debug, Clone)]
pub(crate) struct Principal {
    pub(crate) name: Arc<str>,
    /// It has authenticated.
    pub(crate) is_known: bool,
    /// The directory this client is confined to.
    pub(crate) scope: Option<PathBuf>,
    pub(crate) max_sessions: Option<usize>,
}

impl Principal {
    /// The name that a backend is told; none without authentication, where every client is the local user.
    pub(crate) fn identity(&self) -> Option<Arc<str>> {
        self.is_known.then(|| Arc::clone(&self.name))
    }

    /// Every client of a bridge without authentication.
    pub(crate) fn anonymous() -> Self {
        Self {
            name: "anonymous".into(),
            is_known: false,
            scope: None,
            max_sessions: None,
        }
    }
}
