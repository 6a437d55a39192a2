//! The state of a session, as a pure function of its events.
//!
//! The scope of an isolated session is decided once, by the first answer to `roots/list`, and never changes: that is the
//! promise this file keeps, and its test is a table. A session of the shared backend is `Shared` until it ends. Nothing
//! here does anything; the caller carries out the effects.

use std::path::PathBuf;

/// Progress of a session towards its scope. Requests wait until [`SessionState::is_decided`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionState {
    /// The client has not sent `initialize`.
    Opened,
    /// `initialize` was answered by a child that can run nothing; `notifications/initialized` is due.
    AwaitingInitialized,
    /// The client was asked for its roots.
    AskingRoots,
    /// The scope is fixed for the rest of the session.
    Locked {
        scope: PathBuf,
    },
    /// The shared backend answers; it has a scope of its own.
    Shared,
    Ended {
        reason: EndReason,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionEvent {
    Initialize {
        roots: RootsSupport,
        /// The scope of a client without roots.
        default_scope: PathBuf,
    },
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

/// Meaning of the client's roots.
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
    InitializeDeferred,
    /// Ask the client for its roots.
    AskRoots,
    /// Start the child that serves the session, inside this directory.
    StartChild(PathBuf),
    /// End the session's work: a child of its own is stopped, a shared one is told.
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
    #[error("the session was ended at another server")]
    EndedElsewhere,
    #[error("the client closed its event stream")]
    Disconnected,
    #[error("the client's token is confined to another directory now")]
    Moved,
    /// By an operator; says who and why.
    #[error("{0}")]
    Operator(String),
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
    /// True if the session is over at every bridge that shares it. One that is not used here may be used elsewhere.
    pub(crate) fn ends_everywhere(&self) -> bool {
        matches!(
            self,
            Self::Deleted | Self::Moved | Self::Operator(_) | Self::RootsChanged
        )
    }

    /// True if the client is told the reason; otherwise it just finds no session.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::RootsChanged | Self::RootRejected(_) | Self::Operator(_)
        )
    }
}

impl SessionState {
    /// True once it is known which backend answers, or that none will.
    pub(crate) fn is_decided(&self) -> bool {
        matches!(self, Self::Locked { .. } | Self::Shared | Self::Ended { .. })
    }

    /// The next state and what must be done to get there.
    pub(crate) fn on(self, event: SessionEvent) -> (Self, Vec<Effect>) {
        use SessionEvent as Event;
        match (self, event) {
            // An ended session stays ended, for the first reason.
            (ended @ Self::Ended { .. }, _) => (ended, vec![]),
            (_, Event::Closed(reason)) => (Self::Ended { reason }, vec![Effect::StopChild]),

            (Self::Opened, Event::Initialize { roots, default_scope }) => match roots {
                RootsSupport::Offered => (Self::AwaitingInitialized, vec![Effect::InitializeDeferred]),
                RootsSupport::Missing => lock(default_scope),
            },
            (Self::AwaitingInitialized, Event::Initialized) => (Self::AskingRoots, vec![Effect::AskRoots]),
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

            // Before the lock a change is no change: the answer that counts is still to come. The shared backend was
            // promised no roots.
            (
                state @ (Self::Opened | Self::AwaitingInitialized | Self::AskingRoots | Self::Shared),
                Event::RootsListChanged,
            ) => (state, vec![]),
            // Repeated or early messages of a client change nothing, the scope least of all.
            (state, Event::Initialize { .. } | Event::Initialized | Event::RootsAnswered(_)) => {
                (state, vec![])
            }
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
mod tests;
