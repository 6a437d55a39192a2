//! The history for the admin API: the same that the pages show, as JSON, and by the same rules of who sees what.

use ahma_http_bridge::{Archive, ArchiveAnswer, ArchiveError, ArchiveQuestion, Operator};
use futures::{FutureExt as _, future::BoxFuture};
use serde_json::{Value, json};

use super::{
    history::{ROWS, filter},
    output,
    query::Query,
    source::{HistorySource, ShownOperation, SourceError, facts},
};
use crate::{
    history::{OperationFilter, ServerRow, document},
    operation::rfc3339,
};

/// Most operations of one answer.
const MAX_ROWS: usize = 1_000;

impl Archive for HistorySource {
    fn answer(
        &self,
        operator: Operator,
        question: ArchiveQuestion,
    ) -> BoxFuture<'_, Result<ArchiveAnswer, ArchiveError>> {
        async move { Ok(found(self, &operator, question).await?) }.boxed()
    }
}

async fn found(
    source: &HistorySource,
    operator: &Operator,
    question: ArchiveQuestion,
) -> Result<ArchiveAnswer, SourceError> {
    let answer = match question {
        ArchiveQuestion::Operations { query } => {
            let rows = source.operations(operator, asked(&Query::read(&query))?).await?;
            json!({ "operations": rows.iter().map(document::operation).collect::<Vec<_>>() })
        }
        ArchiveQuestion::Operation { id } => record(&source.operation(operator, &id).await?),
        ArchiveQuestion::Output { id, place } => {
            let ShownOperation { operation, .. } = source.operation(operator, &id).await?;
            document::output(&operation, place).await?
        }
        ArchiveQuestion::Findings { id, from } => {
            let ShownOperation { operation, .. } = source.operation(operator, &id).await?;
            document::findings(&operation, from)
        }
        ArchiveQuestion::Export { id, form } => {
            let file = output::file(source, operator, &id, &form).await?;
            return Ok(ArchiveAnswer {
                kind: file.kind,
                body: file.body,
            });
        }
        ArchiveQuestion::Stop { id, why } => {
            let stopped = source.stop(operator, &id, why).await?;
            json!({ "stopped": stopped.then_some(id).as_slice() })
        }
        ArchiveQuestion::Servers => {
            let servers = source.servers(operator).await?;
            json!({ "servers": servers.iter().map(server).collect::<Vec<_>>() })
        }
    };
    Ok(ArchiveAnswer {
        kind: "application/json",
        body: answer.to_string().into_bytes(),
    })
}

fn asked(query: &Query) -> Result<OperationFilter, SourceError> {
    let limit = query.read_as("limit", |limit| limit.parse().ok())?;
    Ok(OperationFilter {
        limit: limit.unwrap_or(ROWS).min(MAX_ROWS),
        ..filter(query)?
    })
}

/// Everything known of an operation but its output and its findings.
fn record(known: &ShownOperation) -> Value {
    let mut record = document::operation(&known.row);
    record["usage"] = json!(known.usage);
    let hints = known.hints();
    if !hints.is_empty() {
        record["hints"] = json!(hints);
    }
    record
}

fn server(row: &ServerRow) -> Value {
    json!({
        "server": row.server,
        "pid": row.pid,
        "scope": row.scope,
        "version": row.version,
        "started_at": rfc3339(row.started_at),
        "facts": facts(row),
    })
}

impl From<SourceError> for ArchiveError {
    fn from(error: SourceError) -> Self {
        let message = ahma_common::error_chain(&error).to_string();
        match error {
            SourceError::UnknownOperation(_) | SourceError::Unknown(_) => Self::Unknown(message),
            SourceError::Malformed(_) => Self::Malformed(message),
            SourceError::Refused(_) => Self::Refused(message),
            SourceError::History(_) | SourceError::Output(_) => Self::Unreadable(message),
        }
    }
}
