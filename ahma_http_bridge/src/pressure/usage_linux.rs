//! Memory and time of processes, from `/proc`. A few numbers of it do not need `procfs`, which is a large parser.

/// This process and all below it.
pub(super) fn process_tree() -> Vec<u32> {
    let mut tree = vec![std::process::id()];
    let mut next = 0;
    while let Some(&process) = tree.get(next) {
        next += 1;
        let threads = std::fs::read_dir(format!("/proc/{process}/task"));
        for thread in threads.into_iter().flatten().flatten() {
            // A child is listed with the thread that started it.
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            tree.extend(
                children
                    .split_whitespace()
                    .filter_map(|id| id.parse::<u32>().ok()),
            );
        }
    }
    tree
}

/// The proportional set size: memory that several processes share is counted once in the sum.
pub(super) fn memory_bytes(processes: &[u32]) -> u64 {
    let (mut sum, mut shared) = (0, 0);
    for process in processes
        .iter()
        .filter(|process| !is_in_memory_of_parent(**process))
    {
        match field_bytes(*process, "smaps_rollup", "Pss:") {
            Some(proportional) => sum += proportional,
            // Only root may look into a server, which is closed to others. They all run the same program, so the largest
            // share of its files stands for all.
            None => {
                let of_status = |field: &str| field_bytes(*process, "status", field).unwrap_or(0);
                sum += of_status("RssAnon:") + of_status("RssShmem:");
                shared = of_status("RssFile:").max(shared);
            }
        }
    }
    sum + shared
}

/// The supervisor of a shell runs in the memory of its parent, which is counted with that one: they have the same sizes, and
/// the same command line, which lies in it. A copy of a memory has the same command line and other sizes.
fn is_in_memory_of_parent(process: u32) -> bool {
    let read = |process: u32, file: &str| std::fs::read(format!("/proc/{process}/{file}")).ok();
    let is_same = |one: u32, other: u32, file: &str| {
        let of_one = read(one, file);
        of_one.is_some() && of_one == read(other, file)
    };
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let parent = stat
        .rsplit_once(')')
        .and_then(|(_, fields)| fields.split_whitespace().nth(1)?.parse().ok());
    parent.is_some_and(|parent| is_same(process, parent, "statm") && is_same(process, parent, "cmdline"))
}

fn field_bytes(process: u32, file: &str, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes = line.trim().trim_end_matches(" kB").parse::<u64>().ok()?;
    Some(kilobytes * 1024)
}

/// The time of a process and of those it has waited for.
pub(super) fn cpu_ms(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name before it may hold anything, a parenthesis too. The times are fields 14 to 17.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let times = fields.split_whitespace().skip(11).take(4);
    let ticks: u64 = times.filter_map(|time| time.parse::<u64>().ok()).sum();
    ticks * 1000 / rustix::param::clock_ticks_per_second().max(1)
}

/// Of one minute.
pub(super) fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
#[path = "usage_linux_tests.rs"]
mod tests;
