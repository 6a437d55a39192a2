//! The one error of everything below the routes, and whose fault it is. `http::refusal` turns it into a status.

use ahma_common::envelope::EnvelopeError;

use super::state::EndReason;
use crate::child::{CallFailure, CallOutcome, StartError};
use crate::session_store::StoreError;

/// Reason why a request gets no answer of a child.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("{0}")]
    Ended(EndReason),
    #[error("the session is initialised already")]
    InitializedAlready,
    #[error("{0}")]
    NotReady(&'static str),
    #[error("the session has as many open requests as it may have ({0}); wait for one to be answered")]
    TooManySessionCalls(usize),
    #[error("this client has as many open requests as it may have ({0}); wait for one to be answered")]
    TooManyClientCalls(usize),
    #[error("this client has as many sessions as it may have ({0}); end one first")]
    TooManyClientSessions(usize),
    #[error("the server has as many sessions as it may have ({0}); try again later")]
    TooManySessions(usize),
    #[error("{0}")]
    Pressure(&'static str),
    #[error("the server is shutting down")]
    ShuttingDown,
    #[error("sessions of other servers cannot be looked up: {0}")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Malformed(#[from] EnvelopeError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Call(#[from] CallFailure),
}

/// The party at fault; the status follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Client,
    Child,
    Bridge,
}

/// The end of a request.
#[derive(Debug, Clone)]
pub(crate) enum RequestOutcome {
    Result,
    /// The child answered with this JSON-RPC error code.
    RpcError(i64),
    Failed(RequestError),
}

impl RequestError {
    pub(crate) fn fault(&self) -> Fault {
        match self {
            Self::Ended(_)
            | Self::InitializedAlready
            | Self::NotReady(_)
            | Self::TooManySessionCalls(_)
            | Self::TooManyClientCalls(_)
            | Self::TooManyClientSessions(_)
            | Self::Malformed(_)
            | Self::Call(
                CallFailure::Cancelled
                | CallFailure::SessionEnded
                | CallFailure::Unreadable
                | CallFailure::NotForClients
                | CallFailure::CannotLimit,
            ) => Fault::Client,
            Self::Call(CallFailure::ChildDied | CallFailure::TimedOut | CallFailure::ChildStuck)
            | Self::Start(
                StartError::Spawn(_)
                | StartError::Died
                | StartError::Silent
                | StartError::Refused(_)
                | StartError::Waiting(_),
            ) => Fault::Child,
            Self::TooManySessions(_)
            | Self::Pressure(_)
            | Self::ShuttingDown
            | Self::Store(_)
            | Self::Call(CallFailure::Stopped)
            | Self::Start(StartError::Stopped) => Fault::Bridge,
        }
    }
}

impl From<CallOutcome> for RequestOutcome {
    fn from(outcome: CallOutcome) -> Self {
        match outcome {
            CallOutcome::Result => Self::Result,
            CallOutcome::RpcError(code) => Self::RpcError(code),
            CallOutcome::Failed(failure) => Self::Failed(failure.into()),
        }
    }
}
