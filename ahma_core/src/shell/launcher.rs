//! The seam between operations and processes.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ffi::OsString,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{sync::Notify, time::MissedTickBehavior};

pub use super::pool::PoolSettings;
use super::{pool::Pools, request::Waiting, script, standing::Standing};
pub use crate::jail::NulByte;
use crate::{
    call::Program,
    jail::{
        Helper, JailError, ProcessHandle, program,
        wire::{Becomes, Configure},
    },
    sandbox::{Armed, Circumstances, Policy, Tier, Tripwire, environment},
};

/// Starts confined commands. Cheap to clone; all clones share one jail and its warm processes.
#[derive(Debug, Clone)]
pub struct Launcher {
    shared: Arc<Shared>,
}

/// What a launcher needs to know.
#[derive(Debug, Clone)]
pub struct LauncherSettings {
    /// The program that plays the jail's role, usually `/proc/self/exe`. Its `main` must begin with
    /// [`crate::jail::run_if_asked`].
    pub helper: PathBuf,
    pub policy: Policy,
    pub tier: TierChoice,
    /// One that somebody with the same settings has just seen working here.
    pub proven: Option<Tier>,
    /// Absolute path of the shell.
    pub shell: PathBuf,
    /// The server's environment, of which commands get what [`crate::sandbox::environment`] picks.
    pub variables: BTreeMap<String, String>,
    /// Variables that pass on the user's word.
    pub pass_variables: Vec<String>,
    pub pool: PoolSettings,
    /// Processes of one operation at most.
    pub max_processes: u32,
    /// The largest file a command may write.
    pub max_file_bytes: u64,
    /// Where the tripwire puts what commands planted.
    pub quarantine: PathBuf,
}

/// Which tier to stand up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TierChoice {
    /// The highest that works here.
    Highest,
    Only(Tier),
}

/// One process to start.
#[derive(Debug, Clone)]
pub struct Script {
    pub program: Program,
    pub directory: PathBuf,
    /// Set on top of the allow-listed environment.
    pub environment: BTreeMap<String, String>,
    /// Searched for programs before PATH.
    pub path_dirs: Vec<PathBuf>,
    pub stdio: Stdio,
}

/// Where a command's output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// Both streams are one pipe, so their order is the kernel's.
    Merged,
    /// Two pipes.
    Separate,
    /// A pseudo-terminal, for programs that buffer on pipes. Its end reads as `EIO`, not as end of file.
    Pty,
}

/// A command that was started.
#[derive(Debug)]
pub struct Running {
    pub output: OutputPipes,
    pub process: ProcessHandle,
    /// Asked after the process is gone.
    pub tripwire: Armed,
}

/// The read ends of a command's output; non-blocking, ready for `tokio::io::unix::AsyncFd`.
#[derive(Debug)]
pub enum OutputPipes {
    Merged(OwnedFd),
    Separate { stdout: OwnedFd, stderr: OwnedFd },
}

/// Why there is no launcher.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No tier works. One line per attempt.
    #[error("no sandbox tier works here: {}", attempts.iter().map(|(tier, why)| format!("{}: {why}", tier.name())).collect::<Vec<_>>().join("; "))]
    NoTier { attempts: Vec<(Tier, String)> },
    /// The one that was insisted on.
    #[error("the {} tier of the sandbox does not work here: {why}", tier.name())]
    NotThisTier { tier: Tier, why: String },
    #[error("the scope {} was replaced while the sandbox was put up", scope.display())]
    Scope { scope: PathBuf, source: io::Error },
    #[error(transparent)]
    Jail(#[from] JailError),
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("the helper process that starts commands cannot be reached")]
    Jail(#[source] io::Error),
    #[error("the sandbox could not be put up again")]
    Restart(#[source] StartError),
    #[error("the sandbox scope {} cannot be used any more; make it again, or restart the server with another", scope.display())]
    Scope { scope: PathBuf, source: io::Error },
    /// Nothing of the command has run.
    #[error("the helper process died before it had made a process for the command: {0}")]
    Died(String),
    /// Nothing of the command has run, and another try would end the same.
    #[error("no confined process could be made: {0}")]
    Confinement(String),
    #[error(transparent)]
    NulByte(#[from] NulByte),
    #[error("the server is shutting down")]
    Closed,
}

/// What all clones of a launcher share. What stands around the scope is looked after in [`super::standing`].
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) helper: PathBuf,
    pub(super) configure: Configure,
    landlock_abi: i32,
    /// `None` after shutdown.
    pub(super) standing: Mutex<Option<Standing>>,
    /// Held by whoever puts up a new wall or starts a new jail: one is enough for all who miss it.
    pub(super) replacing: tokio::sync::Mutex<()>,
    pub(super) pools: Mutex<Pools>,
    /// Wakes the task that fills the pools.
    pub(super) taken: Notify,
    pub(super) quarantine: PathBuf,
}

