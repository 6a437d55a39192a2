use std::os::fd::AsRawFd;

use rustix::io::Errno;

use super::{Requester, times};
use crate::jail::linux::notified_call::{Target, TimeUnit};

/// This process, as if it had made the call.
fn requester() -> Requester {
    Requester::new(std::process::id())
}

fn path(directory: i32, path: &std::ffi::CStr, flags: i32) -> Target {
    Target::Path {
        directory,
        pointer: path.as_ptr() as u64,
        flags,
    }
}

#[test]
fn times_are_read_in_their_unit() {
    for (unit, expected) in [
        (TimeUnit::Seconds, [(1, 0), (2, 0)]),
        (TimeUnit::Microseconds, [(1, 2000), (3, 4000)]),
        (TimeUnit::Nanoseconds, [(1, 2), (3, 4)]),
    ] {
        let found = times([1, 2, 3, 4], unit).map(|time| (time.tv_sec, time.tv_nsec));
        assert_eq!(found, expected, "{unit:?}");
    }
}

#[test]
fn a_target_is_opened_as_the_requester_sees_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(directory.path().join("file")).unwrap();
    std::os::unix::fs::symlink("file", directory.path().join("link")).unwrap();
    let held = std::fs::File::open(directory.path()).unwrap();
    let inode = |target| {
        rustix::fs::fstat(requester().open(target).unwrap())
            .unwrap()
            .st_ino
    };
    let expected = rustix::fs::fstat(&file).unwrap().st_ino;
    let own = std::ffi::CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
    let from = held.as_raw_fd();
    for target in [
        Target::Descriptor(file.as_raw_fd()),
        path(from, c"file", 0),
        path(from, c"link", 0),
        path(libc::AT_FDCWD, &own, 0),
        path(file.as_raw_fd(), c"", libc::AT_EMPTY_PATH),
    ] {
        assert_eq!(inode(target), expected, "{target:?}");
    }
    assert_ne!(inode(path(from, c"link", libc::AT_SYMLINK_NOFOLLOW)), expected);
    for (target, error) in [
        (Target::Descriptor(-7), Errno::BADF),
        (path(from, c"nothing", 0), Errno::NOENT),
        (
            Target::Path {
                directory: from,
                pointer: 1,
                flags: 0,
            },
            Errno::FAULT,
        ),
        (
            Target::Path {
                directory: from,
                pointer: u64::MAX,
                flags: 0,
            },
            Errno::FAULT,
        ),
    ] {
        assert_eq!(requester().open(target).map(drop), Err(error), "{target:?}");
    }
}
