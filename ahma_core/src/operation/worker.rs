//! Runs the commands of one operation: carries out what [`run`](super::run) decides.

use std::{path::Path, pin::Pin, sync::Arc, time::Duration};

use tokio::{
    task::spawn_blocking,
    time::{Instant, Sleep, sleep, sleep_until},
};

use crate::{
    call::{Command, CommandPlan, Ready, StopSignal},
    jail::{ProcessEvent, ProcessHandle},
    observe::{RunContext, StdioNeed, StreamEvent, StreamName},
    sandbox::{PendingCheck, ProtectedChange},
    shell::{RunningProcess, Script, Stdio},
};

use super::{
    EndState, OutputLog,
    argument_files::ArgumentFiles,
    cell::OperationCell,
    command_result::CommandResult,
    engine::EngineCore,
    line_merge::LineMerge,
    log::LogWriter,
    observation::Observation,
    pipes::Pipes,
    readiness::{ReadyLine, listening},
    run::{Run, RunEffect, RunEvent, StopReason},
    shown::Shown,
    spool::Spool,
};

/// Bytes of a part's output that are copied at a time.
const COPIED_BYTES: usize = 256 << 10;

/// Runs the commands of one operation, one after the other, against one clock and into one log.
#[derive(Debug)]
pub(super) struct Worker<'a> {
    pub(super) cell: &'a OperationCell,
    pub(super) log: LogWriter,
    shared: &'a EngineCore,
    /// The sign that says the operation is ready, until a command looks out for it.
    ready: Option<Ready>,
    shown: Shown,
    /// Reports of the guard.
    notices: Vec<String>,
    timeout: Duration,
    /// Not registered with the timer before it is first waited for.
    deadline: Pin<Box<Sleep>>,
    /// It runs one of several commands at the same time, whose progress would only take turns.
    is_part: bool,
}

/// A command that has begun.
struct LaunchedCommand {
    process: ProcessHandle,
    pipes: Pipes,
    guard_check: PendingCheck,
    /// Removed with this.
    _files: ArgumentFiles,
}

impl<'a> Worker<'a> {
    pub(super) fn new(cell: &'a OperationCell, shared: &'a EngineCore, plan: &CommandPlan) -> Self {
        let spool = Arc::clone(&shared.spool);
        let log = LogWriter::new(cell.log.clone(), shared.settings.quota_bytes, spool);
        Self {
            ready: plan.lifetime.ready().cloned(),
            ..Self::writing_to(log, cell, shared, plan.timeout, sleep(plan.timeout))
        }
    }

    fn writing_to(
        log: LogWriter,
        cell: &'a OperationCell,
        shared: &'a EngineCore,
        timeout: Duration,
        deadline: Sleep,
    ) -> Self {
        Self {
            cell,
            log,
            shared,
            ready: None,
            shown: Shown::default(),
            notices: Vec::new(),
            timeout,
            deadline: Box::pin(deadline),
            is_part: false,
        }
    }

    /// The work is done: what there is to show, and the notices.
    pub(super) fn close(self) -> (Shown, Vec<String>) {
        self.log.close();
        (self.shown, self.notices)
    }
}

