//! Processor time of a server and of everything below it, exactly: by a control group.
//!
//! Adding up what parents have waited for would miss the processes that nothing waits for. Where no group can be made,
//! usually without root, the rows are left out.

use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::memory::descendants;

/// A group of processes; those they start belong to it too. Removed when dropped, if all of them have ended.
pub(crate) struct ProcessGroup {
    directory: PathBuf,
    usage: Usage,
}

#[derive(Clone, Copy)]
enum Usage {
    /// The first version's file of nanoseconds.
    Nanoseconds,
    /// A line of the second version's statistics.
    Statistics,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl ProcessGroup {
    /// A group with this process and all below it; none where that is not allowed.
    pub(crate) fn around(pid: u32) -> Option<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ahma-bench-{}-{number}", std::process::id());
        let places = [
            ("/sys/fs/cgroup/cpuacct", "cpuacct.usage", Usage::Nanoseconds),
            ("/sys/fs/cgroup", "cpu.stat", Usage::Statistics),
        ];
        places.into_iter().find_map(|(place, file, usage)| {
            let directory = PathBuf::from(place).join(&name);
            fs::create_dir(&directory).ok()?;
            let group = Self { directory, usage };
            // A file system without groups takes the directory, but has no such files.
            group.directory.join(file).exists().then_some(())?;
            for member in std::iter::once(pid).chain(descendants(pid)) {
                // One that has just ended is no loss.
                let added = fs::write(group.directory.join("cgroup.procs"), member.to_string());
                (added.is_ok() || member != pid).then_some(())?;
            }
            Some(group)
        })
    }

    /// Used so far, in milliseconds.
    pub(crate) fn used_ms(&self) -> f64 {
        let read = |file: &str| fs::read_to_string(self.directory.join(file)).unwrap_or_default();
        match self.usage {
            Usage::Nanoseconds => read("cpuacct.usage").trim().parse().unwrap_or(0.0) / 1e6,
            Usage::Statistics => {
                read("cpu.stat")
                    .lines()
                    .find_map(|line| line.strip_prefix("usage_usec ")?.parse::<f64>().ok())
                    .unwrap_or(0.0)
                    / 1e3
            }
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        fs::remove_dir(&self.directory).ok();
    }
}
