//! Room for connections: each is a descriptor, and so is every end of a child's pipes.
//!
//! The bridge asks for as many descriptors as it may have. Its children get back what was before: programs that use
//! select(2) count on it.

use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};

/// The limit that the bridge was started with.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Descriptors open whatever the clients do: the listener, files, the runtime's own, and what a start takes for a moment.
const OWN: usize = 128;
/// Three pipes, the watch on its exit, and another pair for the one that takes its place.
const PER_SESSION: usize = 6;

/// Raises the limit, and gives the number of connections that leave enough for the children of so many sessions.
pub(crate) fn room_for_connections(wanted: usize, sessions: usize) -> usize {
    let before = BEFORE.get_or_init(|| getrlimit(Resource::Nofile));
    let raised = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "the limit of open files stays");
    }
    let room = room(getrlimit(Resource::Nofile).current, sessions);
    if room < wanted {
        tracing::warn!("no more than {room} connections fit under the limit of open files (ulimit -n)");
    }
    wanted.min(room)
}

fn room(limit: Option<u64>, sessions: usize) -> usize {
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let kept = sessions.saturating_mul(PER_SESSION).saturating_add(OWN);
    // Sessions that cannot be reached are of no use either.
    limit.saturating_sub(kept).max(limit / 2).max(1)
}

/// Gives a child the limit that the bridge was started with.
#[cfg(target_os = "linux")]
pub(crate) fn give_back(child: Pid) {
    if let Some(before) = BEFORE.get()
        && let Err(error) = rustix::process::prlimit(Some(child), Resource::Nofile, *before)
    {
        tracing::debug!(%error, "a child keeps the raised limit of open files");
    }
}

/// Elsewhere a process cannot set another's limits.
#[cfg(not(target_os = "linux"))]
pub(crate) fn give_back(_child: Pid) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_children() {
        for (limit, sessions, expected) in [
            (Some(1024), 50, 1024 - 128 - 300),
            (Some(200), 50, 100),
            (Some(1), 50, 1),
            (Some(1024), usize::MAX, 512),
            (None, 0, usize::MAX - 128),
        ] {
            assert_eq!(room(limit, sessions), expected, "{limit:?} {sessions}");
        }
    }
}
