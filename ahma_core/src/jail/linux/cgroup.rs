//! A cgroup for each operation, where one is delegated to this server: its limit makes `fork` fail, and `cgroup.kill`
//! ends everything in it at once, however fast it forks.
//!
//! Only a cgroup that was given to us is used: the parent of our own if systemd marks it as delegated (`Delegate=pids`
//! with `DelegateSubgroup=`), or the root of the hierarchy, which our own is only where nothing manages cgroups. Commands
//! of the core tier cannot leave theirs: Landlock keeps them from writing there.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::Pid;

const ROOT: &str = "/sys/fs/cgroup";

/// A cgroup in which the jail may make others.
#[derive(Debug, Clone)]
pub(in crate::jail) struct DelegatedCgroup {
    path: PathBuf,
}

/// The cgroup of one operation.
#[derive(Debug)]
pub(in crate::jail) struct OperationCgroup {
    path: PathBuf,
}

impl DelegatedCgroup {
    /// Finds one that works, by moving the calling process into a child of it and back.
    pub(in crate::jail) fn find() -> Option<Self> {
        let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = Path::new(ROOT).join(own_cgroup(&membership)?);
        let delegated = Self {
            path: parent_for_operations(&own)?,
        };
        fs::write(delegated.path.join("cgroup.subtree_control"), "+pids").ok()?;
        // A process may enter a cgroup whatever its limit; only a fork is refused.
        let probe = delegated.create(rustix::process::getpid(), 1).ok()?;
        let moved = enter(probe.path()).and_then(|()| enter(&own));
        probe.remove();
        moved.is_ok().then_some(delegated)
    }

    /// Makes the cgroup of the operation that `supervisor` is in charge of.
    pub(in crate::jail) fn create(&self, supervisor: Pid, max_processes: u32) -> io::Result<OperationCgroup> {
        let path = self.path_of(supervisor);
        fs::create_dir(&path)?;
        let cgroup = OperationCgroup { path };
        if let Err(error) = fs::write(cgroup.path.join("pids.max"), max_processes.to_string()) {
            cgroup.remove();
            return Err(error);
        }
        Ok(cgroup)
    }

    /// Removes the cgroup of an operation whose supervisor has ended, and returns whether it is gone. Supervisors do not
    /// do that themselves: root's have no capability left to.
    pub(in crate::jail) fn remove(&self, supervisor: Pid) -> bool {
        match fs::remove_dir(self.path_of(supervisor)) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    fn path_of(&self, supervisor: Pid) -> PathBuf {
        self.path.join(format!("ahma-{}", supervisor.as_raw_nonzero()))
    }
}

impl OperationCgroup {
    pub(in crate::jail) fn path(&self) -> &Path {
        &self.path
    }

    /// Kills everything in it.
    pub(in crate::jail) fn kill(&self) {
        fs::write(self.path.join("cgroup.kill"), "1").ok();
    }

    /// Removes it. It must be empty.
    fn remove(&self) {
        fs::remove_dir(&self.path).ok();
    }
}

/// Moves the calling process into a cgroup.
pub(super) fn enter(cgroup: &Path) -> io::Result<()> {
    fs::write(cgroup.join("cgroup.procs"), "0")
}

/// The path of the process's own cgroup below the root, from `/proc/self/cgroup`.
fn own_cgroup(membership: &str) -> Option<&str> {
    membership
        .lines()
        .find_map(|line| line.strip_prefix("0::/"))
        .filter(|path| !path.starts_with(".."))
}

/// The cgroup in which those of operations may be made.
fn parent_for_operations(own: &Path) -> Option<PathBuf> {
    if own == Path::new(ROOT) {
        // Only the true root has no type. In any other, processes of its own would exclude children with limits.
        let is_root = own.join("cgroup.procs").exists() && !own.join("cgroup.type").exists();
        return is_root.then(|| own.to_owned());
    }
    let parent = own.parent()?;
    let mut mark = [0; 2];
    let length = rustix::fs::getxattr(parent, c"user.delegate", &mut mark).ok()?;
    let is_empty = fs::read(parent.join("cgroup.procs")).is_ok_and(|processes| processes.is_empty());
    (&mark[..length] == b"1" && is_empty).then(|| parent.to_owned())
}

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod tests;
