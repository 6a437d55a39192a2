//! Decoding of notified calls: which file one acts on and what it changes, by a table of argument positions.
//!
//! Nothing here reads the memory of the process that made the call (`requester`): paths and times are still pointers.

use crate::sandbox::linux::seccomp::SYS_FCHMODAT2;

/// A notified call, with pointers into the memory of the process that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotifiedCall {
    pub(super) target: Target,
    pub(super) action: Action,
}

/// The file that a call acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Descriptor(i32),
    Path {
        directory: i32,
        pointer: u64,
        /// `AT_…` flags.
        flags: i32,
    },
}

/// The action on that file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    SetMode(u32),
    SetOwner { user: u32, group: u32 },
    SetTimes { pointer: u64, unit: TimeUnit },
    Watch { inotify: i32, events: u32 },
}

/// Structure in which a call passes times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(any(target_arch = "x86_64", test)),
    expect(dead_code, reason = "only older calls use anything but nanoseconds")
)]
pub(super) enum TimeUnit {
    /// `utimbuf`.
    Seconds,
    /// Two `timeval`.
    Microseconds,
    /// Two `timespec`.
    Nanoseconds,
}

/// Positions of the arguments that name the target.
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(
        dead_code,
        reason = "other processors never had the calls without a directory"
    )
)]
enum TargetAt {
    Descriptor(usize),
    /// A path from the working directory.
    Path(usize),
    /// As `Path`; the last component is not followed if it is a link.
    LinkPath(usize),
    /// A directory's descriptor, then a path.
    PathFrom(usize),
    /// As `PathFrom`, with flags.
    PathFromWithFlags(usize, usize),
    /// As `PathFromWithFlags`; a null pointer means the descriptor.
    OptionalPathFrom(usize, usize),
    /// A path and the events of inotify, which say whether to follow a link.
    WatchedPath(usize, usize),
}

/// Positions of the arguments that describe the action.
enum ActionAt {
    Mode(usize),
    /// The user, then the group.
    Owner(usize),
    Times(usize, TimeUnit),
    /// An inotify descriptor and events.
    Watch(usize, usize),
}

/// Every notified call. Landlock does not know these, so without a mount view a command could make them on any file of
/// its user.
const CALLS: &[(i64, TargetAt, ActionAt)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, TargetAt::Path(0), ActionAt::Mode(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chown, TargetAt::Path(0), ActionAt::Owner(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lchown, TargetAt::LinkPath(0), ActionAt::Owner(1)),
    #[cfg(target_arch = "x86_64")]
    (
        libc::SYS_utime,
        TargetAt::Path(0),
        ActionAt::Times(1, TimeUnit::Seconds),
    ),
    #[cfg(target_arch = "x86_64")]
    (
        libc::SYS_utimes,
        TargetAt::Path(0),
        ActionAt::Times(1, TimeUnit::Microseconds),
    ),
    #[cfg(target_arch = "x86_64")]
    (
        libc::SYS_futimesat,
        TargetAt::PathFrom(0),
        ActionAt::Times(2, TimeUnit::Microseconds),
    ),
    (libc::SYS_fchmod, TargetAt::Descriptor(0), ActionAt::Mode(1)),
    (libc::SYS_fchmodat, TargetAt::PathFrom(0), ActionAt::Mode(2)),
    (
        SYS_FCHMODAT2,
        TargetAt::PathFromWithFlags(0, 3),
        ActionAt::Mode(2),
    ),
    (libc::SYS_fchown, TargetAt::Descriptor(0), ActionAt::Owner(1)),
    (
        libc::SYS_fchownat,
        TargetAt::PathFromWithFlags(0, 4),
        ActionAt::Owner(2),
    ),
    (
        libc::SYS_utimensat,
        TargetAt::OptionalPathFrom(0, 3),
        ActionAt::Times(2, TimeUnit::Nanoseconds),
    ),
    (
        libc::SYS_inotify_add_watch,
        TargetAt::WatchedPath(1, 2),
        ActionAt::Watch(0, 2),
    ),
];

/// Numbers of the calls to be notified of.
pub(in crate::jail) fn numbers() -> Vec<i64> {
    CALLS.iter().map(|(number, ..)| *number).collect()
}

/// Decodes a call; `None` for one that is not notified.
pub(super) fn decode(number: i64, arguments: &[u64; 6]) -> Option<NotifiedCall> {
    let (_, target, action) = CALLS.iter().find(|(listed, ..)| *listed == number)?;
    Some(NotifiedCall {
        target: target.decode(arguments),
        action: action.decode(arguments),
    })
}

/// The kernel takes all but pointers as 32 bits wide and ignores the rest.
fn int(arguments: &[u64; 6], position: usize) -> i32 {
    arguments[position] as i32
}

fn unsigned(arguments: &[u64; 6], position: usize) -> u32 {
    arguments[position] as u32
}

impl TargetAt {
    fn decode(&self, arguments: &[u64; 6]) -> Target {
        let path = |directory, position: usize, flags| Target::Path {
            directory,
            pointer: arguments[position],
            flags,
        };
        match *self {
            Self::Descriptor(at) => Target::Descriptor(int(arguments, at)),
            Self::Path(at) => path(libc::AT_FDCWD, at, 0),
            Self::LinkPath(at) => path(libc::AT_FDCWD, at, libc::AT_SYMLINK_NOFOLLOW),
            Self::PathFrom(at) => path(int(arguments, at), at + 1, 0),
            Self::OptionalPathFrom(at, _) if arguments[at + 1] == 0 => Target::Descriptor(int(arguments, at)),
            Self::PathFromWithFlags(at, flags) | Self::OptionalPathFrom(at, flags) => {
                path(int(arguments, at), at + 1, int(arguments, flags))
            }
            Self::WatchedPath(at, events) => {
                let follows = unsigned(arguments, events) & libc::IN_DONT_FOLLOW == 0;
                let flags = if follows { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
                path(libc::AT_FDCWD, at, flags)
            }
        }
    }
}

impl ActionAt {
    fn decode(&self, arguments: &[u64; 6]) -> Action {
        match *self {
            Self::Mode(at) => Action::SetMode(unsigned(arguments, at)),
            Self::Owner(at) => Action::SetOwner {
                user: unsigned(arguments, at),
                group: unsigned(arguments, at + 1),
            },
            Self::Times(at, unit) => Action::SetTimes {
                pointer: arguments[at],
                unit,
            },
            Self::Watch(inotify, events) => Action::Watch {
                inotify: int(arguments, inotify),
                events: unsigned(arguments, events),
            },
        }
    }
}

#[cfg(test)]
#[path = "notified_call_tests.rs"]
mod tests;
