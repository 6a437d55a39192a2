//! Reads the history: for `ahma_mcp history`, for the console, and for servers that look for operations not in memory.

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use rusqlite::{Connection, ToSql, params, params_from_iter};

use super::{
    database::{Database, HistoryError, row, rows},
    directory::HistoryDir,
    recovery, retention,
    rows::{
        FindingFilter, FindingRow, OperationFilter, OperationRow, Owner, ServerRow, Span, TaskRow,
        from_millis, to_millis,
    },
    statements::{COLUMNS, read_operation},
    usage::UsageSample,
};
use crate::{observe::Severity, operation::OperationId};

/// A connection for reading. Operations of dead servers are marked as interrupted before they are read.
#[derive(Debug)]
pub(crate) struct HistoryReader {
    pub(super) directory: HistoryDir,
    pub(super) database: Database,
}

impl HistoryReader {
    /// The history below a state directory; none if there is none.
    pub(crate) fn open(state_dir: &Path) -> Result<Option<Self>, HistoryError> {
        Self::open_in(HistoryDir::below(state_dir))
    }

    pub(super) fn open_in(directory: HistoryDir) -> Result<Option<Self>, HistoryError> {
        let database = Database::open_existing(&directory)?;
        Ok(database.map(|database| Self { directory, database }))
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.database.connection
    }

    /// False once another database has taken the place of this one.
    pub(super) fn is_current(&self) -> bool {
        self.database.is_at(&self.directory)
    }

    /// Operations, the newest first.
    pub(crate) fn operations(&self, filter: &OperationFilter) -> Result<Vec<OperationRow>, HistoryError> {
        self.mark_interrupted();
        let mut conditions = Conditions::default();
        conditions.of_owner(filter.owner.as_ref());
        conditions.is("o.tool = ?", filter.tool.clone());
        conditions.is("o.state = ?", filter.state.map(|state| state.as_str().to_owned()));
        if let Some(client) = &filter.client {
            conditions.is("(o.principal = ? OR o.program = ?)", Some(client.clone()));
            conditions.values.push(Box::new(client.clone()));
        }
        conditions.is("o.created_at >= ?", filter.since.map(to_millis));
        conditions.is("o.created_at <= ?", filter.until.map(to_millis));
        if let Some(least) = filter.least {
            conditions.texts.push(found_at_least(least));
        }
        if filter.only_named {
            conditions.texts.push("o.principal <> ''");
        }
        if filter.only_open {
            conditions.texts.push("o.state IN ('queued', 'running')");
        }
        conditions.is(
            "instr(o.search, ?) > 0",
            filter.text.as_ref().map(|text| text.to_lowercase()),
        );
        conditions.values.push(Box::new(limit(filter.limit)));
        let query = format!(
            "SELECT {COLUMNS} FROM operations o LEFT JOIN details d USING (number) {} ORDER BY o.number DESC LIMIT ?",
            conditions.clause()
        );
        let values = params_from_iter(&conditions.values);
        Ok(rows(self.connection(), &query, values, read_operation)?)
    }

    /// The operation of that name; none if there is none, or if it is another owner's.
    pub(crate) fn operation(
        &self,
        owner: Option<&Owner>,
        id: &str,
    ) -> Result<Option<OperationRow>, HistoryError> {
        self.mark_interrupted();
        let query =
            format!("SELECT {COLUMNS} FROM operations o LEFT JOIN details d USING (number) WHERE o.id = ?");
        let found = row(self.connection(), &query, [id], read_operation)?;
        Ok(found.filter(|row| owner.is_none_or(|owner| row.owner == *owner)))
    }

