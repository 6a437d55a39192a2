//! The data of the pages, read from the history in all its places, and the one change they make there.

use std::{
    cmp::Reverse,
    path::PathBuf,
    time::{Duration, Instant},
};

use ahma_http_bridge::Operator;

use crate::{
    history::{
        HistoryError, HistoryReader, OperationFilter, OperationRow, ServerRow, SharedReader, UsageSample,
    },
    operation::{Operation, PageError},
};

/// Bytes of output on one page, and in one step of an export.
pub(super) const PAGE_BYTES: usize = 256 << 10;

/// A command has five seconds for its last words, and its server looks for requests a few times a second.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
const STOP_GLANCE: Duration = Duration::from_millis(100);

/// The history as an operator may see it.
#[derive(Debug, Clone)]
pub(super) struct HistorySource {
    /// Servers whose scope holds the usual place have theirs elsewhere.
    places: Vec<SharedReader>,
}

/// Reason why there is no page.
#[derive(Debug, thiserror::Error)]
pub(super) enum SourceError {
    #[error("operation {0} is not known here; what is too old is dropped (--keep, --keep-bytes)")]
    UnknownOperation(String),
    #[error("{0} is not known here")]
    Unknown(String),
    #[error("the history cannot be read")]
    History(#[from] HistoryError),
    #[error("the output cannot be read")]
    Output(#[from] PageError),
    #[error("{0}")]
    Refused(String),
    /// A field of a form, or a parameter, that cannot be what it is.
    #[error("{0}")]
    Malformed(String),
}

/// An operation with all that is known of it.
#[derive(Debug, Clone)]
pub(super) struct ShownOperation {
    pub(super) row: OperationRow,
    pub(super) operation: Operation,
    pub(super) usage: Vec<UsageSample>,
    place: SharedReader,
}

impl ShownOperation {
    /// Advice on how it ended, and what the sandbox did about it.
    pub(super) fn hints(&self) -> Vec<String> {
        let outcome = self.operation.ended();
        let said = outcome.iter().flat_map(|outcome| {
            let hints = [&outcome.hint, &outcome.sandbox_hint];
            hints.into_iter().flatten().chain(&outcome.notices)
        });
        said.cloned().collect()
    }

    /// Takes over what has been written since.
    pub(super) async fn refresh(&mut self) -> Result<(), SourceError> {
        let (id, operation) = (self.row.id.clone(), self.operation.clone());
        let looked = self.place.read(move |reader| {
            let Some(row) = reader.operation(None, id.as_str())? else {
                return Ok(None);
            };
            reader.refresh(&row, &operation)?;
            let usage = reader.usage(&row)?;
            Ok(Some((row, usage)))
        });
        (self.row, self.usage) = looked.await?.ok_or_else(|| unknown(self.row.id.as_str()))?;
        Ok(())
    }
}

/// If clients have names, an operator is not the local user, whose own work is none of an operator's business.
pub(super) fn sees_only_named(operator: &Operator) -> bool {
    operator
        .server
        .as_ref()
        .is_some_and(|server| server.knows_clients())
}

impl HistorySource {
    pub(super) fn new(state_dirs: &[PathBuf]) -> Self {
        Self {
            places: state_dirs
                .iter()
                .map(|place| SharedReader::below(place))
                .collect(),
        }
    }

    /// The view of each place.
    pub(super) async fn read<T: Default + Send + 'static>(
        &self,
        look: impl Fn(&HistoryReader) -> Result<T, HistoryError> + Clone + Send + 'static,
    ) -> Result<Vec<T>, SourceError> {
        let mut seen = Vec::new();
        for place in &self.places {
            seen.push(place.read(look.clone()).await?);
        }
        Ok(seen)
    }

    pub(super) async fn operations(
        &self,
        operator: &Operator,
        filter: OperationFilter,
    ) -> Result<Vec<OperationRow>, SourceError> {
        let filter = OperationFilter {
            only_named: sees_only_named(operator),
            ..filter
        };
        let limit = filter.limit;
        let mut rows = self
            .read(move |reader| reader.operations(&filter))
            .await?
            .concat();
        if self.places.len() > 1 {
            rows.sort_by_key(|row| Reverse(row.created_at));
            rows.truncate(limit);
        }
        Ok(rows)
    }

    pub(super) async fn operation(
        &self,
        operator: &Operator,
        id: &str,
    ) -> Result<ShownOperation, SourceError> {
        let (row, place) = self.find(operator, id).await?;
        let recalled = place.read(move |reader| {
            let operation = reader.recall(&row, PAGE_BYTES)?;
            let usage = reader.usage(&row)?;
            Ok(Some((row, operation, usage)))
        });
        let (row, operation, usage) = recalled.await?.ok_or_else(|| unknown(id))?;
        Ok(ShownOperation {
            row,
            operation,
            usage,
            place,
        })
    }

    /// Where an operation is written down, and its row as it is now.
    pub(super) async fn find(
        &self,
        operator: &Operator,
        id: &str,
    ) -> Result<(OperationRow, SharedReader), SourceError> {
        let only_named = sees_only_named(operator);
        for place in &self.places {
            let wanted = id.to_owned();
            let row = place.read(move |reader| reader.operation(None, &wanted)).await?;
            if let Some(row) = row.filter(|row| !only_named || row.owner.principal.name().is_some()) {
                return Ok((row, place.clone()));
            }
        }
        Err(unknown(id))
    }

    /// Servers that live, the newest first.
    pub(super) async fn servers(&self, operator: &Operator) -> Result<Vec<ServerRow>, SourceError> {
        let mut servers = self.read(HistoryReader::servers).await?.concat();
        let only_bridged = sees_only_named(operator);
        servers.retain(|server| server.is_alive && (!only_bridged || has_bridge(server)));
        servers.sort_by_key(|server| Reverse(server.started_at));
        Ok(servers)
    }

    /// Stops an operation, wherever it runs. Where no server process at hand has it, its own is asked through the history.
    pub(super) async fn cancel(
        &self,
        operator: &Operator,
        id: &str,
        reason: Option<&str>,
    ) -> Result<(), SourceError> {
        let (row, place) = self.find(operator, id).await?;
        if row.state.is_final() {
            return Ok(());
        }
        if let Some(server) = &operator.server
            && server
                .cancel(operator, id, reason)
                .await
                .map_err(SourceError::Refused)?
        {
            return Ok(());
        }
        let why = operator.did("cancelled it", reason);
        request_stop(&place, row, why).await
    }

    /// Has the server that runs an operation stop it, and waits for its end. False if it had ended already.
    pub(super) async fn stop(&self, operator: &Operator, id: &str, why: String) -> Result<bool, SourceError> {
        let (row, place) = self.find(operator, id).await?;
        if row.state.is_final() {
            return Ok(false);
        }
        request_stop(&place, row, why).await?;
        let deadline = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < deadline {
            tokio::time::sleep(STOP_GLANCE).await;
            if self.find(operator, id).await?.0.state.is_final() {
                return Ok(true);
            }
        }
        Err(SourceError::Refused(format!(
            "{id} was asked to stop, and has not ended yet"
        )))
    }
}

fn unknown(id: &str) -> SourceError {
    SourceError::UnknownOperation(id.to_owned())
}

async fn request_stop(place: &SharedReader, row: OperationRow, why: String) -> Result<(), SourceError> {
    let asked = place.read(move |reader| reader.request_stop(&row, Some(&why)));
    Ok(asked.await?)
}

pub(super) fn facts(server: &ServerRow) -> serde_json::Value {
    let facts = server.facts.as_deref();
    facts
        .and_then(|facts| serde_json::from_str(facts).ok())
        .unwrap_or_default()
}

fn has_bridge(server: &ServerRow) -> bool {
    facts(server)["has_bridge"] == true
}
