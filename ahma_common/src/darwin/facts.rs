//! One process among others.

/// A process that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessFacts {
    pub pid: i32,
    pub parent: i32,
    /// Microseconds since 1970. Tells it from one that gets its number later.
    pub started: u64,
}

/// A process and all below it, the process first.
pub fn with_descendants(first: i32, all: &[ProcessFacts]) -> Vec<i32> {
    let mut tree = vec![first];
    let mut next = 0;
    while let Some(&process) = tree.get(next) {
        next += 1;
        let children = all.iter().filter(|child| child.parent == process);
        // They are asked about one after the other, so a number that is used again may close a circle.
        let new: Vec<i32> = children
            .map(|child| child.pid)
            .filter(|pid| !tree.contains(pid))
            .collect();
        tree.extend(new);
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_below_a_process_are_found_in_any_order_and_once() {
        let all = [(9, 7), (1, 0), (7, 5), (5, 1), (6, 1), (8, 5), (3, 4), (4, 3)].map(|(pid, parent)| {
            ProcessFacts {
                pid,
                parent,
                started: 0,
            }
        });
        assert_eq!(with_descendants(5, &all), [5, 7, 8, 9]);
        assert_eq!(with_descendants(6, &all), [6]);
        assert_eq!(with_descendants(3, &all), [3, 4]);
    }
}
