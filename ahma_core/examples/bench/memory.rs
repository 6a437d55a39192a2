//! Memory, as `/proc` reports it.

pub(crate) fn pss_kib(pid: u32) -> u64 {
    number(&format!("/proc/{pid}/smaps_rollup"), "Pss:")
}

/// Those with a memory of their own: the supervisor of a shell runs in that of its parent, so both have the same sizes.
pub(crate) fn memories(processes: &[u32]) -> Vec<u32> {
    let sizes = |process: u64| std::fs::read(format!("/proc/{process}/statm")).unwrap_or_default();
    let has_its_own = |process: &u32| {
        let parent = number(&format!("/proc/{process}/status"), "PPid:");
        sizes((*process).into()) != sizes(parent)
    };
    processes.iter().copied().filter(has_its_own).collect()
}

pub(crate) fn peak_kib(pid: u32) -> u64 {
    number(&format!("/proc/{pid}/status"), "VmHWM:")
}

fn number(file: &str, key: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while next < found.len() {
        for task in std::fs::read_dir(format!("/proc/{}/task", found[next]))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(
                children
                    .split_whitespace()
                    .filter_map(|child| child.parse::<u32>().ok()),
            );
        }
        next += 1;
    }
    found.split_off(1)
}
