//! What /proc says about memory.

pub(crate) fn pss_kib(pid: u32) -> u64 {
    kib(&format!("/proc/{pid}/smaps_rollup"), "Pss:")
}

pub(crate) fn peak_kib(pid: u32) -> u64 {
    kib(&format!("/proc/{pid}/status"), "VmHWM:")
}

fn kib(file: &str, key: &str) -> u64 {
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
