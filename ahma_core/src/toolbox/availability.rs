//! Checks that the program of a tool works: looks for it on the PATH of commands, and runs the check command of the tool file
//! in the sandbox, if there is one.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures::future::{FusedFuture as _, FutureExt as _};
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    sync::{Notify, watch},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Unavailable,
    known_answers::{CheckKey, KnownAnswers},
    program_lookup::ProgramLookup,
};
use crate::{
    call::Program,
    catalog::Tool,
    jail::{ExitStatus, ProcessEvent, ProcessHandle},
    mtdf::{AvailabilityCheck, AvailabilityCommand},
    observe::displayed,
    sandbox::{PendingCheck, ProtectedChange},
    shell::{LaunchError, Launcher, OutputPipes, RunningProcess, Script, Stdio, project_directories},
};

/// A check that takes longer has something wrong with it.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// The result of a check that ran; the error is the reason why the tool is not available.
pub(super) type CheckResult = Result<(), String>;

/// The reason why a tool is not available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lack {
    /// Its program does not exist. This is found out quickly, so the list of tools can depend on it.
    Program(String),
    /// Its program exists, and the check failed.
    Check(String),
}

impl Lack {
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Program(reason) | Self::Check(reason) => reason,
        }
    }
}

/// Reason for a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Nothing is known: the answer that another server got is as good.
    First,
    /// It failed, and something may have changed since.
    Again,
}

/// Runs checks, and knows when nothing of them is left. Cheap to clone; all clones count together.
#[derive(Debug, Clone)]
pub struct AvailabilityChecker {
    /// None as long as the sandbox is being set up.
    launcher: watch::Receiver<Option<Launcher>>,
    /// Notified when a check waits for the launcher.
    needed: Arc<Notify>,
    /// The `PATH` of commands.
    search_path: String,
    checks: TaskTracker,
    timeout: Duration,
    /// Results that are shared with other servers.
    known: Option<KnownAnswers>,
}

impl AvailabilityChecker {
    pub fn new(launcher: Launcher) -> Self {
        let search_path = launcher.search_path().to_owned();
        Self::before_sandbox(watch::channel(Some(launcher)).1, Arc::default(), search_path)
    }

    /// A checker that looks for programs at once, and runs them when there is a launcher, which it notifies of the need.
    pub(crate) fn before_sandbox(
        launcher: watch::Receiver<Option<Launcher>>,
        needed: Arc<Notify>,
        search_path: String,
    ) -> Self {
        Self {
            launcher,
            needed,
            search_path,
            checks: TaskTracker::new(),
            timeout: CHECK_TIMEOUT,
            known: None,
        }
    }

    /// Lets each check take this long.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Waits until nothing of any check is left. One whose result is still waited for may take its time.
    pub async fn ended(&self) {
        self.checks.close();
        self.checks.wait().await;
    }

    /// Shares results with other servers by files in this directory.
    #[must_use]
    pub fn sharing(self, directory: PathBuf) -> Self {
        Self {
            known: Some(KnownAnswers::new(directory)),
            ..self
        }
    }

    /// Looks for the programs of all these checks, and runs none of them. Those that are missing, and why.
    pub(super) async fn missing_programs(
        &self,
        scope: &Path,
        checks: Vec<Arc<AvailabilityCheck>>,
    ) -> HashMap<Arc<AvailabilityCheck>, Lack> {
        let (checker, scope) = (self.clone(), scope.to_owned());
        let look = move || {
            let project = project_directories(&scope);
            let missing = |check: Arc<AvailabilityCheck>| {
                let lookup = checker.lookup(&scope, &check, &project)?;
                let is_missing = lookup.find().is_none();
                is_missing.then(|| (check.clone(), not_found(&check)))
            };
            checks.into_iter().filter_map(missing).collect()
        };
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }

