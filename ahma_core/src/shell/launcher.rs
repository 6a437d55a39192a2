//! The one way from operations to processes.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ffi::OsString,
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::MissedTickBehavior};

use super::{
    LaunchError, LauncherSettings, RunningProcess, StartError, Stdio, TierChoice,
    idle_process::IdleProcess,
    pool::Pools,
    sandbox_instance::{CurrentSandbox, InstanceSettings, SandboxInstance},
    script,
};
use crate::{
    call::Program,
    jail::{
        Jail, JailError,
        program::{self, OutputStreams},
        wire::ProcessKind,
    },
    sandbox::{Guard, HintContext, PendingCheck, Policy, Tier, held},
};

/// Starts confined commands. Cheap to clone; all clones share one jail and its idle processes.
#[derive(Debug, Clone)]
pub struct Launcher {
    shared: Arc<Shared>,
}

/// One process to start.
#[derive(Debug, Clone)]
pub struct Script {
    pub program: Program,
    pub directory: PathBuf,
    /// File to read as standard input, as the command sees it.
    pub stdin: Option<PathBuf>,
    /// Set on top of the allow-listed environment.
    pub environment: BTreeMap<String, String>,
    /// Searched for programs before PATH.
    pub path_dirs: Vec<PathBuf>,
    pub stdio: Stdio,
}

/// Source of a process.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// An idle one, or a new one if none is.
    Pool,
    /// A new one.
    Jail,
}

/// State shared by all clones of a launcher.
#[derive(Debug)]
struct Shared {
    sandbox: CurrentSandbox,
    pools: Mutex<Pools>,
    /// Wakes the task that fills the pools.
    taken: Notify,
    /// A command has ended.
    ended: Arc<Notify>,
    /// For the sandbox that only reads.
    settings: LauncherSettings,
    /// The launcher of the sandbox that only reads, once one was needed. Locked while it starts, so that a shutdown
    /// meanwhile ends it too.
    read_only: tokio::sync::Mutex<Option<Launcher>>,
}

/// Attempts to get a process when the jail dies with the request unanswered. A second is enough unless a supervisor that
/// was just started still holds the socket of the dead jail open.
const MAX_ATTEMPTS: u32 = 4;

/// Longest wait for the end of a command before its place in the pool is filled again: a build must not keep others
/// waiting.
const LONG_COMMAND: Duration = Duration::from_millis(20);

/// Time for the answer to go out before the next process is started.
const AFTER_COMMAND: Duration = Duration::from_millis(1);

/// Interval at which unused pools are checked.
const IDLE_CHECK: Duration = Duration::from_secs(5);

/// Directories below the scope in which projects keep programs of their own.
const PROJECT_DIRECTORIES: [&str; 3] = [".venv/bin", "venv/bin", "node_modules/.bin"];

/// The directories of programs that a project has of its own and that exist now.
pub(crate) fn project_directories(scope: &Path) -> Vec<PathBuf> {
    let directories = PROJECT_DIRECTORIES.iter().map(|below| scope.join(below));
    directories.filter(|directory| directory.is_dir()).collect()
}

impl Launcher {
    /// Starts the jail in the highest tier that is allowed and works. Blocks for some milliseconds; called before any
    /// runtime exists.
    pub fn start(settings: LauncherSettings) -> Result<Self, StartError> {
        let jail = Jail::start(&settings.helper)?;
        Self::start_with(jail, settings)
    }

