//! The jail and the guards of one scope, for as long as the scope is the same directory.
//!
//! Both are replaced while the server goes on serving: the jail when its process died, the whole instance when another
//! directory has taken the scope's place. That takes milliseconds, or as long as a slow file system takes, so it is done
//! in a blocking task; only the look at the scope itself, one system call for each command, is not. The lock is held for
//! looking and exchanging only.

use std::{
    io,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::fs::FileType;

use super::{LaunchError, StartError, pool::Pools};
use crate::{
    jail::{
        Jail,
        client::ReadyJail,
        wire::{Configure, Start},
    },
    sandbox::{Guard, held},
};

/// Jails that may die before a request could be sent to them; more have a common cause.
const MAX_DEATHS: u32 = 4;

/// Pause before the next request to a jail that has not read all of the earlier ones.
const RETRY_DELAY: Duration = Duration::from_millis(5);

/// The sandbox that one jail has set up and serves until it is replaced.
#[derive(Debug)]
pub(super) struct SandboxInstance {
    scope: Identity,
    jail: ReadyJail,
    /// Number of jails before this one.
    replaced: u64,
    /// One around the scope, and one around the administrative directory of a linked worktree.
    guards: Arc<[Arc<Guard>]>,
}

impl SandboxInstance {
    /// Blocks until the sandbox is set up.
    pub(super) fn set_up(jail: Jail, settings: &InstanceSettings) -> Result<Self, StartError> {
        let Configure { policy, tier, .. } = &settings.configure;
        let unusable = |source| StartError::Scope {
            scope: policy.scope.clone(),
            source,
        };
        // Before the sandbox is set up: a directory that takes its place meanwhile is noticed with the next command.
        let scope = Identity::of(&policy.scope).map_err(unusable)?;
        let mut guards = Vec::new();
        for root in std::iter::once(&policy.scope).chain(&policy.worktree) {
            let guard = Guard::new(root, &policy.protected, *tier, settings.quarantine.clone());
            guards.extend(guard.map_err(unusable)?.map(Arc::new));
        }
        let jail = jail.configure(&settings.configure)?;
        Ok(Self {
            scope,
            jail,
            replaced: 0,
            guards: guards.into(),
        })
    }

    fn warnings(&self) -> impl Iterator<Item = String> {
        self.guards.iter().filter_map(|guard| guard.warning())
    }

    /// Closes the jail and waits until it and its supervisors have ended.
    pub(super) fn close(self) {
        self.jail.close();
    }
}

/// Everything that it takes to set an instance up.
#[derive(Debug)]
pub(super) struct InstanceSettings {
    /// The program that is started as the jail.
    pub(super) program: PathBuf,
    pub(super) configure: Configure,
    pub(super) quarantine: PathBuf,
}

/// The sandbox instance in use.
#[derive(Debug)]
pub(super) struct CurrentSandbox {
    settings: Arc<InstanceSettings>,
    landlock_abi: i32,
    /// `None` after shutdown.
    instance: Mutex<Option<SandboxInstance>>,
    /// Held while an instance or a jail is replaced: one replacement is enough for all who miss it.
    replacing: tokio::sync::Mutex<()>,
}

impl CurrentSandbox {
    pub(super) fn new(instance: SandboxInstance, settings: InstanceSettings) -> Self {
        Self {
            settings: Arc::new(settings),
            landlock_abi: instance.jail.landlock_abi,
            instance: Mutex::new(Some(instance)),
            replacing: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn configure(&self) -> &Configure {
        &self.settings.configure
    }

    pub(super) fn landlock_abi(&self) -> i32 {
        self.landlock_abi
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let instance = self.instance.lock();
        instance.iter().flat_map(SandboxInstance::warnings).collect()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.instance.lock().is_none()
    }

    /// Takes the instance, so that nothing is requested any more.
    pub(super) fn close(&self) -> Option<SandboxInstance> {
        self.instance.lock().take()
    }

    /// The guards of the scope. A scope that was replaced, by a new clone of the project for instance, gets a new
    /// instance, and `pools` are emptied; commands that run in the old directory go on there.
    pub(super) async fn guards(&self, pools: &Mutex<Pools>) -> Result<Arc<[Arc<Guard>]>, LaunchError> {
        if let Some(guards) = self.guards_if_unchanged()? {
            return Ok(guards);
        }
        let _turn = self.replacing.lock().await;
        if let Some(guards) = self.guards_if_unchanged()? {
            return Ok(guards);
        }
        let scope = self.settings.configure.policy.scope.display();
        tracing::warn!(%scope, "the scope is another directory now; setting up a new sandbox");
        let settings = Arc::clone(&self.settings);
        let mut new = blocking(move || SandboxInstance::set_up(Jail::start(&settings.program)?, &settings))
            .await?
            .map_err(LaunchError::Restart)?;
        let guards = Arc::clone(&new.guards);
        let old = {
            let mut instance = self.instance.lock();
            let old = match instance.as_mut() {
                Some(current) => {
                    // A request that failed at the old jail must not replace the new one.
                    new.replaced = current.replaced + 1;
                    std::mem::replace(current, new)
                }
                // Shut down meanwhile.
                None => new,
            };
            // Under the lock: no process of the old instance is to be used with the guards of the new one.
            pools.lock().empty();
            old
        };
        blocking(move || old.jail.kill()).await?;
        Ok(guards)
    }

    fn guards_if_unchanged(&self) -> Result<Option<Arc<[Arc<Guard>]>>, LaunchError> {
        let scope = &self.settings.configure.policy.scope;
        let identity = Identity::of(scope).map_err(|source| LaunchError::Scope {
            scope: scope.clone(),
            source,
        })?;
        let instance = self.instance.lock();
        let current = instance.as_ref().ok_or(LaunchError::Closed)?;
        Ok((current.scope == identity).then(|| Arc::clone(&current.guards)))
    }

    /// Sends a request, to a new jail if the old one died. Processes that the old one started live on.
    pub(super) async fn request(&self, start: Start, fds: &[BorrowedFd<'_>]) -> Result<(), LaunchError> {
        let mut died = 0;
        loop {
            let (sent, replaced) = {
                let instance = self.instance.lock();
                let current = instance.as_ref().ok_or(LaunchError::Closed)?;
                (current.jail.request(start, fds), current.replaced)
            };
            match sent {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                Err(error) if is_death(&error) && died < MAX_DEATHS => {
                    self.replace_jail(replaced).await?;
                    died += 1;
                }
                Err(error) => return Err(LaunchError::Jail(error)),
            }
        }
    }

    /// Starts another jail in the place of the one that had `replaced` predecessors, unless that was just done.
    async fn replace_jail(&self, replaced: u64) -> Result<(), LaunchError> {
        let _turn = self.replacing.lock().await;
        if self
            .instance
            .lock()
            .as_ref()
            .is_none_or(|current| current.replaced != replaced)
        {
            return Ok(());
        }
        tracing::warn!("the helper process that starts commands died; starting a new one");
        let settings = Arc::clone(&self.settings);
        let new = blocking(move || Jail::start(&settings.program)?.configure(&settings.configure))
            .await?
            .map_err(|error| LaunchError::Restart(error.into()))?;
        let old = match self.instance.lock().as_mut() {
            Some(current) => {
                current.replaced += 1;
                std::mem::replace(&mut current.jail, new)
            }
            // Shut down meanwhile.
            None => new,
        };
        blocking(move || old.close()).await
    }
}

/// Runs what blocks off the runtime's threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, LaunchError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| LaunchError::Jail(error.into()))
}

fn is_death(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// Identity of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// Follows no link: one that was swapped in must not choose what is opened to commands.
    fn of(directory: &Path) -> io::Result<Self> {
        let found = rustix::fs::lstat(directory)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            device: held::device_of(&found),
            inode: found.st_ino,
        })
    }
}
