//! What the jail asks of Linux itself, whatever the tier. `seatbelt/system_macos.rs` answers to the same names on macOS.

use std::{collections::HashSet, fs, time::Duration};

use rustix::process::Pid;

use super::descendants::children_of;
pub(in crate::jail) use super::light_supervisor::LightSupervisors;
use crate::jail::ProcessUsage;
pub(crate) use crate::jail::wire_packets::{pair, receive, receive_short, send};

/// The descriptor that tells of the end of children.
pub(in crate::jail) mod child_ended {
    use std::{
        io,
        os::fd::{FromRawFd, OwnedFd},
    };

    pub(in crate::jail) fn open() -> io::Result<OwnedFd> {
        // SAFETY: the set is filled before it is used, and lives until the calls return.
        let fd = unsafe {
            let mut child: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut child);
            libc::sigaddset(&raw mut child, libc::SIGCHLD);
            libc::signalfd(-1, &raw const child, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and not owned elsewhere.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Empties the queue of signals.
    pub(in crate::jail) fn forget(descriptor: &OwnedFd) {
        let mut signals = [0_u8; 1024];
        rustix::io::read(descriptor, &mut signals).ok();
    }
}

/// Processes of a command that are looked at: a runaway command does not hold up the server.
const MAX_PROCESSES: usize = 1_000;

/// A process and all below it.
pub(in crate::jail) fn with_descendants(first: Pid) -> HashSet<i32> {
    let mut unvisited = vec![first];
    let mut processes = HashSet::new();
    while let Some(pid) = unvisited.pop() {
        if processes.len() < MAX_PROCESSES && processes.insert(pid.as_raw_nonzero().get()) {
            unvisited.extend(children_of(pid));
        }
    }
    processes
}

/// Usage of one process; none if it is gone.
pub(in crate::jail) fn usage_of(pid: i32) -> Option<ProcessUsage> {
    of_process(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
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
