use std::path::Path;

use super::{own_cgroup, parent_for_operations};

#[test]
fn the_own_cgroup_is_that_of_the_unified_hierarchy() {
    for (membership, own) in [
        ("0::/\n", Some("")),
        (
            "0::/system.slice/ahma.service/main\n",
            Some("system.slice/ahma.service/main"),
        ),
        ("8:pids:/docker/1\n0::/unified\n", Some("unified")),
        ("8:pids:/docker/1\n", None),
        // Of another cgroup namespace.
        ("0::/../other\n", None),
        ("", None),
    ] {
        assert_eq!(own_cgroup(membership), own, "{membership:?}");
    }
}

#[test]
fn a_cgroup_that_is_not_marked_is_not_used() {
    let parent = tempfile::tempdir().unwrap();
    std::fs::write(parent.path().join("cgroup.procs"), "").unwrap();
    let own = parent.path().join("main");
    assert_eq!(parent_for_operations(&own), None);
    let mark = |text: &str| {
        rustix::fs::setxattr(
            parent.path(),
            "user.delegate",
            text.as_bytes(),
            rustix::fs::XattrFlags::empty(),
        )
    };
    // Not every file system of temporary files has these attributes.
    if mark("0").is_err() {
        return;
    }
    assert_eq!(parent_for_operations(&own), None);
    mark("1").unwrap();
    assert_eq!(parent_for_operations(&own).as_deref(), Some(parent.path()));
    std::fs::write(parent.path().join("cgroup.procs"), "1\n").unwrap();
    assert_eq!(
        parent_for_operations(&own),
        None,
        "processes in it would exclude limits of its children"
    );
    assert_eq!(parent_for_operations(Path::new("/")), None);
}
