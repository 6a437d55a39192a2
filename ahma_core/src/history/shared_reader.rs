//! A reader that tasks share: opened at its first use, and again when the database was replaced.

use std::{path::Path, sync::Arc};

use parking_lot::Mutex;

use super::{database::HistoryError, directory::HistoryDir, reader::HistoryReader};

/// Cheap to clone; all clones share one connection.
#[derive(Debug, Clone)]
pub(crate) struct SharedReader {
    directory: HistoryDir,
    reader: Arc<Mutex<Option<HistoryReader>>>,
}

impl SharedReader {
    /// The history below a state directory.
    pub(crate) fn below(state_dir: &Path) -> Self {
        Self::of(HistoryDir::below(state_dir))
    }

    pub(super) fn of(directory: HistoryDir) -> Self {
        Self {
            directory,
            reader: Arc::default(),
        }
    }

    /// Looks at the database, off the async threads. Without one, everything is as if it were empty.
    pub(crate) async fn read<T: Default + Send + 'static>(
        &self,
        look: impl FnOnce(&HistoryReader) -> Result<T, HistoryError> + Send + 'static,
    ) -> Result<T, HistoryError> {
        let Self { directory, reader } = self.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let mut reader = reader.lock();
            if reader.as_ref().is_none_or(|reader| !reader.is_current()) {
                *reader = HistoryReader::open_in(directory)?;
            }
            let looked = reader.as_ref().map_or_else(|| Ok(T::default()), look);
            if looked.is_err() {
                *reader = None;
            }
            looked
        });
        looked
            .await
            .unwrap_or_else(|stopped| Err(HistoryError::Output(std::io::Error::other(stopped))))
    }
}