/// How often a process is asked for when the helper dies with the request unanswered. Once more is enough unless an owner
/// that was just made still holds the way to the dead helper open.
const MOST_ATTEMPTS: u32 = 4;

/// Longer than a short command takes, shorter than the time between two calls of an agent.
const REFILL_DELAY: Duration = Duration::from_millis(3);

/// How often pools that nobody uses are looked after.
const IDLE_CHECK: Duration = Duration::from_secs(5);

impl Launcher {
    /// Starts the jail in the highest tier that is allowed and works. Blocks for some milliseconds; called before any
    /// runtime exists.
    pub fn start(settings: LauncherSettings) -> Result<Self, StartError> {
        let helper = Helper::start(&settings.helper)?;
        Self::start_with(helper, settings)
    }

    /// The same, with a helper that was started ahead of time from [`LauncherSettings::helper`].
    pub fn start_with(helper: Helper, settings: LauncherSettings) -> Result<Self, StartError> {
        let tiers: &[Tier] = match settings.tier {
            TierChoice::Highest => &[Tier::Full, Tier::Core],
            TierChoice::Only(Tier::Full) => &[Tier::Full],
            TierChoice::Only(Tier::Core) => &[Tier::Core],
            TierChoice::Only(Tier::Off) => &[Tier::Off],
        };
        let mut attempts = Vec::new();
        let mut ahead = Some(helper);
        for tier in tiers {
            let configure = configure(&settings, *tier);
            // One that could not put up its wall has ended.
            let helper = match ahead.take() {
                Some(helper) => helper,
                None => Helper::start(&settings.helper)?,
            };
            match Standing::put_up(helper, &configure, &settings.quarantine) {
                Ok(standing) => {
                    return Ok(Self {
                        shared: Arc::new(Shared {
                            helper: settings.helper,
                            configure,
                            landlock_abi: standing.landlock_abi(),
                            standing: Mutex::new(Some(standing)),
                            replacing: tokio::sync::Mutex::default(),
                            pools: Mutex::new(Pools::new(settings.pool, Instant::now())),
                            taken: Notify::new(),
                            quarantine: settings.quarantine,
                        }),
                    });
                }
                Err(StartError::Jail(JailError::Refused { reason })) => attempts.push((*tier, reason)),
                Err(error) => return Err(error),
            }
        }
        if matches!(settings.tier, TierChoice::Only(_))
            && let Some((tier, why)) = attempts.pop()
        {
            return Err(StartError::NotThisTier { tier, why });
        }
        Err(StartError::NoTier { attempts })
    }

    /// The tier that commands really run in.
    pub fn tier(&self) -> Tier {
        self.shared.configure.tier
    }

    /// What the user should know about the files that are watched.
    pub fn warnings(&self) -> Vec<String> {
        let standing = lock(&self.shared.standing);
        standing.iter().flat_map(Standing::warnings).collect()
    }

    /// The kernel's Landlock interface version.
    pub fn landlock_abi(&self) -> i32 {
        self.shared.landlock_abi
    }

    /// What commands are allowed.
    pub fn policy(&self) -> &Policy {
        &self.shared.configure.policy
    }

