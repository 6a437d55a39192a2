//! What bounds an engine.

use std::{num::NonZero, path::PathBuf, time::Duration};

/// Limits and places; fixed for an engine's life.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// Where spool files go. Created when the first output outgrows memory; must be out of reach of the commands.
    pub state_dir: PathBuf,
    /// How many operations run at once; the others queue.
    pub max_operations: usize,
    /// How many operations may queue; beyond that a new one fails at once.
    pub max_queued: usize,
    /// How many ended operations are remembered, oldest forgotten first.
    pub history: usize,
    /// How many bytes of spool files ended operations may hold together.
    pub history_bytes: u64,
    /// How many bytes of findings ended operations may hold in memory together, beyond those that results carry.
    pub history_finding_bytes: u64,
    /// How much output of one operation is kept. The rest is read and counted, then dropped.
    pub quota_bytes: u64,
    /// How much output text a result carries.
    pub result_bytes: usize,
    /// How long processes may outlive the command that started them.
    pub linger: Duration,
    /// Between TERM and KILL.
    pub grace: Duration,
}

/// Commands mostly wait for disks and networks, so a few for each core keep it busy.
const OPERATIONS_PER_CORE: usize = 4;

/// Each holds descriptors, of which a process may have a thousand where nobody has raised the limit.
const MOST_OPERATIONS: usize = 128;

impl EngineSettings {
    /// How many operations run at once on so many cores, unless somebody says otherwise.
    pub(crate) fn operations_on(cores: usize) -> NonZero<usize> {
        let operations = cores.saturating_mul(OPERATIONS_PER_CORE).min(MOST_OPERATIONS);
        NonZero::new(operations).unwrap_or(NonZero::<usize>::MIN)
    }

    /// The defaults, with spool files under `state_dir`.
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            state_dir: state_dir.into(),
            max_operations: Self::operations_on(cores).get(),
            // Far over any honest burst, and still only some megabytes of plans.
            max_queued: 10_000,
            history: 500,
            history_bytes: 2 << 30,
            // Some ten thousands with their descriptions.
            history_finding_bytes: 64 << 20,
            quota_bytes: 256 << 20,
            result_bytes: 16 << 10,
            linger: Duration::from_secs(5),
            grace: Duration::from_secs(2),
        }
    }
}