    /// Looks for the program of a check and, if the check has a command, runs it, unless the answer is known. It ends as
    /// soon as its answer is not waited for any more.
    pub(super) async fn ask(
        &self,
        scope: &Path,
        check: &AvailabilityCheck,
        question: Question,
    ) -> Result<(), Lack> {
        let (mut key, mut place) = (None, String::new());
        if let Some(lookup) = self.lookup(scope, check, &project_directories(scope)) {
            let (command, scope) = (check.command().cloned(), scope.to_owned());
            let look = move || {
                let program = lookup.find()?;
                let key = command.and_then(|command| lookup.key(&command, &program, &scope));
                Some((program, key))
            };
            let found = tokio::task::spawn_blocking(look).await.ok().flatten();
            let (program, found_key) = found.ok_or_else(|| not_found(check))?;
            place = format!(
                " (inside the sandbox; the program is there: {})",
                program.display()
            );
            key = found_key;
        }
        let Some(command) = check.command() else {
            return Ok(());
        };
        let answer = match (&self.known, key) {
            (Some(known), Some(key)) => self.ask_once(scope, command, known, &key, question).await,
            _ => self.run(scope, command).await.unwrap_or_else(Err),
        };
        answer.map_err(|reason| Lack::Check(format!("`{}` {reason}{place}", command.argv.join(" "))))
    }

    /// Directories in which the program of a check is looked for, in the order of commands, with those of the `project`; none
    /// if it is given as a path.
    fn lookup(&self, scope: &Path, check: &AvailabilityCheck, project: &[PathBuf]) -> Option<ProgramLookup> {
        let (program, path_dirs, own_path) = match check {
            AvailabilityCheck::Run(command) => (
                command.argv.first()?,
                &command.path_dirs,
                command.environment.get("PATH"),
            ),
            AvailabilityCheck::Find { program, path_dirs } => (program, path_dirs, None),
        };
        if program.contains('/') {
            return None;
        }
        let search_path = own_path.unwrap_or(&self.search_path).to_owned();
        let own = path_dirs.iter().map(|below| scope.join(below));
        let directories = own
            .chain(project.iter().cloned())
            .chain(std::env::split_paths(&search_path))
            .collect();
        Some(ProgramLookup {
            program: program.clone(),
            directories,
            search_path,
        })
    }

    /// Runs the check if no other server does; takes its answer if one does.
    async fn ask_once(
        &self,
        scope: &Path,
        command: &AvailabilityCommand,
        known: &KnownAnswers,
        key: &CheckKey,
        question: Question,
    ) -> CheckResult {
        loop {
            // Before the answer is looked for: the server that has just had its turn has left one.
            let turn = known.turn(key).unwrap_or_else(|error| {
                tracing::debug!(%error, "results of availability checks are not shared");
                None
            });
            if question == Question::First
                && let Some(answer) = known.get(key)
            {
                return answer;
            }
            if let Some(turn) = turn {
                let answer = self.run(scope, command).await?;
                known.keep(key, &answer, &turn);
                return answer;
            }
            tokio::time::sleep(OTHER_SERVER_INTERVAL).await;
        }
    }

    /// Runs the check; an outer error means that it gave no answer.
    async fn run(&self, scope: &Path, command: &AvailabilityCommand) -> Result<CheckResult, String> {
        let unwanted = CancellationToken::new();
        let _wanted = unwanted.clone().drop_guard();
        let run = self
            .clone()
            .run_until(scope.to_owned(), command.clone(), unwanted);
        // A task of its own, for what the check left is cleared away in any case.
        let answer = self.checks.spawn(run).await;
        answer.unwrap_or_else(|_| Err("was lost".to_owned()))
    }

    async fn run_until(
        self,
        scope: PathBuf,
        probe: AvailabilityCommand,
        unwanted: CancellationToken,
    ) -> Result<CheckResult, String> {
        let script = Script {
            stdin: None,
            program: Program::Argv(probe.argv.clone()),
            directory: probe
                .directory
                .as_ref()
                .map_or_else(|| scope.clone(), |directory| scope.join(directory)),
            environment: probe.environment.clone(),
            path_dirs: probe
                .path_dirs
                .iter()
                .map(|directory| scope.join(directory))
                .collect(),
            stdio: Stdio::Merged,
        };
        let stopped = || "was stopped".to_owned();
        // The jail may hang.
        let launched = unwanted.run_until_cancelled(self.launch(script)).await;
        let RunningProcess {
            output,
            mut process,
            guard_check,
        } = launched
            .ok_or_else(stopped)?
            .map_err(|error| format!("could not be started: {error}"))?;
        let watch = tokio::time::timeout(self.timeout, watch(output, &mut process, &probe));
        let answer = unwanted.run_until_cancelled(watch).await;
        self.checks.spawn(clear_away(process, guard_check));
        match answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(_)) => Err(format!("did not answer within {} s", self.timeout.as_secs())),
            None => Err(stopped()),
        }
    }

    /// Waits for the sandbox if it is not set up yet.
    async fn launch(&self, script: Script) -> Result<RunningProcess, LaunchError> {
        let mut arrival = self.launcher.clone();
        self.needed.notify_one();
        let launcher = match arrival.wait_for(Option::is_some).await {
            Ok(launcher) => launcher.clone(),
            Err(_) => None,
        };
        launcher.ok_or(LaunchError::Closed)?.launch_new(script).await
    }
}

