//! The client that an operation belongs to.

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
