//! The history behind the admin API. The bridge keeps none: the program hands one in, as it does the pages of the console.

use ahma_common::contract::OutputPlace;
use futures::future::BoxFuture;

use crate::console::Operator;

/// Everything that is written down, as far as an operator may see it.
pub trait Archive: std::fmt::Debug + Send + Sync {
    fn answer(
        &self,
        operator: Operator,
        question: ArchiveQuestion,
    ) -> BoxFuture<'_, Result<ArchiveAnswer, ArchiveError>>;
}

/// A question of the admin API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchiveQuestion {
    /// A search; the query is that of the request.
    Operations {
        query: String,
    },
    /// Everything known of one operation but its output.
    Operation {
        id: String,
    },
    Output {
        id: String,
        place: OutputPlace,
    },
    /// Findings from this index on.
    Findings {
        id: String,
        from: usize,
    },
    /// One operation in a format for other programs.
    Export {
        id: String,
        form: String,
    },
    /// Stops what another server process runs; answers when it has ended. The agent is told why.
    Stop {
        id: String,
        why: String,
    },
    /// The servers that live, with their tools and their sandbox.
    Servers,
}

#[derive(Debug)]
pub struct ArchiveAnswer {
    /// The content type.
    pub kind: &'static str,
    pub body: Vec<u8>,
}

/// Reason why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    #[error("{0}")]
    Unknown(String),
    /// A mistake in the request.
    #[error("{0}")]
    Malformed(String),
    /// It did not happen.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Unreadable(String),
}
