//! What an isolated session is waiting for, as a pure function of what happened.
//!
//! The scope is decided once, by the first answer to `roots/list`, and never changes: that is the promise
//! this file keeps, and its test is a table. Nothing here does anything; the caller carries out the effects.

use std::path::PathBuf;

/// Where a session stands. Requests wait until it is `Locked` or `Ended`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionState {
    /// The client has not sent `initialize`.
    Opened,
    /// `initialize` was answered by a child that can run nothing; `notifications/initialized` is due.
    Greeted,
    /// The client was asked for its roots.
    AskingRoots,
    /// The scope is fixed for the rest of the session.
    Locked {
        scope: PathBuf,
    },
    Ended {
        reason: EndReason,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionEvent {
    Initialize(RootsSupport),
    Initialized,
    RootsAnswered(RootsAnswer),
    RootsListChanged,
    Closed(EndReason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootsSupport {
    Offered,
    Missing,
}

/// What the client's roots come down to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RootsAnswer {
    /// The first root, checked and canonical.
    Scope(PathBuf),
    /// An empty list, or a client that cannot say.
    Default(PathBuf),
    /// A root that cannot be a scope, and why.
    Unusable(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Let a deferred child answer `initialize`.
    Greet,
    /// Ask the client for its roots.
    AskRoots,
    /// Start the child that serves the session, inside this directory.
    StartChild(PathBuf),
    /// Stop it with all its commands.
    StopChild,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EndReason {
    #[error("the client ended the session")]
    Deleted,
    #[error("the session was idle for too long")]
    Idle,
    #[error("the bridge is shutting down")]
    Shutdown,
    #[error("the client closed its event stream")]
    Disconnected,
    #[error("the client's token is confined to another directory now")]
    Moved,
    #[error("`initialize` failed")]
    NotInitialized,
    #[error(
        "roots_change_rejected: the workspace roots changed after the scope was locked; start a new session"
    )]
    RootsChanged,
    #[error("root_rejected: {0}")]
    RootRejected(String),
}

impl EndReason {
    /// Whether the client shall be told of the reason (403) or just finds no session (404).
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::RootsChanged | Self::RootRejected(_))
    }
}

impl SessionState {
    /// The next state and what must be done to get there. `default_scope` is for clients without roots.
    pub(crate) fn on(self, event: SessionEvent, default_scope: &std::path::Path) -> (Self, Vec<Effect>) {
        use SessionEvent as Event;
        match (self, event) {
            // An ended session stays ended, for the first reason.
            (ended @ Self::Ended { .. }, _) => (ended, vec![]),
            (_, Event::Closed(reason)) => (Self::Ended { reason }, vec![Effect::StopChild]),

            (Self::Opened, Event::Initialize(RootsSupport::Offered)) => (Self::Greeted, vec![Effect::Greet]),
            (Self::Opened, Event::Initialize(RootsSupport::Missing)) => lock(default_scope.to_owned()),
            (Self::Greeted, Event::Initialized) => (Self::AskingRoots, vec![Effect::AskRoots]),
            (Self::AskingRoots, Event::RootsAnswered(answer)) => match answer {
                RootsAnswer::Scope(scope) | RootsAnswer::Default(scope) => lock(scope),
                RootsAnswer::Unusable(why) => (
                    Self::Ended {
                        reason: EndReason::RootRejected(why),
                    },
                    vec![Effect::StopChild],
                ),
            },
            (Self::Locked { .. }, Event::RootsListChanged) => (
                Self::Ended {
                    reason: EndReason::RootsChanged,
                },
                vec![Effect::StopChild],
            ),

            // Before the lock a change is no change: the answer that counts is still to come.
            (state @ (Self::Opened | Self::Greeted | Self::AskingRoots), Event::RootsListChanged) => {
                (state, vec![])
            }
            // Repeated or early messages of a client change nothing, the scope least of all.
            (state, Event::Initialize(_) | Event::Initialized | Event::RootsAnswered(_)) => (state, vec![]),
        }
    }
}

fn lock(scope: PathBuf) -> (SessionState, Vec<Effect>) {
    (
        SessionState::Locked { scope: scope.clone() },
        vec![Effect::StartChild(scope)],
    )
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod state_tests;
