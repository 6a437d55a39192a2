//! The client of a request, and its rights.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A client as far as rights are concerned. Two requests with the same name are the same client.
#[derive(Debug, Clone)]
pub(crate) struct Principal {
    pub(crate) name: Arc<str>,
    /// It has authenticated.
    pub(crate) is_known: bool,
    /// The directory this client is confined to.
    pub(crate) scope: Option<PathBuf>,
    pub(crate) max_sessions: Option<usize>,
    /// Patterns of the tools that it may list and call; all if there are none.
    pub(crate) tools: Option<Arc<str>>,
    /// Without authentication there is none, and the local user may do everything.
    pub(crate) role: Option<Role>,
}

/// The use that a credential is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Calls tools.
    #[default]
    Agent,
    /// Looks after the server: the admin API and the metrics, but no tools.
    Operator,
    /// Reads the metrics, and nothing else.
    Metrics,
}

impl Principal {
    /// True if it may do what this role is for.
    pub(crate) fn may_act_as(&self, role: Role) -> bool {
        self.role.is_none_or(|own| own == role)
    }

    /// The name that a backend is given; none without authentication, where every client is the local user.
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
            tools: None,
            role: None,
        }
    }
}
