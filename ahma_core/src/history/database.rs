//! The database file: opening it, its version, and moving one aside that cannot be used. Also two helpers for queries.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, Params, Row, TransactionBehavior,
    config::DbConfig,
};

use super::{directory::HistoryDir, rows::to_millis};

/// Steps from each version of the schema to the next. Never change one that was released: add another.
const MIGRATIONS: [&str; 2] = [include_str!("schema_v1.sql"), include_str!("schema_v2.sql")];

/// Other servers write in batches of some milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Pages of 4 KiB in the log before they are moved to the database. The writer that fills it waits for the disk, so it is longer
/// than SQLite's own; and it is read by the next one that opens the database, so it is not much longer.
const LOG_PAGES: i64 = 4_000;

/// Kilobytes of pages held in memory by each connection.
const CACHE_KIB: i64 = 1024;

/// The file, and those that SQLite puts beside it.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// Reason why the history cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HistoryError {
    #[error("the directory of the history cannot be used: {}", .path.display())]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the database of the history cannot be used")]
    Database(#[from] rusqlite::Error),
    #[error(
        "the history was written by a later version of this program (schema {found}, this one knows {known})"
    )]
    Newer { found: i64, known: i64 },
    #[error("stored output cannot be read")]
    Output(#[source] io::Error),
}

/// An open database.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) connection: Connection,
    /// Device and inode: another file may take its place.
    file: (u64, u64),
}

impl HistoryError {
    fn is_damage(&self) -> bool {
        let Self::Database(rusqlite::Error::SqliteFailure(error, _)) = self else {
            return false;
        };
        matches!(error.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    }
}

impl Database {
    /// Opens the database, creates it, or brings it to this version. One that is damaged or newer is moved aside.
    pub(super) fn open(directory: &HistoryDir) -> Result<Self, HistoryError> {
        directory.create().map_err(|source| HistoryError::Directory {
            path: directory.root().to_owned(),
            source,
        })?;
        let path = directory.database();
        match Self::open_for_writing(&path) {
            Err(error) if error.is_damage() => move_aside(&path, "damaged", &error)?,
            Err(error @ HistoryError::Newer { .. }) => move_aside(&path, "newer", &error)?,
            opened => return opened,
        }
        Self::open_for_writing(&path)
    }

    /// Opens the database for reading; none if there is no history.
    pub(super) fn open_existing(directory: &HistoryDir) -> Result<Option<Self>, HistoryError> {
        let path = directory.database();
        if !path.exists() {
            return Ok(None);
        }
        match Self::open_for_writing(&path) {
            Ok(database) => return Ok(Some(database)),
            Err(HistoryError::Database(error)) if is_read_only(&error) => {}
            Err(error) => return Err(error),
        }
        let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        check_version(&connection)?;
        Self::with(connection, &path).map(Some)
    }

    fn open_for_writing(path: &Path) -> Result<Self, HistoryError> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        if connection.is_readonly(rusqlite::MAIN_DB)? {
            return Err(HistoryError::Database(rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY),
                None,
            )));
        }
        // Has to be set before there are tables, and writes to the file each time.
        if check_version(&connection)? == 0 {
            connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        }
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        // A process that dies loses nothing by this, a machine that fails the last moments.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // The last one to close would wait for the disk; the next one reads what is left in the log.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        migrate(&mut connection)?;
        Self::with(connection, path)
    }

    fn with(connection: Connection, path: &Path) -> Result<Self, HistoryError> {
        let file = identity(path).map_err(|source| HistoryError::Directory {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self { connection, file })
    }

    /// False once the file has been removed or moved aside.
    pub(super) fn is_at(&self, directory: &HistoryDir) -> bool {
        identity(&directory.database()).is_ok_and(|file| file == self.file)
    }
}

/// All rows of a query.
pub(super) fn rows<T>(
    connection: &Connection,
    query: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection
        .prepare_cached(query)?
        .query_map(params, read)?
        .collect()
}

/// The first row of a query; none if there is none.
pub(super) fn row<T>(
    connection: &Connection,
    query: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    connection
        .prepare_cached(query)?
        .query_row(params, read)
        .optional()
}

/// Handles a failure while the database is in use: a damaged one is moved aside.
pub(super) fn after_failure(directory: &HistoryDir, error: &HistoryError) {
    if error.is_damage()
        && let Err(error) = move_aside(&directory.database(), "damaged", error)
    {
        tracing::warn!(%error, "the damaged history cannot be moved aside");
    }
}

fn is_read_only(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied)
    )
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn check_version(connection: &Connection) -> Result<usize, HistoryError> {
    let known = MIGRATIONS.len() as i64;
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match usize::try_from(found) {
        Ok(version) if version <= MIGRATIONS.len() => Ok(version),
        Ok(_) | Err(_) => Err(HistoryError::Newer { found, known }),
    }
}

fn migrate(connection: &mut Connection) -> Result<(), HistoryError> {
    if check_version(connection)? == MIGRATIONS.len() {
        return Ok(());
    }
    // Another server may be doing the same.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version = check_version(&transaction)?;
    for step in &MIGRATIONS[version..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    transaction.commit()?;
    Ok(())
}

/// Keeps a database that cannot be used, under another name.
fn move_aside(path: &Path, what: &str, why: &HistoryError) -> Result<(), HistoryError> {
    let time = to_millis(SystemTime::now());
    let with_suffix = |path: &Path, suffix: &str| {
        let mut name = OsString::from(path);
        name.push(suffix);
        PathBuf::from(name)
    };
    let aside = with_suffix(path, &format!(".{what}-{time}"));
    for suffix in SUFFIXES {
        match fs::rename(with_suffix(path, suffix), with_suffix(&aside, suffix)) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(HistoryError::Directory {
                    path: path.to_owned(),
                    source,
                });
            }
            Ok(()) | Err(_) => {}
        }
    }
    tracing::warn!(
        reason = %ahma_common::error_chain(why),
        aside = %aside.display(),
        "the history cannot be used and was moved aside; a new one begins"
    );
    Ok(())
}

#[cfg(test)]
#[path = "database_tests.rs"]
mod tests;
