//! How many processes an operation of the core tier may have, where no kernel limit counts those of one operation.
//! A thread counts as a process, as it does to the kernel.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::children;

/// What becomes of calls that make a process: they are counted until the owner says that everything is being killed and
/// must not grow back meanwhile. The owner says so in one thread and the broker heeds it in another.
#[derive(Debug, Default)]
pub(super) struct Births {
    are_refused: AtomicBool,
}

impl Births {
    /// From now on, for good. One that is being admitted at this moment is found by the next sweep.
    pub(super) fn refuse(&self) {
        self.are_refused.store(true, Ordering::SeqCst);
    }

    pub(super) fn are_refused(&self) -> bool {
        self.are_refused.load(Ordering::SeqCst)
    }
}

/// How many processes an operation may still make. Those that were admitted and are not born yet are missed by a count;
/// they are no more than those that live, so there are never more than twice as many as shall be.
#[derive(Debug)]
pub(super) struct Population {
    most: u32,
    /// Before they are counted again.
    left: u32,
    counted: Instant,
}

/// Counting takes a while when there are many, and more often than this would be all that the owner does.
const COUNT_AT_MOST_EVERY: Duration = Duration::from_millis(100);

impl Population {
    pub(super) fn new(most: u32) -> Self {
        Self {
            most,
            left: most.saturating_sub(1),
            counted: Instant::now(),
        }
    }

    /// Takes room for one more process, if there is any.
    pub(super) fn has_room(&mut self) -> bool {
        if self.left == 0 && self.counted.elapsed() >= COUNT_AT_MOST_EVERY {
            let alive = u32::try_from(children::population()).unwrap_or(u32::MAX);
            self.left = self.most.saturating_sub(alive);
            self.counted = Instant::now();
        }
        let room = self.left > 0;
        self.left = self.left.saturating_sub(1);
        room
    }
}

/// Whether a call makes a process or a thread.
pub(super) fn is_birth(call: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if matches!(call, libc::SYS_fork | libc::SYS_vfork) {
        return true;
    }
    call == libc::SYS_clone
}
