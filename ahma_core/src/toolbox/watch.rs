//! Notices that the tools directory changed.
//!
//! The directory may be absent, appear, be replaced or renamed at any time. So the nearest ancestor that exists is watched
//! too, and watches are made anew whenever another directory is at a watched path.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout, timeout_at},
};

/// A burst of changes is over when nothing changed for this long; editors write, rename and touch within it.
const QUIET: Duration = Duration::from_millis(100);

/// A directory that changes all the time is read at this interval.
const MAX_BURST: Duration = Duration::from_secs(2);

/// Watches one directory, whether it exists or not.
#[derive(Debug)]
pub(super) struct DirectoryWatch {
    watcher: RecommendedWatcher,
    directory: PathBuf,
    watched: Vec<WatchedDirectory>,
    touched: Arc<Notify>,
}

/// A path with a watch on it, and what stood there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WatchedDirectory {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl DirectoryWatch {
    pub(super) fn new(directory: PathBuf) -> notify::Result<Self> {
        let touched = Arc::new(Notify::new());
        let watcher = notify::recommended_watcher({
            let touched = touched.clone();
            let directory = directory.clone();
            move |event: notify::Result<Event>| {
                if calls_for_reload(&event, &directory) {
                    touched.notify_one();
                }
            }
        })?;
        Ok(Self {
            watcher,
            directory,
            watched: Vec::new(),
            touched,
        })
    }

    /// Makes the watches fit what exists now. Call it before reading the directory: then no change is missed.
    pub(super) async fn arm(&mut self) -> notify::Result<()> {
        loop {
            let wanted = self.existing().await;
            if wanted == self.watched {
                return Ok(());
            }
            for old in std::mem::take(&mut self.watched) {
                // It may be gone already, and its watch with it.
                let _ = self.watcher.unwatch(&old.path);
            }
            for watched in &wanted {
                self.watcher.watch(&watched.path, RecursiveMode::NonRecursive)?;
            }
            // Directories may have changed in between; look again until nothing changes.
            self.watched = wanted;
        }
    }

    /// Waits for a change, and then until changes have stopped coming.
    pub(super) async fn changed(&self) {
        self.touched.notified().await;
        let deadline = Instant::now() + MAX_BURST;
        while timeout_at(deadline, timeout(QUIET, self.touched.notified()))
            .await
            .is_ok_and(|quiet| quiet.is_ok())
        {}
    }

    /// The directory, if it is there, and its nearest ancestor that is.
    async fn existing(&self) -> Vec<WatchedDirectory> {
        let mut found = Vec::new();
        for path in self.directory.ancestors() {
            if let Some(watched) = WatchedDirectory::at(path).await {
                found.push(watched);
                if path != self.directory {
                    break;
                }
            }
        }
        found
    }
}

impl WatchedDirectory {
    async fn at(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = tokio::fs::metadata(path)
            .await
            .ok()
            .filter(std::fs::Metadata::is_dir)?;
        Some(Self {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }
}

/// True if the directory has to be read again: something in it changed, or events were lost, which the kernel does when
/// its queue overflows.
fn calls_for_reload(event: &notify::Result<Event>, directory: &Path) -> bool {
    match event {
        Ok(event) => event.need_rescan() || concerns(event, directory),
        Err(error) => {
            tracing::warn!(%error, "watching the tools directory");
            true
        }
    }
}

/// True if an event can change which tools there are. Our own reading must not count, or it would never end.
fn concerns(event: &Event, directory: &Path) -> bool {
    let changes = match event.kind {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    };
    let here = |path: &PathBuf| {
        directory.starts_with(path) || (path.parent() == Some(directory) && super::load::is_tool_file(path))
    };
    changes && event.paths.iter().any(here)
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