impl Worker<'_> {
    /// Runs one command until nothing of it is left.
    pub(super) async fn command(&mut self, command: &Command) -> CommandResult {
        if let Some(why) = self.cell.stop.get() {
            return CommandResult::stopped(why);
        }
        let LaunchedCommand {
            mut process,
            mut pipes,
            guard_check,
            _files,
        } = match self.launch(command).await {
            Ok(launched) => launched,
            Err(result) => return result,
        };
        let ready = self.ready.take();
        let mut readiness = ready.as_ref().and_then(ReadyLine::of);
        let listening = listening(ready.as_ref());
        tokio::pin!(listening);
        let mut is_listening = false;
        let run_context = RunContext {
            arguments: command.arguments.clone(),
            directory: Some(self.cell.directory.clone()),
        };
        let mut observation = Observation::new(command.stream.as_ref(), run_context);
        let mut merge = LineMerge::of(self.stdio(command));
        let mut run = Run::Active;
        // Set when it is needed; until then it is not waited for.
        let linger = sleep(Duration::ZERO);
        tokio::pin!(linger);
        let end = loop {
            let event = tokio::select! {
                // The end first, so that a command that has ended is not stopped; output last, so that it starves nothing.
                biased;
                event = process.next_event() => RunEvent::Process(event),
                why = self.stop(), if run.heeds_stop() => RunEvent::StopAsked(why),
                () = linger.as_mut(), if run.is_lingering() => RunEvent::LingerOver,
                () = listening.as_mut(), if !is_listening => {
                    is_listening = true;
                    self.cell.set_ready();
                    continue;
                }
                () = observation.quiet() => {
                    self.note(observation.tick().await);
                    continue;
                }
                () = merge.due() => {
                    merge.tick(Instant::now(), &mut |bytes| self.log.append(bytes));
                    self.cell.changed();
                    continue;
                }
                read = pipes.read(), if pipes.are_open() => {
                    if let Some((source, bytes)) = read {
                        if readiness.as_mut().is_some_and(|readiness| readiness.feed(source, bytes)) {
                            self.cell.set_ready();
                            readiness = None;
                        }
                        self.take_in(source, bytes, &mut merge, &mut observation).await;
                    }
                    continue;
                }
            };
            let (next, effect) = run.on(event);
            run = next;
            match effect {
                RunEffect::Wait => {}
                RunEffect::StartLinger => {
                    linger.set(sleep(self.shared.settings.linger));
                }
                RunEffect::StopProcess => {
                    process.stop(stop_signal(command), self.shared.settings.grace);
                }
                // Those of a shell ignore INT.
                RunEffect::StopBackground => process.stop(libc::SIGTERM, self.shared.settings.grace),
                RunEffect::End(end) => break end,
            }
        };
        // No writer is left, so what the pipe holds now is all there will ever be.
        while let Some((source, bytes)) = pipes.read_now() {
            self.take_in(source, bytes, &mut merge, &mut observation).await;
        }
        merge.finish(&mut |bytes| self.log.append(bytes));
        self.note(observation.finish().await);
        self.shown.add(command.stream.as_ref(), observation.into_digest());
        self.notices
            .extend(ProtectedChange::sentences(&guard_check.finish().await));
        CommandResult::of(end, &command.exit_codes)
            .naming_missing_program(command, self.log.newest_line().as_deref())
    }

    fn stdio(&self, command: &Command) -> Stdio {
        match command.stream.as_ref().map(|rules| rules.stdio()) {
            None if self.shared.settings.tap.is_some() => Stdio::Separate,
            None | Some(StdioNeed::Merged) => Stdio::Merged,
            Some(StdioNeed::Separate) => Stdio::Separate,
            Some(StdioNeed::Pty) => Stdio::Pty,
        }
    }

    /// Can be stopped meanwhile: the jail may hang.
    async fn launch(&mut self, command: &Command) -> Result<LaunchedCommand, CommandResult> {
        let failed = |reason| CommandResult::without_process(EndState::Failed, reason);
        let launcher = &self.shared.launcher;
        let temp = launcher.temp_for(&command.program).await;
        let (directory, visible) = temp.map_err(|error| CommandResult::not_launched(&error))?;
        let (files, program) = ArgumentFiles::write(command, directory, visible)
            .await
            .map_err(|error| {
                failed(format!(
                    "could not be started: cannot write its argument file: {error}"
                ))
            })?;
        let script = Script {
            program,
            directory: self.cell.directory.clone(),
            stdin: files.stdin.clone(),
            environment: command.environment.clone(),
            path_dirs: command.path_dirs.clone(),
            stdio: self.stdio(command),
        };
        let launched = tokio::select! {
            biased;
            launched = launcher.launch(script) => launched,
            why = self.stop() => return Err(CommandResult::stopped(&why)),
        };
        let RunningProcess {
            output,
            mut process,
            guard_check,
        } = launched.map_err(|error| CommandResult::not_launched(&error))?;
        *self.cell.supervisor.lock() = process.supervisor();
        match Pipes::new(output) {
            Ok(pipes) => Ok(LaunchedCommand {
                process,
                pipes,
                guard_check,
                _files: files,
            }),
            Err(error) => {
                process.stop(stop_signal(command), self.shared.settings.grace);
                while let ProcessEvent::Exited(_) = process.next_event().await {}
                self.notices
                    .extend(ProtectedChange::sentences(&guard_check.finish().await));
                Err(failed(format!("its output cannot be read: {error}")))
            }
        }
    }

    /// A worker for one of several commands that run at the same time, with the same clock and a log of its own.
    pub(super) fn part(&self) -> Self {
        let settings = &self.shared.settings;
        let log = OutputLog::new(self.cell.id.clone(), self.cell.log.page_bytes());
        // In files that go with it, also where those of operations are kept.
        let spool = Spool::new(settings.state_dir.clone());
        let log = LogWriter::new(log, settings.quota_bytes, spool);
        let deadline = sleep_until(self.deadline.deadline());
        Self {
            is_part: true,
            ..Self::writing_to(log, self.cell, self.shared, self.timeout, deadline)
        }
    }

    /// Takes over what a part has to show.
    pub(super) async fn take_part(&mut self, part: Self) {
        self.shown.extend(part.shown);
        self.notices.extend(part.notices);
        let log = part.log.into_log();
        let mut from = 0;
        loop {
            let read = log.clone();
            let bytes = spawn_blocking(move || read.bytes_from(from, COPIED_BYTES)).await;
            match bytes {
                Ok(Ok(bytes)) if !bytes.is_empty() => {
                    from += bytes.len() as u64;
                    self.log.append(&bytes);
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "cannot read what a step printed");
                    break;
                }
                Ok(Ok(_)) | Err(_) => break,
            }
        }
        self.cell.changed();
    }

    pub(super) fn scope(&self) -> &Path {
        &self.shared.launcher.policy().scope
    }

    /// Waits between two commands. Returns the reason if there is to be no next one.
    pub(super) async fn pause(&mut self, delay: Duration) -> Option<StopReason> {
        let pause = async {
            if !delay.is_zero() {
                sleep(delay).await;
            }
        };
        tokio::select! {
            biased;
            why = self.stop() => Some(why),
            () = pause => None,
        }
    }

    /// Waits for a request to stop or for the timeout.
    pub(super) async fn stop(&mut self) -> StopReason {
        tokio::select! {
            biased;
            why = self.cell.stop.wait() => why.clone(),
            () = self.deadline.as_mut() => StopReason::TimedOut(self.timeout),
        }
    }

    async fn take_in(
        &mut self,
        source: StreamName,
        bytes: &[u8],
        merge: &mut LineMerge,
        observation: &mut Observation,
    ) {
        if let Some(tap) = &self.shared.settings.tap {
            tap.take(source, bytes);
        }
        merge.feed(source, bytes, Instant::now(), &mut |bytes| self.log.append(bytes));
        self.note(observation.feed(source, bytes).await);
        self.cell.changed();
    }

    fn note(&self, events: Vec<StreamEvent>) {
        if events.is_empty() {
            return;
        }
        let mut progress = self.cell.progress.lock();
        for event in events {
            if !(self.is_part && matches!(event, StreamEvent::Progress(_))) {
                progress.take(event);
            }
        }
        drop(progress);
        self.cell.changed();
    }
}

fn stop_signal(command: &Command) -> i32 {
    match command.stop_signal {
        StopSignal::Int => libc::SIGINT,
        StopSignal::Term => libc::SIGTERM,
        StopSignal::Quit => libc::SIGQUIT,
        StopSignal::Hup => libc::SIGHUP,
        StopSignal::Kill => libc::SIGKILL,
    }
}
