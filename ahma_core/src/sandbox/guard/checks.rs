//! The guard of one directory, across the operations of one server.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{
    baseline::{Look, LookCounts, Names, Node, Purpose},
    changes::differences,
    entry::{open_root, timed_device},
    report::ProtectedChange,
    restore::Restoration,
};
use crate::sandbox::{Tier, directory::KeptUsable};

/// Work of a look that is done faster than another thread is asked to do it.
const QUICK_STAMPS: usize = 64;
const QUICK_BYTES: usize = 128 * 1024;

/// Keeps the protected paths in one directory.
#[derive(Debug)]
pub struct Guard {
    scope: PathBuf,
    root: Arc<OwnedFd>,
    names: Names,
    /// The device on which the times of files can be trusted.
    timed_device: Option<u64>,
    quarantine: PathBuf,
    state: Mutex<CheckState>,
}

/// The baseline and its users. Operations overlap, so it is taken when the first one starts.
#[derive(Debug)]
struct CheckState {
    running: usize,
    baseline: Node,
    /// Work of the last look, which tells what the next one takes.
    counts: LookCounts,
}

impl Guard {
    /// Guards those of the `protected` paths that lie in `scope`, a real path; none if there is nothing to guard. Called
    /// before the mounts of the full tier are made: what changes in between is guarded as if it had none.
    pub fn new(
        scope: &Path,
        protected: &[PathBuf],
        tier: Tier,
        quarantine: PathBuf,
    ) -> io::Result<Option<Self>> {
        let names = Names::new(scope, protected);
        let purpose = match tier {
            Tier::Full => Purpose::FirstWithMounts,
            Tier::Core | Tier::Seatbelt => Purpose::Baseline,
            Tier::Off => return Ok(None),
        };
        if names.is_empty() {
            return Ok(None);
        }
        let root = Arc::new(open_root(scope)?);
        let timed_device = timed_device(&root);
        let mut look = Look::new(purpose, timed_device);
        let state = CheckState {
            running: 0,
            baseline: look.container(&root, &names, None),
            counts: look.counts,
        };
        Ok(Some(Self {
            scope: scope.to_owned(),
            root,
            names,
            timed_device,
            quarantine,
            state: Mutex::new(state),
        }))
    }

    /// Warning for the user about protected files that cannot be restored.
    pub fn warning(&self) -> Option<String> {
        let unkept = self.state.lock().baseline.unkept_files();
        (unkept > 0).then(|| {
            format!(
                "{unkept} protected files in {} are too large to be kept: a change by a command is noticed, but the \
                 file cannot be restored",
                self.scope.display()
            )
        })
    }

    /// Called before a command starts.
    pub async fn begin(guards: &[Arc<Self>]) -> PendingCheck {
        let mut pending = PendingCheck::default();
        for guard in guards {
            let begin = |guard: Arc<Self>| {
                guard.take_baseline();
                // Made here: the caller may be gone by now, and each baseline must be checked once.
                PendingCheck { guards: vec![guard] }
            };
            if let Some(mut begun) = Arc::clone(guard).run(begin).await {
                pending.guards.append(&mut begun.guards);
            }
        }
        pending
    }

    /// Does something here if it is quick, else on another thread: this one serves clients.
    async fn run<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(Arc<Self>) -> T + Send + 'static,
    ) -> Option<T> {
        let is_quick = self.state.try_lock().is_some_and(|state| {
            state.counts.stamps <= QUICK_STAMPS && state.counts.bytes_read <= QUICK_BYTES
        });
        if is_quick {
            return Some(work(self));
        }
        tokio::task::spawn_blocking(move || work(self)).await.ok()
    }

    fn take_baseline(&self) {
        let mut state = self.state.lock();
        let _usable = KeptUsable::new(&self.root);
        if state.running == 0 {
            (state.baseline, state.counts) = self.look(Purpose::Baseline, &state.baseline);
        }
        state.running += 1;
    }

    fn check(&self) -> Vec<ProtectedChange> {
        let mut state = self.state.lock();
        // A command may have taken all rights to the scope away.
        let _usable = KeptUsable::new(&self.root);
        state.running = state.running.saturating_sub(1);
        let (now, counts) = self.look(Purpose::Check, &state.baseline);
        state.counts = counts;
        let restoration = Restoration {
            scope: &self.scope,
            root: &self.root,
            quarantine: &self.quarantine,
        };
        differences(&self.names, &state.baseline, &now)
            .iter()
            .map(|difference| restoration.undo(difference))
            .collect()
    }

    fn look(&self, purpose: Purpose, earlier: &Node) -> (Node, LookCounts) {
        let mut look = Look::new(purpose, self.timed_device);
        let node = look.container(&self.root, &self.names, Some(earlier));
        (node, look.counts)
    }
}

/// One command whose end the guards wait for.
#[derive(Debug, Default)]
#[must_use = "protected paths are checked when the command is gone"]
pub struct PendingCheck {
    /// Those that have not been asked.
    guards: Vec<Arc<Guard>>,
}

impl PendingCheck {
    /// Called after nothing of the command is left. Restores what changed.
    pub async fn finish(mut self) -> Vec<ProtectedChange> {
        let mut changes = Vec::new();
        while let Some(guard) = self.guards.pop() {
            let found = guard.run(|guard| guard.check()).await;
            changes.extend(found.into_iter().flatten());
        }
        changes
    }
}

impl Drop for PendingCheck {
    fn drop(&mut self) {
        for change in self.guards.iter().flat_map(|guard| guard.check()) {
            tracing::warn!("{}", change.sentence());
        }
    }
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
