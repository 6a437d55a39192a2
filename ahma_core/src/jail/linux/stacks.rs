//! Stacks for processes that share the jail's memory.

use std::{
    collections::HashMap,
    ffi::{c_int, c_void},
    io, ptr,
};

use rustix::process::Pid;

/// Much more than is needed; only pages that were written take memory.
const OUTER: usize = 192 * 1024;
const INNER: usize = 60 * 1024;
/// Below both, so that a stack that grew too long ends its process instead of writing elsewhere.
const GUARD: usize = 4 * 1024;

/// Two stacks: that of a supervisor, and below it that of the process that becomes its shell. Never unmapped.
#[derive(Debug)]
pub(super) struct Stack {
    start: *mut u8,
}

/// Those in use, by the supervisor, and those that wait for another.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    used: HashMap<Pid, Stack>,
    free: Vec<Stack>,
}

impl Stacks {
    pub(super) fn take(&mut self) -> io::Result<Stack> {
        self.free.pop().map_or_else(Stack::map, Ok)
    }

    pub(super) fn give_back(&mut self, stack: Stack) {
        self.free.push(stack);
    }

    pub(super) fn in_use(&mut self, supervisor: Pid, stack: Stack) {
        self.used.insert(supervisor, stack);
    }

    pub(super) fn ended(&mut self, supervisor: Pid) {
        self.free.extend(self.used.remove(&supervisor));
    }
}

impl Stack {
    fn map() -> io::Result<Self> {
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK,
        );
        // SAFETY: a new mapping at a place that the kernel chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), GUARD + INNER + OUTER, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the first page of the new mapping, which nothing uses.
        if unsafe { libc::mprotect(start, GUARD, libc::PROT_NONE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // A fork of the jail would copy all of them, and uses none.
        // SAFETY: the new mapping; a forked process runs on the jail's own stack.
        if unsafe { libc::madvise(start, GUARD + INNER + OUTER, libc::MADV_DONTFORK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: start.cast() })
    }

    /// The end of the inner stack, from which it grows down.
    pub(super) fn inner_end(&self) -> *mut c_void {
        // SAFETY: inside the mapping.
        unsafe { self.start.add(GUARD + INNER) }.cast()
    }

    /// Puts `value` at the end of the outer stack and calls `with` what is left of that, and the value's place.
    pub(super) fn push<T: Copy>(
        &self,
        value: T,
        with: impl FnOnce(*mut c_void, *mut c_void) -> c_int,
    ) -> c_int {
        // A multiple of any alignment that matters.
        let size = size_of::<T>().next_multiple_of(64);
        // SAFETY: inside the mapping, aligned to 64 bytes as its end is, and used by nothing else.
        let place = unsafe { self.start.add(GUARD + INNER + OUTER - size) };
        // SAFETY: as above.
        unsafe { place.cast::<T>().write(value) };
        with(place.cast(), place.cast())
    }
}