    /// What a guess about a command's failure rests on.
    pub fn circumstances(&self) -> Circumstances<'_> {
        Circumstances {
            policy: self.policy(),
            tier: self.tier(),
            home: self.variable("HOME").map(Path::new),
        }
    }

    /// Where commands look for programs.
    pub fn search_path(&self) -> &str {
        self.variable("PATH").unwrap_or(program::DEFAULT_PATH)
    }

    /// Of the environment that every command gets.
    fn variable(&self, wanted: &str) -> Option<&str> {
        let mut variables = self.shared.configure.environment.iter();
        variables.find_map(|(name, value)| (name == wanted).then_some(value.as_str()))
    }

    /// What runs scripts.
    pub(super) fn shell(&self) -> &Path {
        &self.shared.configure.shell
    }

    /// Keeps the pools filled; runs until shutdown. Spawn it once on the runtime.
    pub async fn keep_warm(self) {
        let mut idle_check = tokio::time::interval(IDLE_CHECK);
        idle_check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            match self.refill().await {
                Ok(()) => {}
                Err(LaunchError::Closed) => return,
                // Out of descriptors, say: a call would tell its client, and the next try may go better.
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "no process can be kept ready"
                    );
                }
            }
            tokio::select! {
                _ = idle_check.tick() => lock(&self.shared.pools).tend(Instant::now()),
                () = self.shared.taken.notified() => {
                    if !lock(&self.shared.pools).has_empty() {
                        // A new shell takes a processor for a moment; the call that took the last one needs it more.
                        tokio::time::sleep(REFILL_DELAY).await;
                    }
                }
            }
        }
    }

    /// What the script sets, with its directories in front of the PATH that the command would have.
    fn environment_of<'s>(&self, script: &'s Script) -> Cow<'s, BTreeMap<String, String>> {
        let mut environment = Cow::Borrowed(&script.environment);
        if script.path_dirs.is_empty() {
            return environment;
        }
        let path = environment
            .get("PATH")
            .map_or_else(|| self.search_path(), String::as_str);
        let directories = script
            .path_dirs
            .iter()
            .cloned()
            .chain(std::env::split_paths(path));
        // A scope with a colon in its name cannot stand in a PATH.
        if let Ok(path) = std::env::join_paths(directories).map(OsString::into_string)
            && let Ok(path) = path
        {
            environment.to_mut().insert("PATH".to_owned(), path);
        }
        environment
    }

    /// Starts `script`, in a warm process if one is ready. Nothing of it runs if this is given up half-way.
    pub async fn launch(&self, script: Script) -> Result<Running, LaunchError> {
        let Script {
            program,
            directory,
            stdio,
            ..
        } = &script;
        let environment = &self.environment_of(&script);
        let (becomes, text) = match program {
            Program::Argv(words) => (Becomes::Program, program::order(directory, environment, words)?),
            Program::Script(text) => (Becomes::Shell, script::render(text, directory, environment)?),
        };
        let (launcher, stdio) = (self.clone(), *stdio);
        // A task of its own: what was begun for somebody who has gone is still brought to its end.
        let obtained = tokio::spawn(async move { launcher.obtain(becomes, stdio).await });
        let (waiting, tripwire) = obtained
            .await
            .map_err(|error| LaunchError::Jail(error.into()))??;
        let (process, output) = waiting.told(text);
        self.shared.taken.notify_one();
        Ok(Running {
            output,
            process,
            tripwire,
        })
    }

    /// Gets a process that waits to hear what to run. None hears it before it has begun, so one that was lost with a dying
    /// helper can be asked for again: nothing of it ran.
    async fn obtain(&self, becomes: Becomes, stdio: Stdio) -> Result<(Waiting, Armed), LaunchError> {
        let mut attempt = 1;
        loop {
            match self.try_obtain(becomes, stdio, attempt).await {
                Err(error) if error.is_helpers_death() && attempt < MOST_ATTEMPTS => attempt += 1,
                obtained => return obtained,
            }
        }
    }

    /// Only the first attempt takes a warm process: others may have been asked of the same helper.
    async fn try_obtain(
        &self,
        becomes: Becomes,
        stdio: Stdio,
        attempt: u32,
    ) -> Result<(Waiting, Armed), LaunchError> {
        // Anew each time: the scope may be another directory by now.
        let tripwire = Tripwire::arm(&self.shared.tripwires().await?).await;
        let waiting = match stdio {
            Stdio::Merged => {
                let warm = if attempt == 1 {
                    lock(&self.shared.pools).of(becomes).take(Instant::now())
                } else {
                    None
                };
                match warm {
                    Some(warm) => warm.begin().await?,
                    None => self.shared.ask_for_merged(becomes).await?.begin().await?,
                }
            }
            Stdio::Separate => self.shared.ask_for_separate(becomes).await?,
            Stdio::Pty => self.shared.ask_for_terminal(becomes).await?,
        };
        Ok((waiting, tripwire))
    }

    /// Ends the pool and the jail. Returns when no process of theirs is left; commands must have ended before.
    pub async fn shutdown(&self) {
        lock(&self.shared.pools).clear();
        let standing = lock(&self.shared.standing).take();
        self.shared.taken.notify_one();
        if let Some(standing) = standing {
            drop(tokio::task::spawn_blocking(move || standing.close()).await);
        }
    }

    async fn refill(&self) -> Result<(), LaunchError> {
        loop {
            let Some(becomes) = lock(&self.shared.pools).missing() else {
                return if lock(&self.shared.standing).is_none() {
                    Err(LaunchError::Closed)
                } else {
                    Ok(())
                };
            };
            let warm = self.shared.ask_for_merged(becomes).await?;
            lock(&self.shared.pools).of(becomes).add(warm);
        }
    }
}

impl LaunchError {
    /// Whether the helper died before it had made a process. Then another may do better, and nothing has run.
    fn is_helpers_death(&self) -> bool {
        matches!(
            self,
            Self::Died(_) | Self::Restart(StartError::Jail(JailError::Silent | JailError::Talk(_)))
        )
    }
}

fn configure(settings: &LauncherSettings, tier: Tier) -> Configure {
    let temp = settings.policy.visible_temp(tier);
    let environment = environment(settings.variables.clone(), &settings.pass_variables, &temp);
    Configure {
        policy: settings.policy.clone(),
        tier,
        rehearse: settings.proven != Some(tier),
        shell: settings.shell.clone(),
        environment: environment.into_iter().collect(),
        max_processes: settings.max_processes,
        max_file_bytes: settings.max_file_bytes,
    }
}

/// The data behind these locks is whole between any two statements, so a panic elsewhere does not spoil it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
