//! The system calls that are asked of the profile, and what each one does to which path or address.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use test_support::{Profile, Subject};

use crate::{
    requester::{LastLink, Requester},
    start::there,
};

/// Numbers of arguments.
type Argument = usize;

/// A call and one of the things that it does. A call may stand in several rows.
struct Row {
    call: libc::c_long,
    place: Place,
    effect: Effect,
}

/// The path that a call is about.
#[derive(Clone, Copy)]
enum Place {
    /// A descriptor of a directory, and a path from there.
    At(Argument, Argument),
    /// The same, and a link at its end is meant itself.
    LinkAt(Argument, Argument),
    Path(Argument),
    Link(Argument),
    Descriptor(Argument),
    /// The address of a socket.
    Address(Argument),
    /// The same, in a message.
    Message(Argument),
}

#[derive(Clone, Copy)]
enum Effect {
    /// With these flags.
    Open(Argument),
    /// With flags in a structure.
    OpenHow(Argument),
    /// In the place of what is there.
    Replace,
    Operation(&'static str),
    /// To this one.
    Mode(Argument),
    Connect,
    Bind,
}

const CREATE: Effect = Effect::Operation("file-write-create");
const UNLINK: Effect = Effect::Operation("file-write-unlink");
const LINK: Effect = Effect::Operation("file-link");
const READ: Effect = Effect::Operation("file-read-data");
const WRITE: Effect = Effect::Operation("file-write-data");
const OWNER: Effect = Effect::Operation("file-write-owner");
const TIMES: Effect = Effect::Operation("file-write-times");
const ATTRIBUTE: Effect = Effect::Operation("file-write-xattr");

const fn row(call: libc::c_long, place: Place, effect: Effect) -> Row {
    Row { call, place, effect }
}

/// Not in the libc crate.
const SYS_FCHMODAT2: libc::c_long = 452;

const ROWS: &[Row] = &[
    row(libc::SYS_openat, Place::At(0, 1), Effect::Open(2)),
    row(libc::SYS_openat2, Place::At(0, 1), Effect::OpenHow(2)),
    row(libc::SYS_mkdirat, Place::LinkAt(0, 1), CREATE),
    row(libc::SYS_mknodat, Place::LinkAt(0, 1), CREATE),
    row(libc::SYS_symlinkat, Place::LinkAt(1, 2), CREATE),
    row(libc::SYS_linkat, Place::LinkAt(2, 3), CREATE),
    row(libc::SYS_linkat, Place::At(0, 1), LINK),
    row(libc::SYS_unlinkat, Place::LinkAt(0, 1), UNLINK),
    row(libc::SYS_renameat, Place::LinkAt(0, 1), UNLINK),
    row(libc::SYS_renameat, Place::LinkAt(2, 3), Effect::Replace),
    row(libc::SYS_renameat2, Place::LinkAt(0, 1), UNLINK),
    row(libc::SYS_renameat2, Place::LinkAt(2, 3), Effect::Replace),
    row(libc::SYS_truncate, Place::Path(0), WRITE),
    row(libc::SYS_fchmodat, Place::At(0, 1), Effect::Mode(2)),
    row(SYS_FCHMODAT2, Place::At(0, 1), Effect::Mode(2)),
    row(libc::SYS_fchmod, Place::Descriptor(0), Effect::Mode(1)),
    row(libc::SYS_fchownat, Place::LinkAt(0, 1), OWNER),
    row(libc::SYS_fchown, Place::Descriptor(0), OWNER),
    row(libc::SYS_utimensat, Place::At(0, 1), TIMES),
    row(libc::SYS_setxattr, Place::Path(0), ATTRIBUTE),
    row(libc::SYS_lsetxattr, Place::Link(0), ATTRIBUTE),
    row(libc::SYS_fsetxattr, Place::Descriptor(0), ATTRIBUTE),
    row(libc::SYS_removexattr, Place::Path(0), ATTRIBUTE),
    row(libc::SYS_lremovexattr, Place::Link(0), ATTRIBUTE),
    row(libc::SYS_fremovexattr, Place::Descriptor(0), ATTRIBUTE),
    row(libc::SYS_inotify_add_watch, Place::Path(1), READ),
    row(libc::SYS_connect, Place::Address(1), Effect::Connect),
    row(libc::SYS_sendto, Place::Address(4), Effect::Connect),
    row(libc::SYS_sendmsg, Place::Message(1), Effect::Connect),
    row(libc::SYS_bind, Place::Address(1), Effect::Bind),
];

/// Calls that newer processors do not have.
#[cfg(not(target_arch = "x86_64"))]
const OLD_ROWS: &[Row] = &[];
#[cfg(target_arch = "x86_64")]
const OLD_ROWS: &[Row] = &[
    row(libc::SYS_open, Place::Path(0), Effect::Open(1)),
    row(libc::SYS_creat, Place::Path(0), Effect::Replace),
    row(libc::SYS_mkdir, Place::Link(0), CREATE),
    row(libc::SYS_mknod, Place::Link(0), CREATE),
    row(libc::SYS_symlink, Place::Link(1), CREATE),
    row(libc::SYS_link, Place::Link(1), CREATE),
    row(libc::SYS_link, Place::Link(0), LINK),
    row(libc::SYS_unlink, Place::Link(0), UNLINK),
    row(libc::SYS_rmdir, Place::Link(0), UNLINK),
    row(libc::SYS_rename, Place::Link(0), UNLINK),
    row(libc::SYS_rename, Place::Link(1), Effect::Replace),
    row(libc::SYS_chmod, Place::Path(0), Effect::Mode(1)),
    row(libc::SYS_chown, Place::Path(0), OWNER),
    row(libc::SYS_lchown, Place::Link(0), OWNER),
    row(libc::SYS_utime, Place::Path(0), TIMES),
    row(libc::SYS_utimes, Place::Path(0), TIMES),
    row(libc::SYS_futimesat, Place::At(0, 1), TIMES),
];

/// Calls that macOS does not have, and with which a command could get around the locks.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_io_uring_setup,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_pivot_root,
    libc::SYS_ptrace,
    libc::SYS_setns,
    libc::SYS_umount2,
    libc::SYS_unshare,
];

