//! Resource usage of a command's processes, as far as the kernel reports it.

use std::{collections::HashSet, fs, time::Duration};

#[cfg(target_os = "linux")]
use super::linux::descendants::children_of;
use super::process::SupervisorId;

/// Elsewhere nothing is known of a command's processes here.
#[cfg(not(target_os = "linux"))]
fn children_of(_pid: rustix::process::Pid) -> Vec<rustix::process::Pid> {
    Vec::new()
}

/// Processes of a command that are looked at: a runaway command does not hold up the server.
const MAX_PROCESSES: usize = 1_000;

/// Total usage of all processes of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Processor time so far, of those that have ended too.
    pub cpu: Duration,
    /// Memory now. What processes share is counted for each.
    pub memory_bytes: u64,
}

impl SupervisorId {
    /// The supervisor and all processes below it.
    pub(super) fn processes(&self) -> HashSet<i32> {
        let mut unvisited = Vec::from_iter(self.get());
        let mut processes = HashSet::new();
        while let Some(pid) = unvisited.pop() {
            if processes.len() < MAX_PROCESSES && processes.insert(pid.as_raw_nonzero().get()) {
                unvisited.extend(children_of(pid));
            }
        }
        processes
    }

    /// Usage of the command below this supervisor; none if it is gone.
    pub fn usage(&self) -> Option<ProcessUsage> {
        let processes = self.processes();
        let used = processes.iter().filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            of_process(&stat)
        });
        used.reduce(|sum, one| ProcessUsage {
            cpu: sum.cpu + one.cpu,
            memory_bytes: sum.memory_bytes + one.memory_bytes,
        })
    }
}

/// From a line of `/proc/PID/stat`.
fn of_process(stat: &str) -> Option<ProcessUsage> {
    // The name before may have any character in it.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    // Its own time, in user and kernel mode, and that of children it has waited for.
    let ticks = (11..=14).filter_map(number).sum::<u64>();
    Some(ProcessUsage {
        cpu: Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second().max(1)),
        memory_bytes: number(21)? * rustix::param::page_size() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_understood_whatever_the_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 100 50 30 20 0 0 1 0 4711 1000000 7 18446744073709551615";
        for name in ["bash", "a ) b", "(x) S 9 9"] {
            let used = of_process(&format!("42 ({name}) {rest}")).unwrap();
            let seconds = 200.0 / rustix::param::clock_ticks_per_second() as f64;
            assert!((used.cpu.as_secs_f64() - seconds).abs() < 0.002, "{used:?}");
            assert_eq!(used.memory_bytes, 7 * rustix::param::page_size() as u64);
        }
        assert_eq!(of_process(""), None);
    }
}
