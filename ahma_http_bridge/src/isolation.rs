//! The choice between one child for all clients and one for each session.

/// Clients that share a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// One child serves all.
    Shared,
    /// Each session has its own, confined to the client's first root.
    PerSession,
}