/// The filter: these calls wait for an answer, those are refused.
pub(crate) fn filter() -> Vec<libc::sock_filter> {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ERRNO: u32 = 0x0005_0000;
    const NOTIFY: u32 = 0x7fc0_0000;
    const ALLOW: u32 = 0x7fff_0000;
    let instruction = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let mut program = vec![instruction(LOAD_WORD, 0, 0)];
    let notified = rows().map(|row| (row.call, NOTIFY));
    let refused = REFUSED
        .iter()
        .map(|call| (*call, ERRNO | libc::EPERM.unsigned_abs()));
    for (call, verdict) in notified.chain(refused) {
        program.push(instruction(
            JUMP_EQUAL,
            1,
            u32::try_from(call).unwrap_or(u32::MAX),
        ));
        program.push(instruction(RETURN, 0, verdict));
    }
    program.push(instruction(RETURN, 0, ALLOW));
    program
}

fn rows() -> impl Iterator<Item = &'static Row> {
    ROWS.iter().chain(OLD_ROWS)
}

/// The profile allows all that the call does.
pub(crate) fn is_allowed(profile: &Profile, requester: &Requester, call: i32, arguments: &[u64; 6]) -> bool {
    let of_call = rows().filter(|row| row.call == libc::c_long::from(call));
    of_call
        .into_iter()
        .all(|row| row.is_allowed(profile, requester, arguments))
}

impl Row {
    fn is_allowed(&self, profile: &Profile, requester: &Requester, arguments: &[u64; 6]) -> bool {
        let path = match self.place {
            Place::At(directory, path) => {
                at(requester, arguments, directory, path, self.last_link(arguments))
            }
            Place::LinkAt(directory, path) => at(requester, arguments, directory, path, LastLink::Kept),
            Place::Path(path) => from_here(requester, arguments[path], self.last_link(arguments)),
            Place::Link(path) => from_here(requester, arguments[path], LastLink::Kept),
            Place::Descriptor(number) => requester.descriptor(descriptor(arguments[number])),
            Place::Address(address) => return self.may_reach(profile, requester, arguments[address]),
            Place::Message(message) => {
                // It begins with the address.
                let bytes = requester.memory(arguments[message], size_of::<u64>());
                let address = bytes
                    .and_then(|bytes| bytes.try_into().ok())
                    .map_or(0, u64::from_ne_bytes);
                return self.may_reach(profile, requester, address);
            }
        };
        // One that cannot be read, or that leads to no file, is the kernel's to judge.
        let Some(path) = path else { return true };
        let path = there(&path);
        let subject = Subject::Path(&path);
        let allows = |operation| profile.allows(operation, subject);
        match self.effect {
            Effect::Operation(operation) => allows(operation),
            Effect::Mode(mode) => {
                let is_set_id = arguments[mode] & u64::from(libc::S_ISUID | libc::S_ISGID) != 0;
                allows("file-write-mode") && (!is_set_id || allows("file-write-setugid"))
            }
            Effect::Replace => allows("file-write-create") && (!exists(&path) || allows("file-write-unlink")),
            Effect::Open(flags) => may_open(profile, &path, arguments[flags]),
            Effect::OpenHow(how) => {
                let bytes = requester.memory(arguments[how], size_of::<u64>());
                let flags = bytes
                    .and_then(|bytes| bytes.try_into().ok())
                    .map_or(0, u64::from_ne_bytes);
                may_open(profile, &path, flags)
            }
            Effect::Connect | Effect::Bind => true,
        }
    }

