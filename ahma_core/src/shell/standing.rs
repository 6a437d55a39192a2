//! What stands around the scope: the jail and the tripwire, for as long as the scope is the same directory.
//!
//! Both are replaced while the server goes on serving: the jail when its process died, the whole when another directory
//! has taken the scope's place. That takes milliseconds, or as long as a slow file system likes, so it is done beside the
//! runtime; only the look at the scope itself, one system call for each command, is not. The lock is held for looking and
//! exchanging only.

use std::{
    collections::VecDeque,
    io,
    os::{fd::BorrowedFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustix::fs::FileType;

use super::{
    LaunchError, StartError,
    launcher::{Shared, lock},
};
use crate::{
    jail::{
        Helper,
        client::Jail,
        wire::{Configure, Start},
    },
    sandbox::{Depth, Policy, Tier, Tripwire},
};

/// So many jails may die before a request could be sent to them; then something is wrong with them all.
const MOST_DEATHS: u32 = 4;

/// Before a jail that has not yet read all that it was asked for is asked again.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct Standing {
    scope: Identity,
    jail: Jail,
    /// How many jails there were before this one.
    replaced: u64,
    /// One around the scope, and one around the administrative directory of a linked worktree.
    tripwires: Arc<[Arc<Tripwire>]>,
}

impl Standing {
    /// Blocks until the wall stands.
    pub(super) fn put_up(
        helper: Helper,
        configure: &Configure,
        quarantine: &Path,
    ) -> Result<Self, StartError> {
        let Configure { policy, tier, .. } = configure;
        let unusable = |source| StartError::Scope {
            scope: policy.scope.clone(),
            source,
        };
        // Before the wall stands: a directory that takes its place meanwhile is noticed with the next command.
        let scope = Identity::of(&policy.scope).map_err(unusable)?;
        let jail = helper.configure(configure)?;
        let watched = watched(policy, *tier);
        let tripwires = std::iter::once(&policy.scope)
            .chain(&policy.worktree)
            .map(|root| Tripwire::new(root, watched.clone(), quarantine.to_owned()).map(Arc::new))
            .collect::<io::Result<_>>()
            .map_err(unusable)?;
        Ok(Self {
            scope,
            jail,
            replaced: 0,
            tripwires,
        })
    }

    pub(super) fn landlock_abi(&self) -> i32 {
        self.jail.landlock_abi
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        self.tripwires.iter().filter_map(|tripwire| tripwire.warning())
    }

    /// Lets the jail go and waits until it and its owners have ended.
    pub(super) fn close(self) {
        self.jail.close();
    }
}

impl Shared {
    /// The tripwires of the scope. A scope that was replaced, by a new clone of the project for instance, gets a new
    /// wall; commands that run in the old directory go on there.
    pub(super) async fn tripwires(self: &Arc<Self>) -> Result<Arc<[Arc<Tripwire>]>, LaunchError> {
        if let Some(tripwires) = self.tripwires_if_the_same()? {
            return Ok(tripwires);
        }
        let _turn = self.replacing.lock().await;
        if let Some(tripwires) = self.tripwires_if_the_same()? {
            return Ok(tripwires);
        }
        let scope = self.configure.policy.scope.display();
        tracing::warn!(%scope, "the scope is another directory now; putting up a new wall");
        let mut new = self
            .beside(|shared| {
                let helper = Helper::start(&shared.helper)?;
                Standing::put_up(helper, &shared.configure, &shared.quarantine)
            })
            .await?
            .map_err(LaunchError::Restart)?;
        let tripwires = Arc::clone(&new.tripwires);
        let old = {
            let mut standing = lock(&self.standing);
            let old = match standing.as_mut() {
                Some(current) => {
                    // Whoever saw the old jail die must not take the new one for it.
                    new.replaced = current.replaced + 1;
                    std::mem::replace(current, new)
                }
                // Shut down meanwhile.
                None => new,
            };
            lock(&self.pools).empty();
            old
        };
        self.taken.notify_one();
        self.beside(move |_| old.jail.kill()).await?;
        Ok(tripwires)
    }

    fn tripwires_if_the_same(&self) -> Result<Option<Arc<[Arc<Tripwire>]>>, LaunchError> {
        let scope = &self.configure.policy.scope;
        let identity = Identity::of(scope).map_err(|source| LaunchError::Scope {
            scope: scope.clone(),
            source,
        })?;
        let standing = lock(&self.standing);
        let current = standing.as_ref().ok_or(LaunchError::Closed)?;
        Ok((current.scope == identity).then(|| Arc::clone(&current.tripwires)))
    }

    /// Sends a request, to a new jail if the old one died. Processes that the old one started live on.
    pub(super) async fn request(
        self: &Arc<Self>,
        start: Start,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), LaunchError> {
        let mut died = 0;
        loop {
            let (sent, replaced) = {
                let standing = lock(&self.standing);
                let current = standing.as_ref().ok_or(LaunchError::Closed)?;
                (current.jail.request(start, fds), current.replaced)
            };
            match sent {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                Err(error) if is_death(&error) && died < MOST_DEATHS => {
                    self.replace_jail(replaced).await?;
                    died += 1;
                }
                Err(error) => return Err(LaunchError::Jail(error)),
            }
        }
    }

    /// Starts another jail in the place of the one that had `replaced` predecessors, unless somebody else just did.
    async fn replace_jail(self: &Arc<Self>, replaced: u64) -> Result<(), LaunchError> {
        let _turn = self.replacing.lock().await;
        if lock(&self.standing)
            .as_ref()
            .is_none_or(|current| current.replaced != replaced)
        {
            return Ok(());
        }
        tracing::warn!("the helper process that starts commands died; starting a new one");
        let new = self
            .beside(|shared| {
                Helper::start(&shared.helper).and_then(|helper| helper.configure(&shared.configure))
            })
            .await?
            .map_err(|error| LaunchError::Restart(error.into()))?;
        let old = match lock(&self.standing).as_mut() {
            Some(current) => {
                current.replaced += 1;
                std::mem::replace(&mut current.jail, new)
            }
            // Shut down meanwhile.
            None => new,
        };
        self.beside(move |_| old.close()).await
    }

    /// Does what blocks where it holds up nobody.
    async fn beside<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, LaunchError> {
        let shared = Arc::clone(self);
        tokio::task::spawn_blocking(move || work(&shared))
            .await
            .map_err(|error| LaunchError::Jail(error.into()))
    }
}

fn is_death(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// Which directory a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// Follows no link: nobody who swaps one in may choose what the wall stands around.
    fn of(directory: &Path) -> io::Result<Self> {
        let found = rustix::fs::lstat(directory)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            device: found.st_dev,
            inode: found.st_ino,
        })
    }
}