    /// Findings, of the newest operation first.
    pub(crate) fn findings(&self, filter: &FindingFilter) -> Result<Vec<FindingRow>, HistoryError> {
        self.mark_interrupted();
        let mut conditions = Conditions::default();
        conditions.of_owner(filter.owner.as_ref());
        conditions.is(
            "f.severity >= ?",
            Some(filter.least as i64).filter(|_| filter.least > Severity::Info),
        );
        conditions.is("o.created_at >= ?", filter.since.map(to_millis));
        conditions.values.push(Box::new(limit(filter.limit)));
        let query = format!(
            "SELECT o.id, o.tool, coalesce(o.started_at, o.created_at), f.finding FROM findings f JOIN operations o USING (number) \
             {} ORDER BY f.number DESC, f.place LIMIT ?",
            conditions.clause()
        );
        let values = params_from_iter(&conditions.values);
        let found = rows(self.connection(), &query, values, |row| {
            // A finding that cannot be read is left out.
            let Ok(finding) = serde_json::from_str(&row.get::<_, String>(3)?) else {
                return Ok(None);
            };
            Ok(Some(FindingRow {
                operation: OperationId::recalled(&row.get::<_, String>(0)?),
                tool: row.get(1)?,
                found_at: from_millis(row.get(2)?),
                finding,
            }))
        })?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Asks the server that runs an operation to stop it.
    pub(crate) fn request_stop(&self, row: &OperationRow, reason: Option<&str>) -> Result<(), HistoryError> {
        self.connection().execute(
            "INSERT OR REPLACE INTO stops (id, server, reason) VALUES (?, ?, ?)",
            params![row.id.as_str(), row.server, reason],
        )?;
        Ok(())
    }

    /// Removes operations that have ended, and returns their number.
    pub(crate) fn remove(&mut self, rows: &[OperationRow]) -> Result<usize, HistoryError> {
        let ended = rows.iter().filter(|row| row.state.is_final());
        let numbers: Vec<i64> = ended.map(|row| row.number).collect();
        let mut removed = 0;
        // Others write in between.
        for batch in numbers.chunks(retention::BATCH) {
            removed += retention::remove(&mut self.database.connection, &self.directory, batch)?;
        }
        Ok(removed)
    }

    /// Servers that have written here, dead ones too.
    pub(crate) fn servers(&self) -> Result<Vec<ServerRow>, HistoryError> {
        let query =
            "SELECT server, pid, scope, version, started_at, facts FROM servers ORDER BY started_at DESC";
        let mut servers = rows(self.connection(), query, [], |row| {
            Ok(ServerRow {
                server: row.get(0)?,
                pid: row.get(1)?,
                scope: row.get::<_, String>(2)?.into(),
                version: row.get(3)?,
                started_at: from_millis(row.get(4)?),
                is_alive: false,
                facts: row.get(5)?,
            })
        })?;
        for server in &mut servers {
            server.is_alive = self.directory.is_alive(&server.server);
        }
        Ok(servers)
    }

    /// Usage samples of an operation, the oldest first.
    pub(crate) fn usage(&self, row: &OperationRow) -> Result<Vec<UsageSample>, HistoryError> {
        let query = "SELECT samples FROM usages WHERE number = ?";
        let samples: Option<String> = self::row(self.connection(), query, [row.number], |row| row.get(0))?;
        let samples = samples.and_then(|samples| serde_json::from_str(&samples).ok());
        Ok(samples.unwrap_or_default())
    }

    /// Operations that ran at some time since then.
    pub(crate) fn spans(&self, since: SystemTime, only_named: bool) -> Result<Vec<Span>, HistoryError> {
        let of = if only_named { "AND principal <> ''" } else { "" };
        let query = format!(
            "SELECT started_at, ended_at FROM operations WHERE ended_at >= ?1 AND started_at IS NOT NULL {of} \
             UNION ALL SELECT started_at, NULL FROM operations WHERE state = 'running' {of}"
        );
        let spans = rows(self.connection(), &query, [to_millis(since)], |row| {
            Ok(Span {
                started_at: from_millis(row.get(0)?),
                ended_at: row.get::<_, Option<i64>>(1)?.map(from_millis),
            })
        });
        Ok(spans?)
    }

    /// A number that changes whenever another process has written.
    pub(crate) fn version(&self) -> Result<i64, HistoryError> {
        let version = self
            .connection()
            .pragma_query_value(None, "data_version", |row| row.get(0));
        Ok(version?)
    }

    /// A living task of that owner's operations.
    pub(super) fn task(&self, owner: &Owner, id: &str) -> Result<Option<TaskRow>, HistoryError> {
        let query = "SELECT t.operation, t.created_at, t.life_ms FROM tasks t JOIN operations o ON o.id = t.operation \
             WHERE t.id = ? AND o.principal = ? AND o.scope = ? AND t.created_at + t.life_ms > ?";
        let values = params![
            id,
            owner.principal.name().unwrap_or_default(),
            owner.scope.to_string_lossy(),
            to_millis(SystemTime::now()),
        ];
        let task = row(self.connection(), query, values, |row| {
            Ok(TaskRow {
                id: id.to_owned(),
                operation: OperationId::recalled(&row.get::<_, String>(0)?),
                created_at: from_millis(row.get(1)?),
                life: Duration::from_millis(row.get(2)?),
            })
        });
        Ok(task?)
    }

    /// Marks operations of dead servers. A history that cannot be written to is read as it is.
    fn mark_interrupted(&self) {
        if let Err(error) = recovery::mark_interrupted(self.connection(), &self.directory) {
            tracing::debug!(%error, "operations of dead servers cannot be marked");
        }
    }
}

fn found_at_least(least: Severity) -> &'static str {
    match least {
        Severity::Info => "o.critical + o.high + o.medium + o.low + o.info > 0",
        Severity::Low => "o.critical + o.high + o.medium + o.low > 0",
        Severity::Medium => "o.critical + o.high + o.medium > 0",
        Severity::High => "o.critical + o.high > 0",
        Severity::Critical => "o.critical > 0",
    }
}

fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Conditions of a query and their values.
#[derive(Default)]
struct Conditions {
    texts: Vec<&'static str>,
    values: Vec<Box<dyn ToSql>>,
}

impl Conditions {
    fn is(&mut self, condition: &'static str, value: Option<impl ToSql + 'static>) {
        if let Some(value) = value {
            self.texts.push(condition);
            self.values.push(Box::new(value));
        }
    }

    fn of_owner(&mut self, owner: Option<&Owner>) {
        if let Some(Owner { principal, scope }) = owner {
            self.is(
                "o.principal = ?",
                Some(principal.name().unwrap_or_default().to_owned()),
            );
            self.is("o.scope = ?", Some(scope.to_string_lossy().into_owned()));
        }
    }

    fn clause(&self) -> String {
        if self.texts.is_empty() {
            String::new()
        } else {
            format!("WHERE {}", self.texts.join(" AND "))
        }
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
pub(in crate::history) mod tests;
