//! The process whose call waits for an answer: its memory, and what its paths lead to.

use std::{
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt as _,
    path::{Component, Path, PathBuf},
};

/// Links on one path; the kernel's own limit.
const MAX_LINKS: usize = 40;

/// The longest path that the kernel takes.
const MAX_PATH: usize = 4096;

pub(crate) struct Requester {
    pub(crate) pid: i32,
}

/// Treatment of a link at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    Followed,
    Kept,
}

impl Requester {
    /// The bytes at an address, as many as there are up to `length`.
    pub(crate) fn memory(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0_u8; length];
        let local = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: length,
        };
        let remote = libc::iovec {
            iov_base: usize::try_from(address).ok()? as *mut libc::c_void,
            iov_len: length,
        };
        // SAFETY: the local buffer has that length and outlives the call; the kernel checks the other one.
        let read = unsafe { libc::process_vm_readv(self.pid, &raw const local, 1, &raw const remote, 1, 0) };
        bytes.truncate(usize::try_from(read).ok()?);
        Some(bytes)
    }

    /// The path at an address.
    pub(crate) fn path(&self, address: u64) -> Option<PathBuf> {
        // Up to the end of a page at a time: the next one may not be there.
        const PAGE: u64 = 4096;
        let mut text = Vec::new();
        while text.len() < MAX_PATH {
            let from = address + u64::try_from(text.len()).ok()?;
            let chunk = self.memory(from, usize::try_from(PAGE - from % PAGE).ok()?)?;
            let end = chunk.iter().position(|byte| *byte == 0);
            text.extend_from_slice(&chunk[..end.unwrap_or(chunk.len())]);
            if end.is_some() {
                return Some(OsString::from_vec(text).into());
            }
        }
        None
    }

    /// The present path of one of its descriptors, or of its working directory.
    pub(crate) fn descriptor(&self, number: i32) -> Option<PathBuf> {
        let link = match number {
            libc::AT_FDCWD => format!("/proc/{}/cwd", self.pid),
            number => format!("/proc/{}/fd/{number}", self.pid),
        };
        fs::read_link(link).ok().filter(|path| path.is_absolute())
    }

    /// The real path, as far as it exists.
    pub(crate) fn real(&self, base: &Path, path: &Path, last: LastLink) -> PathBuf {
        let mut real = PathBuf::new();
        let mut left: Vec<OsString> = base
            .join(path)
            .components()
            .rev()
            .map(|part| part.as_os_str().to_owned())
            .collect();
        let mut links = 0;
        while let Some(part) = left.pop() {
            match Path::new(&part).components().next() {
                Some(Component::ParentDir) => {
                    real.pop();
                }
                Some(Component::Normal(_)) => real.push(&part),
                Some(_) => real.push("/"),
                None => {}
            }
            let is_last = left.is_empty();
            if is_of_process(&real) || (is_last && last == LastLink::Kept) {
                continue;
            }
            let target = match real.as_path() {
                own if own == Path::new("/proc/self") || own == Path::new("/proc/thread-self") => {
                    Some(PathBuf::from(self.pid.to_string()))
                }
                other => fs::read_link(other).ok(),
            };
            let Some(target) = target.filter(|_| links < MAX_LINKS) else {
                continue;
            };
            links += 1;
            // What a descriptor of a process refers to may have no path; its own name is all there is to judge then.
            if !target.is_absolute() && real.starts_with("/proc") && target.to_string_lossy().contains(':') {
                continue;
            }
            real.pop();
            if target.is_absolute() {
                real = PathBuf::new();
            }
            left.extend(target.components().rev().map(|part| part.as_os_str().to_owned()));
        }
        real
    }
}

/// On macOS these are the descriptors of the process itself, and no links.
fn is_of_process(path: &Path) -> bool {
    ["/dev/stdin", "/dev/stdout", "/dev/stderr"]
        .iter()
        .any(|name| path == Path::new(name))
        || path.starts_with("/dev/fd")
}
