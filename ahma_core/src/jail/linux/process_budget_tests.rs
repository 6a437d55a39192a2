use super::{ProcessBudget, kernel_version};

#[test]
fn kernel_releases_are_compared_by_number() {
    for (release, version) in [
        ("6.18.44-fc-v509", (6, 18)),
        ("6.8.0-45-generic", (6, 8)),
        ("5.15", (5, 15)),
        ("7-rc1", (7, 0)),
        ("", (0, 0)),
    ] {
        assert_eq!(kernel_version(release), version, "{release}");
    }
}

#[test]
fn only_a_counted_budget_wants_counts() {
    assert!(ProcessBudget::Kernel.next_count().is_none());
    let mut counted = ProcessBudget::of_tree(0);
    assert!(counted.next_count().is_some());
    assert!(!counted.is_exceeded(), "not before the first interval is over");
}
