//! All history databases of a user, read as one.

use std::{
    cmp::Reverse,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{
    app::exit::{Failure, chain, notice},
    history::{FindingFilter, FindingRow, HistoryError, HistoryReader, OperationFilter, OperationRow},
    operation::Operation,
};

/// Bytes of output in one answer of a search.
const ANSWER_BYTES: usize = 1 << 20;

/// The history of all servers of the user. Servers whose scope contains the usual directory keep theirs elsewhere. There
/// may be none yet.
pub(super) struct Archive {
    parts: Vec<ArchivePart>,
}

struct ArchivePart {
    place: PathBuf,
    reader: HistoryReader,
}

/// An operation, and the part of the archive that it is in.
pub(super) struct FoundRow<'a> {
    part: &'a ArchivePart,
    pub(super) row: OperationRow,
}

impl ArchivePart {
    fn ask<T>(&self, look: impl FnOnce(&HistoryReader) -> Result<T, HistoryError>) -> Result<T, Failure> {
        look(&self.reader).map_err(|error| unusable(&self.place, &error))
    }

    fn remove(&mut self, rows: &[OperationRow]) -> Result<RemovalCount, Failure> {
        let removed = self
            .reader
            .remove(rows)
            .map_err(|error| unusable(&self.place, &error))?;
        Ok(RemovalCount {
            removed,
            running: rows.len() - removed,
        })
    }
}

impl FoundRow<'_> {
    pub(super) fn recall(&self) -> Result<Operation, Failure> {
        self.part.ask(|reader| reader.recall(&self.row, ANSWER_BYTES))
    }
}

impl Archive {
    /// Skips, with a warning, databases that cannot be read; fails if none can.
    pub(super) fn open(places: Vec<PathBuf>) -> Result<Self, Failure> {
        let (mut parts, mut failures) = (Vec::new(), Vec::new());
        for place in places {
            match HistoryReader::open(&place) {
                Ok(reader) => parts.extend(reader.map(|reader| ArchivePart { place, reader })),
                Err(error) => failures.push(unusable(&place, &error)),
            }
        }
        if parts.is_empty() && !failures.is_empty() {
            return Err(failures.swap_remove(0));
        }
        for failure in failures {
            notice(format_args!("warning: left out: {failure}"));
        }
        Ok(Self { parts })
    }

    /// Operations of all parts, the newest first.
    pub(super) fn operations(&self, filter: &OperationFilter) -> Result<Vec<OperationRow>, Failure> {
        self.newest(
            filter.limit,
            |reader| reader.operations(filter),
            |row| row.created_at,
        )
    }

    /// Findings of all parts, of the newest operation first.
    pub(super) fn found(&self, filter: &FindingFilter) -> Result<Vec<FindingRow>, Failure> {
        self.newest(filter.limit, |reader| reader.findings(filter), |row| row.found_at)
    }

    fn newest<T>(
        &self,
        limit: usize,
        look: impl Fn(&HistoryReader) -> Result<Vec<T>, HistoryError>,
        time: impl Fn(&T) -> SystemTime,
    ) -> Result<Vec<T>, Failure> {
        let mut rows = Vec::new();
        for part in &self.parts {
            rows.extend(part.ask(&look)?);
        }
        if self.parts.len() > 1 {
            rows.sort_by_key(|row| Reverse(time(row)));
            rows.truncate(limit);
        }
        Ok(rows)
    }

    pub(super) fn row(&self, id: &str) -> Result<FoundRow<'_>, Failure> {
        for part in &self.parts {
            if let Some(row) = part.ask(|reader| reader.operation(None, id))? {
                return Ok(FoundRow { part, row });
            }
        }
        Err(Failure::user(format!("no operation is called {id}")).with_hint(
            "ahma_mcp history lists them; those that are too old are dropped (--keep, --keep-bytes)",
        ))
    }

    pub(super) fn remove_all(&mut self, filter: &OperationFilter) -> Result<RemovalCount, Failure> {
        let mut removal = RemovalCount::default();
        for part in &mut self.parts {
            let rows = part.ask(|reader| reader.operations(filter))?;
            removal.add(part.remove(&rows)?);
        }
        Ok(removal)
    }

    /// Removes none if one of them does not exist.
    pub(super) fn remove_named(&mut self, ids: &[String]) -> Result<RemovalCount, Failure> {
        for id in ids {
            self.row(id)?;
        }
        let mut removal = RemovalCount::default();
        for part in &mut self.parts {
            let rows = ids.iter().map(|id| part.ask(|reader| reader.operation(None, id)));
            let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
            removal.add(part.remove(&rows.into_iter().flatten().collect::<Vec<_>>())?);
        }
        Ok(removal)
    }
}

/// Result of a request to remove operations.
#[derive(Debug, Default)]
pub(super) struct RemovalCount {
    pub(super) removed: usize,
    /// They stay.
    pub(super) running: usize,
}

impl RemovalCount {
    fn add(&mut self, more: Self) {
        self.removed += more.removed;
        self.running += more.running;
    }
}

fn unusable(place: &Path, error: &HistoryError) -> Failure {
    Failure::user(format!("{}: {}", place.display(), chain(error))).with_hint(match error {
        HistoryError::Newer { .. } => "use the newer version of ahma_mcp that wrote it",
        HistoryError::Directory { .. } | HistoryError::Database(_) | HistoryError::Output(_) => {
            "the next server that starts moves a damaged history aside"
        }
    })
}
