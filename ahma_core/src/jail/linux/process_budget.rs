//! The limit on processes and threads of one operation, by the best means that the kernel offers.
//!
//! A pid namespace has a limit of its own since Linux 6.14, and a delegated cgroup (`cgroup`) has one; both make `fork`
//! fail. `RLIMIT_NPROC` counts by user namespace, so it serves only in the full tier, and does not bind root. Where none
//! of them does, the supervisor counts once a second and ends an operation that has too many: a fork bomb can get far in
//! a second.

use std::{
    fs,
    io::Write as _,
    time::{Duration, Instant},
};

use super::{descendants, stack_text::StackText};

/// Interval of the supervisor's counts.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);

/// `RLIMIT_NPROC` counts the processes of all operations together, for they share a user namespace. Where each operation
/// has a limit of its own, this many can reach it before they affect each other: more than run at once by default on a
/// machine of 16 cores, and few enough that they cannot use up the pids of a machine.
const MAX_OPERATIONS: u64 = 64;

/// Enforcement of the limit.
#[derive(Debug)]
pub(in crate::jail) enum ProcessBudget {
    /// By the kernel.
    Kernel,
    /// By counting.
    Counted {
        max_processes: usize,
        count: fn() -> usize,
        counted: Instant,
    },
}

impl ProcessBudget {
    /// For a tree of processes of which the caller is the root.
    pub(in crate::jail) fn of_tree(max_processes: u32) -> Self {
        Self::counted(max_processes, descendants::count_tasks)
    }

    fn counted(max_processes: u32, count: fn() -> usize) -> Self {
        Self::Counted {
            max_processes: max_processes as usize,
            count,
            counted: Instant::now(),
        }
    }

    /// Limits the pid namespace of which the caller is the first process. Also returns the `RLIMIT_NPROC` of its
    /// command. Nothing here and in what is returned allocates memory.
    pub(in crate::jail) fn of_namespace(max_processes: u32) -> (Self, u64) {
        let max = u64::from(max_processes);
        if limit_namespace(max_processes) {
            (Self::Kernel, max * MAX_OPERATIONS)
        } else if rustix::process::geteuid().is_root() {
            (
                Self::counted(max_processes, descendants::count_tasks_of_namespace),
                max,
            )
        } else {
            (Self::Kernel, max)
        }
    }

    /// Time until [`Self::is_exceeded`] has to be asked again.
    pub(in crate::jail) fn next_count(&self) -> Option<Duration> {
        match self {
            Self::Kernel => None,
            Self::Counted { counted, .. } => Some(COUNT_INTERVAL.saturating_sub(counted.elapsed())),
        }
    }

    /// Counts if it is time to. A count takes a while when there are many processes.
    pub(in crate::jail) fn is_exceeded(&mut self) -> bool {
        match self {
            Self::Counted {
                max_processes,
                count,
                counted,
            } if counted.elapsed() >= COUNT_INTERVAL => {
                let tasks = count();
                *counted = Instant::now();
                tasks > *max_processes
            }
            Self::Kernel | Self::Counted { .. } => false,
        }
    }
}

/// Limits the processes of this pid namespace, for root too, and returns whether that was possible. The setting belongs
/// to the namespace since Linux 6.14; before that it is the whole machine's and must not be touched.
fn limit_namespace(max_processes: u32) -> bool {
    const LEAST_PID_MAX: u32 = 301;
    let release = rustix::system::uname();
    kernel_version(&release.release().to_string_lossy()) >= (6, 14)
        && fs::File::options()
            .write(true)
            .open("/proc/sys/kernel/pid_max")
            .and_then(|mut file| {
                let number = StackText::<16>::of(format_args!("{}", max_processes.max(LEAST_PID_MAX)));
                file.write_all(number.as_str().as_bytes())
            })
            .is_ok()
}

/// The first two numbers of a kernel's release.
fn kernel_version(release: &str) -> (u32, u32) {
    let mut numbers = release
        .split(|letter: char| !letter.is_ascii_digit())
        .map(|digits| digits.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
#[path = "process_budget_tests.rs"]
mod tests;