/// The protected paths, and how closely the tripwire must look at them.
fn watched(policy: &Policy, tier: Tier) -> Vec<(PathBuf, Depth)> {
    let depth = |path: &Path| match tier {
        _ if path == policy.scope.join(".git") => Depth::Itself,
        // A mount covers what lies in it, for as long as it is the same directory and nothing in it has another name
        // outside. A file is small enough to look into.
        Tier::Full if is_itself(path) && path.is_dir() && !has_other_names(path) => Depth::Itself,
        Tier::Full | Tier::Core | Tier::Off => Depth::Tree,
    };
    match tier {
        Tier::Full | Tier::Core => policy
            .protected
            .iter()
            .map(|path| (path.clone(), depth(path)))
            .collect(),
        Tier::Off => Vec::new(),
    }
}

/// Files in a directory that are looked at for other names; more are no settings, hooks or tool files.
const MOST_LOOKED_AT: usize = 2000;

/// Whether a file below the directory has another name somewhere, by which it could be changed.
fn has_other_names(directory: &Path) -> bool {
    let mut waiting = VecDeque::from([directory.to_owned()]);
    let mut looked_at = 0;
    while let Some(directory) = waiting.pop_front() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            looked_at += 1;
            match entry.metadata() {
                // One further down may; then it is looked at like the others.
                _ if looked_at > MOST_LOOKED_AT => return true,
                Ok(found) if found.is_dir() => waiting.push_back(entry.path()),
                Ok(found) if found.nlink() > 1 => return true,
                Ok(_) | Err(_) => {}
            }
        }
    }
    false
}

/// Whether a path exists and no link is on the way to it.
fn is_itself(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real == path)
}
