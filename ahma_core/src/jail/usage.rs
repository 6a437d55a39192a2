//! Resource usage of a command's processes, as far as the kernel reports it.

use std::{collections::HashSet, time::Duration};

use super::{process::SupervisorId, system};

/// Total usage of all processes of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Processor time so far, of those that have ended too.
    pub cpu: Duration,
    /// Memory now. What processes share is counted for each, where the kernel does not tell.
    pub memory_bytes: u64,
}

impl SupervisorId {
    /// The supervisor and the processes below it.
    pub(super) fn processes(&self) -> HashSet<i32> {
        self.get().map(system::with_descendants).unwrap_or_default()
    }

    /// Usage of the command below this supervisor; none if it is gone.
    pub fn usage(&self) -> Option<ProcessUsage> {
        let processes = self.processes();
        let used = processes.iter().filter_map(|pid| system::usage_of(*pid));
        used.reduce(|sum, one| ProcessUsage {
            cpu: sum.cpu + one.cpu,
            memory_bytes: sum.memory_bytes + one.memory_bytes,
        })
    }
}