    /// The same, with a jail that was started ahead of time from [`LauncherSettings::helper`].
    pub fn start_with(jail: Jail, settings: LauncherSettings) -> Result<Self, StartError> {
        let mut attempts = Vec::new();
        let mut started = Some(jail);
        for tier in settings.tier.candidates() {
            let instance_settings = InstanceSettings {
                program: settings.helper.clone(),
                configure: settings.configure(tier),
                quarantine: settings.quarantine.clone(),
            };
            // One that could not set up its sandbox has ended.
            let jail = match started.take() {
                Some(jail) => jail,
                None => Jail::start(&settings.helper)?,
            };
            match SandboxInstance::set_up(jail, &instance_settings) {
                Ok(instance) => {
                    return Ok(Self {
                        shared: Arc::new(Shared {
                            sandbox: CurrentSandbox::new(instance, instance_settings),
                            pools: Mutex::new(Pools::new(settings.pool, Instant::now())),
                            taken: Notify::new(),
                            ended: Arc::default(),
                            settings,
                            read_only: tokio::sync::Mutex::default(),
                        }),
                    });
                }
                Err(StartError::Jail(JailError::Refused { reason })) => attempts.push((tier, reason)),
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
        self.shared.sandbox.configure().tier
    }

    /// Warnings about protected paths, for the user.
    pub fn warnings(&self) -> Vec<String> {
        self.shared.sandbox.warnings()
    }

    /// The kernel's Landlock interface version.
    pub fn landlock_abi(&self) -> i32 {
        self.shared.sandbox.landlock_abi()
    }

    /// The policy that commands run under.
    pub fn policy(&self) -> &Policy {
        &self.shared.sandbox.configure().policy
    }

    /// Facts for a guess about a command's failure.
    pub fn hint_context(&self) -> HintContext<'_> {
        HintContext {
            policy: self.policy(),
            tier: self.tier(),
            home: self.variable("HOME").map(Path::new),
            reads_only: false,
        }
    }

    /// The `PATH` of commands.
    pub fn search_path(&self) -> &str {
        self.variable("PATH").unwrap_or(program::DEFAULT_PATH)
    }

    /// The project's own directories of programs that exist now; searched before `PATH`.
    fn project_directories(&self) -> Vec<PathBuf> {
        project_directories(&self.policy().scope)
    }

    /// A variable of the environment that every command gets.
    fn variable(&self, wanted: &str) -> Option<&str> {
        let mut variables = self.shared.sandbox.configure().environment.iter();
        variables.find_map(|(name, value)| (name == wanted).then_some(value.as_str()))
    }

    /// The shell that runs scripts.
    pub(super) fn shell(&self) -> &Path {
        &self.shared.sandbox.configure().shell
    }

    /// Keeps the pools filled; runs until shutdown. Spawn it once on the runtime.
    pub async fn keep_pools_filled(self) {
        let mut idle_check = tokio::time::interval(IDLE_CHECK);
        idle_check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            match self.refill().await {
                Ok(()) => {}
                Err(LaunchError::Closed) => return,
                // Out of descriptors, say: a call would report it to its client, and the next try may succeed.
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "no idle process can be started"
                    );
                }
            }
            tokio::select! {
                _ = idle_check.tick() => self.tend_pools(),
                () = self.shared.taken.notified() => {
                    if !self.shared.pools.lock().has_empty() {
                        // A new shell takes a processor for a moment; the call that took one needs it more.
                        let _ = tokio::time::timeout(LONG_COMMAND, self.shared.ended.notified()).await;
                        // The next call of a client that does not pause would need it sooner than it is there.
                        if self.shared.pools.lock().client_pauses() {
                            tokio::time::sleep(AFTER_COMMAND).await;
                        }
                    }
                }
            }
        }
    }

    fn tend_pools(&self) {
        let now = Instant::now();
        let mut pools = self.shared.pools.lock();
        pools.tend(now);
        let fell_quiet = pools.fell_quiet(now);
        drop(pools);
        if fell_quiet {
            held::release_memory();
        }
    }

    /// The variables of a script, with its directories in front of the PATH that the command would have.
    fn environment_of<'s>(&self, script: &'s Script) -> Cow<'s, BTreeMap<String, String>> {
        let mut environment = Cow::Borrowed(&script.environment);
        let project = self.project_directories();
        if script.path_dirs.is_empty() && project.is_empty() {
            return environment;
        }
        let path = environment
            .get("PATH")
            .map_or_else(|| self.search_path(), String::as_str);
        let directories = script
            .path_dirs
            .iter()
            .cloned()
            .chain(
                project
                    .into_iter()
                    .filter(|found| !script.path_dirs.contains(found)),
            )
            .chain(std::env::split_paths(path));
        // A scope with a colon in its name cannot stand in a PATH.
        if let Ok(path) = std::env::join_paths(directories).map(OsString::into_string)
            && let Ok(path) = path
        {
            environment.to_mut().insert("PATH".to_owned(), path);
        }
        environment
    }

    /// Starts `script`, in an idle process if there is one. Nothing of it runs if the future is dropped half-way.
    pub async fn launch(&self, script: Script) -> Result<RunningProcess, LaunchError> {
        self.launch_from(Source::Pool, script).await
    }

    /// The same in a new process: those that are idle wait for calls, and what is no call shall not make them more.
    pub(crate) async fn launch_new(&self, script: Script) -> Result<RunningProcess, LaunchError> {
        self.launch_from(Source::Jail, script).await
    }

    async fn launch_from(&self, source: Source, script: Script) -> Result<RunningProcess, LaunchError> {
        match script.program {
            Program::ReadOnlyScript(_) => {
                let launcher = self.clone();
                // A task of its own, as below.
                let started = tokio::spawn(async move { launcher.read_only().await });
                let read_only = started.await.map_err(|error| LaunchError::Jail(error.into()))??;
                read_only.launch_here(source, script).await
            }
            Program::Argv(_) | Program::Script(_) | Program::File(_) => {
                self.launch_here(source, script).await
            }
        }
    }

    /// The launcher of the sandbox that only reads; started when it is first needed.
    async fn read_only(&self) -> Result<Self, LaunchError> {
        let mut current = self.shared.read_only.lock().await;
        if let Some(launcher) = &*current {
            return Ok(launcher.clone());
        }
        if self.shared.sandbox.is_closed() {
            return Err(LaunchError::Closed);
        }
        let settings = LauncherSettings {
            policy: self.read_only_policy(),
            tier: TierChoice::Only(self.tier()),
            proven: None,
            ..self.shared.settings.clone()
        };
        let started = tokio::task::spawn_blocking(move || {
            let temp = settings.policy.temp();
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&temp)
                .map_err(LaunchError::Jail)?;
            Self::start(settings).map_err(LaunchError::Restart)
        });
        let launcher = started.await.map_err(|error| LaunchError::Jail(error.into()))??;
        tokio::spawn(launcher.clone().keep_pools_filled());
        Ok(current.insert(launcher).clone())
    }

    /// The temporary directory of a program, on the host and as the program sees it.
    pub(crate) async fn temp_for(&self, program: &Program) -> Result<(PathBuf, PathBuf), LaunchError> {
        let of = |policy: &Policy| (policy.temp(), policy.visible_temp(self.tier()));
        match program {
            Program::ReadOnlyScript(_) => Ok(of(self.read_only().await?.policy())),
            Program::Argv(_) | Program::Script(_) | Program::File(_) => Ok(of(self.policy())),
        }
    }

    /// Its temporary files are its own: a process of the other sandbox that reads a pipe or a file there could write for it.
    fn read_only_policy(&self) -> Policy {
        let policy = self.policy();
        policy.read_only(policy.private.join("readonly"))
    }

    async fn launch_here(&self, source: Source, script: Script) -> Result<RunningProcess, LaunchError> {
        let Script {
            program,
            directory,
            stdin,
            stdio,
            ..
        } = &script;
        let environment = &self.environment_of(&script);
        let (kind, text) = match program {
            Program::Argv(words) => {
                let stdin = stdin.as_deref();
                let streams = match stdio {
                    Stdio::Merged => OutputStreams::Joined,
                    Stdio::Separate | Stdio::Pty => OutputStreams::AsTheyAre,
                };
                let request = program::encode_exec_request(directory, stdin, streams, environment, words)?;
                (ProcessKind::Program, request)
            }
            Program::File(request) => {
                let request = program::encode_file_request(directory, request)?;
                (ProcessKind::Program, request)
            }
            Program::Script(text) | Program::ReadOnlyScript(text) => (
                ProcessKind::Shell,
                script::render(text, directory, stdin.as_deref(), environment)?,
            ),
        };
        let (launcher, stdio) = (self.clone(), *stdio);
        // A task of its own: a sandbox that is being replaced must be brought to its end although the caller has gone.
        let obtained = tokio::spawn(async move { launcher.obtain(source, kind, stdio).await });
        let (idle, guard_check) = obtained
            .await
            .map_err(|error| LaunchError::Jail(error.into()))??;
        let mut running = idle.run(text, stdio, guard_check)?;
        running.process.notify_end(Arc::clone(&self.shared.ended));
        self.shared.taken.notify_one();
        Ok(running)
    }

    /// Gets an idle process that is ready. One that was lost with a dying jail has been told nothing, so the request can be
    /// made again.
    async fn obtain(
        &self,
        mut source: Source,
        kind: ProcessKind,
        stdio: Stdio,
    ) -> Result<(IdleProcess, PendingCheck), LaunchError> {
        let mut attempt = 1;
        loop {
            match self.try_obtain(source, kind, stdio).await {
                Err(error) if error.is_jail_death() && attempt < MAX_ATTEMPTS => {
                    attempt += 1;
                    // Others in the pool may have been requested from the same jail.
                    source = Source::Jail;
                }
                obtained => return obtained,
            }
        }
    }

    async fn try_obtain(
        &self,
        source: Source,
        kind: ProcessKind,
        stdio: Stdio,
    ) -> Result<(IdleProcess, PendingCheck), LaunchError> {
        let Shared { sandbox, pools, .. } = &*self.shared;
        // Anew each time: the scope may be another directory by now.
        let guard_check = Guard::begin(&sandbox.guards(pools).await?).await;
        let pooled = match (source, kind, stdio) {
            (Source::Pool, _, Stdio::Merged) | (Source::Pool, ProcessKind::Program, Stdio::Separate) => {
                pools.lock().take(kind, Instant::now())
            }
            (Source::Jail, ..) | (_, ProcessKind::Shell, Stdio::Separate) | (.., Stdio::Pty) => None,
        };
        let mut idle = match pooled {
            Some(idle) => idle,
            None => IdleProcess::request(sandbox, kind, stdio).await?,
        };
        idle.wait_until_ready().await?;
        Ok((idle, guard_check))
    }

    /// Ends the pool and the jail. Returns when no process of theirs is left; commands must have ended before.
    pub async fn shutdown(&self) {
        self.shared.pools.lock().close();
        let instance = self.shared.sandbox.close();
        self.shared.taken.notify_one();
        // No other can be started by now, and its directory is removed with the one around it.
        if let Some(read_only) = self.shared.read_only.lock().await.take() {
            Box::pin(read_only.shutdown()).await;
        }
        if let Some(instance) = instance {
            drop(tokio::task::spawn_blocking(move || instance.close()).await);
        }
    }

    async fn refill(&self) -> Result<(), LaunchError> {
        let Shared { sandbox, pools, .. } = &*self.shared;
        loop {
            let Some(kind) = pools.lock().missing() else {
                return if sandbox.is_closed() {
                    Err(LaunchError::Closed)
                } else {
                    Ok(())
                };
            };
            let idle = IdleProcess::request(sandbox, kind, Stdio::Merged).await?;
            pools.lock().of(kind).add(idle);
        }
    }
}