    fn last_link(&self, arguments: &[u64; 6]) -> LastLink {
        let is_kept = match self.effect {
            Effect::Open(flags) => is_set(arguments[flags], libc::O_NOFOLLOW),
            _ => false,
        };
        if is_kept {
            LastLink::Kept
        } else {
            LastLink::Followed
        }
    }

    fn may_reach(&self, profile: &Profile, requester: &Requester, address: u64) -> bool {
        let Some(bytes) = requester
            .memory(address, size_of::<libc::sockaddr_un>())
            .filter(|_| address != 0)
        else {
            return true;
        };
        let family = bytes
            .first_chunk()
            .map_or(0, |bytes| i32::from(u16::from_ne_bytes(*bytes)));
        let port = bytes[2..]
            .first_chunk()
            .map_or(0, |bytes| u16::from_be_bytes(*bytes));
        let ip: Option<IpAddr> = match family {
            libc::AF_INET => bytes[4..]
                .first_chunk::<4>()
                .map(|bytes| Ipv4Addr::from(*bytes).into()),
            libc::AF_INET6 => bytes[8..]
                .first_chunk::<16>()
                .map(|bytes| Ipv6Addr::from(*bytes).into()),
            // Without a path it is Linux's own kind, which Landlock closes.
            libc::AF_UNIX if bytes[2] != 0 => {
                let end = bytes[2..]
                    .iter()
                    .position(|byte| *byte == 0)
                    .map_or(bytes.len(), |end| end + 2);
                let path = Path::new(std::ffi::OsStr::from_bytes(&bytes[2..end]));
                let Some(directory) = requester.descriptor(libc::AT_FDCWD) else {
                    return true;
                };
                let path = there(&requester.real(&directory, path, LastLink::Followed));
                let operation = match self.effect {
                    Effect::Bind => "network-bind",
                    _ => "network-outbound",
                };
                return profile.allows(operation, Subject::Path(&path));
            }
            _ => None,
        };
        match (ip, self.effect) {
            (Some(ip), Effect::Bind) => profile.allows("network-bind", Subject::Local(ip, port)),
            (Some(ip), _) => profile.allows("network-outbound", Subject::Remote(ip, port)),
            (None, _) => true,
        }
    }
}

fn may_open(profile: &Profile, path: &Path, flags: u64) -> bool {
    let allows = |operation| profile.allows(operation, Subject::Path(path));
    if is_set(flags, libc::O_PATH) {
        return allows("file-read-metadata");
    }
    let access = i32::try_from(flags & 3).unwrap_or(0);
    let writes = access != libc::O_RDONLY || is_set(flags, libc::O_TRUNC);
    let reads = access != libc::O_WRONLY;
    let makes = is_set(flags, libc::O_CREAT) && !exists(path);
    let is_nameless = is_set(flags, libc::O_TMPFILE);
    (!reads || allows("file-read-data"))
        && (!writes || is_nameless || allows("file-write-data"))
        && (!makes || allows("file-write-create"))
}

fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(crate::start::here(path)).is_ok()
}

fn is_set(flags: u64, flag: i32) -> bool {
    let flag = u64::from(flag.unsigned_abs());
    flags & flag == flag
}

fn at(
    requester: &Requester,
    arguments: &[u64; 6],
    directory: Argument,
    path: Argument,
    last: LastLink,
) -> Option<PathBuf> {
    let directory = descriptor(arguments[directory]);
    // A call may name the descriptor alone.
    let path = match arguments[path] {
        0 => PathBuf::new(),
        address => requester.path(address)?,
    };
    let base = match path.is_absolute() {
        true => PathBuf::from("/"),
        false => requester.descriptor(directory)?,
    };
    Some(requester.real(&base, &path, last))
}

fn from_here(requester: &Requester, address: u64, last: LastLink) -> Option<PathBuf> {
    let path = requester.path(address)?;
    let directory = requester.descriptor(libc::AT_FDCWD)?;
    Some(requester.real(&directory, &path, last))
}

/// An argument is 64 bits wide, a descriptor half of that.
fn descriptor(argument: u64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "as the kernel does")]
    let number = argument as i32;
    number
}
