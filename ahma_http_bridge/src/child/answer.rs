//! The answer to a call: a JSON-RPC message, even if the child gave none.

use ahma_common::envelope::{MAX_ID_BYTES, error_message};
use bytes::Bytes;

/// The end of a call.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) body: Bytes,
    pub(crate) outcome: CallOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    Result,
    /// The child answered with this JSON-RPC error code.
    RpcError(i64),
    /// The child did not answer.
    Failed(CallFailure),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallFailure {
    #[error("the server process ended before it answered")]
    ChildDied,
    #[error("the server process did not answer in time")]
    TimedOut,
    #[error("the request was cancelled")]
    Cancelled,
    #[error("the session ended before the answer")]
    SessionEnded,
    #[error("the server process was stopped before it answered")]
    Stopped,
    #[error("the server process does not read its input")]
    ChildStuck,
    #[error(
        "`params` is no object, names a key twice, or a progress token of more than {MAX_ID_BYTES} bytes"
    )]
    Unreadable,
    #[error("no such method for clients")]
    NotForClients,
    #[error(
        "the token is limited to some tools, and this server program knows of no limit; issue it without --tools"
    )]
    CannotLimit,
}

impl Answer {
    /// For a reply that was dropped, which only happens when the runtime ends.
    pub(crate) fn lost() -> Self {
        let failure = CallFailure::Stopped;
        let body = error_message(None, failure.rpc_code(), &failure.to_string());
        Self {
            body,
            outcome: CallOutcome::Failed(failure),
        }
    }
}

impl CallFailure {
    /// The failure as the end of the request with this id.
    pub(crate) fn answer(self, id: &str) -> Answer {
        Answer {
            body: error_message(Some(id), self.rpc_code(), &self.to_string()),
            outcome: CallOutcome::Failed(self),
        }
    }

    /// Codes from the range JSON-RPC leaves to implementations.
    pub(crate) fn rpc_code(self) -> i64 {
        match self {
            Self::ChildDied | Self::Stopped => -32000,
            Self::TimedOut => -32001,
            Self::SessionEnded => -32003,
            Self::ChildStuck => -32004,
            Self::Unreadable => -32600,
            Self::NotForClients => -32601,
            Self::CannotLimit => -32602,
            Self::Cancelled => -32800,
        }
    }
}
