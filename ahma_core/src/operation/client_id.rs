//! The client that an operation comes from, and the principal that it belongs to.

use std::sync::Arc;

/// One of several clients that share an engine, by the name that the bridge gave it. The default is the
/// client of an engine that has only one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ClientId(Option<Arc<str>>);

impl ClientId {
    pub fn named(name: &str) -> Self {
        Self(Some(name.into()))
    }

    /// The name it was given, if there are several clients.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Where a call came from.
#[derive(Debug, Clone, Default)]
pub struct CallOrigin {
    pub client: ClientId,
    pub principal: Principal,
    /// Name that the client's program gives itself.
    pub program: Option<String>,
    /// The arguments as JSON, without secrets and without what is too long to write down.
    pub arguments: Option<String>,
}

/// The authenticated identity behind a client, which outlives its sessions: the name of a token or the subject of an OAuth
/// issuer. The default is the local user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Principal(Option<Arc<str>>);

impl Principal {
    pub fn named(name: &str) -> Self {
        Self(Some(name.into()))
    }

    /// Its name; none for the local user.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}