/// Checks what one tool needs; none if all of it is there.
pub async fn check_availability(
    tool: &Tool,
    checker: &AvailabilityChecker,
    scope: &Path,
) -> Option<Unavailable> {
    for probe in &tool.probes {
        if let Err(lack) = checker.ask(scope, probe, Question::Again).await {
            return Some(Unavailable::new(tool, &lack));
        }
    }
    None
}

fn not_found(check: &AvailabilityCheck) -> Lack {
    let asked = match check {
        AvailabilityCheck::Run(command) => command.argv.join(" "),
        AvailabilityCheck::Find { program, .. } => program.clone(),
    };
    Lack::Program(format!("`{asked}` {NOT_FOUND}"))
}

/// Ends all processes of a check, and then lets the guard check protected files: a check runs code of the project.
async fn clear_away(mut process: ProcessHandle, guard_check: PendingCheck) {
    process.stop(libc::SIGKILL, Duration::ZERO);
    while let ProcessEvent::Exited(_) = process.next_event().await {}
    for sentence in ProtectedChange::sentences(&guard_check.finish().await) {
        tracing::warn!("{sentence}");
    }
}

async fn watch(output: OutputPipes, process: &mut ProcessHandle, probe: &AvailabilityCommand) -> CheckResult {
    let mut said = Vec::new();
    let status = {
        let output = async {
            let OutputPipes::Merged(fd) = output else {
                return;
            };
            // Read to the end, though little of it is kept: a closed pipe would end some programs early, and not well.
            if let Ok(mut output) = pipe::Receiver::from_owned_fd(fd) {
                let mut chunk = [0; 4096];
                while let Ok(length @ 1..) = output.read(&mut chunk).await {
                    let room = KEPT_BYTES.saturating_sub(said.len());
                    said.extend_from_slice(&chunk[..length.min(room)]);
                }
            }
        };
        let mut output = pin!(output.fuse());
        let status = async {
            match process.next_event().await {
                ProcessEvent::Exited(report) => Some(report.status),
                ProcessEvent::Gone | ProcessEvent::Lost { .. } => None,
            }
        };
        let status = tokio::select! {
            biased;
            status = status => status,
            () = async { output.as_mut().await; std::future::pending().await } => None,
        };
        let succeeded = matches!(status, Some(ExitStatus::Code(code)) if probe.success_codes.contains(&code));
        if !succeeded && !output.is_terminated() {
            // The output is in the pipe, which a process in the background may keep open for ever.
            let _ = tokio::time::timeout(REST_OF_OUTPUT_TIMEOUT, output).await;
        }
        status
    };
    let why = first_line(&said).map_or_else(String::new, |line| format!(": {line}"));
    match status {
        Some(ExitStatus::Code(code)) if probe.success_codes.contains(&code) => Ok(()),
        Some(ExitStatus::Code(EXIT_NOT_FOUND)) => Err(NOT_FOUND.to_owned()),
        Some(ExitStatus::Code(code)) => Err(format!("ended with exit code {code}{why}")),
        Some(ExitStatus::Signal(signal)) => Err(format!("was ended by signal {signal}{why}")),
        None => Err("was lost".to_owned()),
    }
}

/// The first line of the output of a check, in which most programs name the problem.
fn first_line(said: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(said);
    let text = displayed(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(MAX_QUOTE_CHARS).collect())
}

/// Enough for the first line of a complaint.
const KEPT_BYTES: usize = 4096;

/// A reason is read on one line of a screen or two.
const MAX_QUOTE_CHARS: usize = 200;

/// Time to wait for the rest of the output when the check has ended.
const REST_OF_OUTPUT_TIMEOUT: Duration = Duration::from_millis(200);

/// Pause before the next look whether another server has the answer; shorter than most checks take.
const OTHER_SERVER_INTERVAL: Duration = Duration::from_millis(20);

/// Exit code of shells for a command that does not exist.
const EXIT_NOT_FOUND: i32 = 127;

const NOT_FOUND: &str = "was not found";
