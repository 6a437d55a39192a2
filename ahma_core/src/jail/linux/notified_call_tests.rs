use super::{Action, NotifiedCall, Target, TimeUnit, decode, numbers};
use crate::sandbox::linux::seccomp::SYS_FCHMODAT2;

const HERE: i32 = libc::AT_FDCWD;
const LINK: i32 = libc::AT_SYMLINK_NOFOLLOW;

fn path(directory: i32, pointer: u64, flags: i32) -> Target {
    Target::Path {
        directory,
        pointer,
        flags,
    }
}

#[test]
fn every_notified_call_is_decoded() {
    // A value above the 32 bits that the kernel takes.
    const ABOVE: u64 = 0xdead_0000_0000;
    let mode = Action::SetMode(0o640);
    let owner = Action::SetOwner { user: 7, group: 8 };
    let times = |unit| Action::SetTimes {
        pointer: 0x2000,
        unit,
    };
    let watch = |events| Action::Watch { inotify: 5, events };
    let minus_100 = HERE as u32 as u64;
    let table: &[(i64, [u64; 6], Target, Action)] = &[
        #[cfg(target_arch = "x86_64")]
        (
            libc::SYS_chmod,
            [0x1000, 0o640, 0, 0, 0, 0],
            path(HERE, 0x1000, 0),
            mode,
        ),
        #[cfg(target_arch = "x86_64")]
        (
            libc::SYS_chown,
            [0x1000, 7, 8, 0, 0, 0],
            path(HERE, 0x1000, 0),
            owner,
        ),
        #[cfg(target_arch = "x86_64")]
        (
            libc::SYS_lchown,
            [0x1000, 7, 8, 0, 0, 0],
            path(HERE, 0x1000, LINK),
            owner,
        ),
        #[cfg(target_arch = "x86_64")]
        (
            libc::SYS_utime,
            [0x1000, 0x2000, 0, 0, 0, 0],
            path(HERE, 0x1000, 0),
            times(TimeUnit::Seconds),
        ),
        #[cfg(target_arch = "x86_64")]
        (
            libc::SYS_utimes,
            [0x1000, 0x2000, 0, 0, 0, 0],
            path(HERE, 0x1000, 0),
            times(TimeUnit::Microseconds),
        ),
        #[cfg(target_arch = "x86_64")]
        (
            libc::SYS_futimesat,
            [4, 0x1000, 0x2000, 0, 0, 0],
            path(4, 0x1000, 0),
            times(TimeUnit::Microseconds),
        ),
        (
            libc::SYS_fchmod,
            [ABOVE | 3, ABOVE | 0o640, 0, 0, 0, 0],
            Target::Descriptor(3),
            mode,
        ),
        (
            libc::SYS_fchmodat,
            [minus_100, 0x1000, 0o640, 0xff, 0, 0],
            path(HERE, 0x1000, 0),
            mode,
        ),
        (
            SYS_FCHMODAT2,
            [4, 0x1000, 0o640, LINK as u64, 0, 0],
            path(4, 0x1000, LINK),
            mode,
        ),
        (libc::SYS_fchown, [3, 7, 8, 0, 0, 0], Target::Descriptor(3), owner),
        (
            libc::SYS_fchownat,
            [4, 0x1000, 7, 8, LINK as u64, 0],
            path(4, 0x1000, LINK),
            owner,
        ),
        (
            libc::SYS_utimensat,
            [4, 0x1000, 0x2000, LINK as u64, 0, 0],
            path(4, 0x1000, LINK),
            times(TimeUnit::Nanoseconds),
        ),
        (
            libc::SYS_utimensat,
            [4, 0, 0x2000, 0, 0, 0],
            Target::Descriptor(4),
            times(TimeUnit::Nanoseconds),
        ),
        (
            libc::SYS_inotify_add_watch,
            [5, 0x1000, 2, 0, 0, 0],
            path(HERE, 0x1000, 0),
            watch(2),
        ),
        (
            libc::SYS_inotify_add_watch,
            [5, 0x1000, u64::from(libc::IN_DONT_FOLLOW | 2), 0, 0, 0],
            path(HERE, 0x1000, LINK),
            watch(libc::IN_DONT_FOLLOW | 2),
        ),
    ];
    for (number, arguments, target, action) in table {
        let expected = NotifiedCall {
            target: *target,
            action: *action,
        };
        assert_eq!(decode(*number, arguments), Some(expected), "call {number}");
    }
    for number in numbers() {
        assert!(
            table.iter().any(|row| row.0 == number),
            "call {number} is not tested"
        );
    }
}

#[test]
fn no_call_that_makes_a_process_is_notified() {
    for number in [libc::SYS_clone, libc::SYS_clone3, libc::SYS_execve] {
        assert_eq!(decode(number, &[0; 6]), None);
    }
}
