//! Limits of an engine, and its observers.

use std::{fmt, num::NonZero, path::PathBuf, sync::Arc, time::Duration};

use super::Operation;
use crate::observe::StreamName;

/// Limits and places; fixed for an engine's life.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// Directory of the spool files. Created when the first output outgrows memory; must be out of reach of the commands.
    pub state_dir: PathBuf,
    /// Directory for output that outgrows memory, if it is to be kept after the operation. Then `state_dir` is for what
    /// cannot be written there.
    pub keep_output: Option<PathBuf>,
    /// Notified of every operation.
    pub journal: Option<Arc<dyn Journal>>,
    /// Gets what commands print, from each of their streams.
    pub tap: Option<Arc<dyn OutputTap>>,
    /// Number of operations that run at once; the others queue.
    pub max_operations: usize,
    /// Length of the queue; beyond that a new operation fails at once.
    pub max_queued: usize,
    /// Number of ended operations remembered, oldest forgotten first.
    pub max_remembered: usize,
    /// Bytes of spool files that ended operations may hold together.
    pub remembered_bytes: u64,
    /// Bytes of findings that ended operations may hold in memory together, beyond those that results carry.
    pub remembered_finding_bytes: u64,
    /// Bytes of output kept of one operation. The rest is read and counted, then dropped.
    pub quota_bytes: u64,
    /// Bytes of output text in a result.
    pub result_bytes: usize,
    /// Time that processes may outlive the command that started them.
    pub linger: Duration,
    /// Between TERM and KILL.
    pub grace: Duration,
}

/// Notified of what is to be recorded about operations. Never blocks the caller.
pub trait Journal: fmt::Debug + Send + Sync {
    /// An operation is new, or has ended.
    fn changed(&self, operation: &Operation);

    /// A client was given the result of an operation.
    fn collected(&self, operation: &Operation);
}

/// Gets every byte that a command prints, when it is read. With a tap a command has two streams unless its tool file says
/// otherwise.
pub trait OutputTap: fmt::Debug + Send + Sync {
    fn take(&self, source: StreamName, bytes: &[u8]);
}

/// Commands mostly wait for disks and networks, so a few for each core keep it busy.
const OPERATIONS_PER_CORE: usize = 4;

/// Each holds descriptors, of which a process may have a thousand by default.
const MAX_OPERATIONS: usize = 128;

impl EngineSettings {
    /// Default number of operations that run at once on so many cores.
    pub(crate) fn operations_on(cores: usize) -> NonZero<usize> {
        let operations = cores.saturating_mul(OPERATIONS_PER_CORE).min(MAX_OPERATIONS);
        NonZero::new(operations).unwrap_or(NonZero::<usize>::MIN)
    }

    /// The defaults, with spool files under `state_dir`.
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            state_dir: state_dir.into(),
            keep_output: None,
            journal: None,
            tap: None,
            max_operations: Self::operations_on(cores).get(),
            // Far over any honest burst, and still only some megabytes of plans.
            max_queued: 10_000,
            max_remembered: 500,
            remembered_bytes: 2 << 30,
            // Some ten thousands with their descriptions.
            remembered_finding_bytes: 64 << 20,
            quota_bytes: 256 << 20,
            // Below what every known client shows whole.
            result_bytes: 7_500,
            linger: Duration::from_secs(3),
            grace: Duration::from_secs(2),
        }
    }
}
