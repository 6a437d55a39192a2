//! The task of one operation: carries out what [`run`](super::run) decides, and sets the outcome.

use std::{path::Path, pin::Pin, sync::Arc, time::Duration};

use tokio::time::{Sleep, sleep};

use crate::{
    call::{Command, Work},
    jail::{ProcessEvent, ProcessHandle},
    observe::{Source, StdioNeed, StreamEvent},
    sandbox::{self, Armed, Incident},
    shell::{Running, Script, Stdio},
};

use super::{
    EndState, Operation, Outcome, StepReport,
    argument_files::ArgumentFiles,
    engine::Shared,
    handle::Cell,
    log::LogWriter,
    observation::Observation,
    pipes::Pipes,
    run::{Run, RunEffect, RunEvent, StopReason},
    steps,
    verdict::Verdict,
};

/// Why an operation ended without ever running.
#[derive(Debug)]
pub(super) enum Unrun {
    Stopped,
    ShuttingDown,
    QueueFull { waiting: usize },
}

/// Runs an operation that has a place, to its outcome.
pub(super) async fn run(operation: Operation, shared: Arc<Shared>) {
    let place = Place {
        operation: &operation,
        shared: &shared,
    };
    let cell = operation.cell();
    let Some((plan, started)) = cell.begin() else {
        return;
    };

    let mut worker = Worker {
        cell,
        shared: &shared,
        notices: Vec::new(),
        timeout: plan.timeout,
        deadline: Box::pin(sleep(plan.timeout)),
        log: LogWriter::new(
            cell.log.clone(),
            shared.settings.quota_bytes,
            Arc::clone(&shared.spool),
        ),
    };
    let end = match &plan.work {
        Work::Command(command) => {
            let verdict = worker.command(command).await;
            End {
                verdict,
                steps: Vec::new(),
                success_hint: command.success_hint.clone(),
            }
        }
        Work::Sequence(sequence) => steps::run(&mut worker, sequence).await,
    };
    worker.log.close();
    let mut outcome = outcome(cell, end, started.instant.elapsed());
    outcome.notices.extend(worker.notices);
    let around = shared.launcher.circumstances();
    outcome.sandbox_hint = match outcome.state {
        EndState::Completed => sandbox::hint_after_success(&outcome.output.text, around),
        EndState::Failed => sandbox::hint(&outcome.output.text, around),
        EndState::Cancelled | EndState::TimedOut | EndState::Interrupted => None,
    };
    place.end(outcome);
}

/// Ends an operation that has no task.
pub(super) fn end_unrun(operation: &Operation, why: Unrun) {
    let cell = operation.cell();
    let verdict = match why {
        Unrun::Stopped => match cell.stop_asked().get() {
            Some(why) => Verdict::stopped(why),
            None => Verdict::stopped(&StopReason::Cancelled(None)),
        },
        Unrun::ShuttingDown => Verdict::stopped(&StopReason::ShuttingDown),
        Unrun::QueueFull { waiting } => Verdict::without_process(
            EndState::Failed,
            format!("the queue is full: {waiting} operations are waiting; try again when some have ended"),
        ),
    };
    cell.skip();
    cell.end(outcome(
        cell,
        End {
            verdict,
            steps: Vec::new(),
            success_hint: None,
        },
        Duration::ZERO,
    ));
}

/// How the work of an operation ended.
#[derive(Debug)]
pub(super) struct End {
    pub(super) verdict: Verdict,
    pub(super) steps: Vec<StepReport>,
    pub(super) success_hint: Option<String>,
}

/// Runs the commands of one operation, one after the other, against one clock and into one log.
#[derive(Debug)]
pub(super) struct Worker<'a> {
    pub(super) cell: &'a Cell,
    pub(super) log: LogWriter,
    shared: &'a Shared,
    /// What the tripwire put right.
    notices: Vec<String>,
    timeout: Duration,
    /// Not registered with the timer before it is first waited for.
    deadline: Pin<Box<Sleep>>,
}

/// A command that has begun.
struct Launched {
    process: ProcessHandle,
    pipes: Pipes,
    tripwire: Armed,
    /// Removed with this.
    _files: ArgumentFiles,
}

impl Worker<'_> {
    /// Runs one command until nothing of it is left.
    pub(super) async fn command(&mut self, command: &Command) -> Verdict {
        if let Some(why) = self.cell.stop_asked().get() {
            return Verdict::stopped(why);
        }
        let Launched {
            mut process,
            mut pipes,
            tripwire,
            _files,
        } = match self.launch(command).await {
            Ok(launched) => launched,
            Err(verdict) => return verdict,
        };
        let mut observation = Observation::new(command.stream.as_ref());
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
                () = observation.quiet() => {
                    self.note(observation.tick().await);
                    continue;
                }
                read = pipes.read(), if pipes.are_open() => {
                    if let Some((source, bytes)) = read {
                        self.take_in(source, bytes, &mut observation).await;
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
                RunEffect::StopProcess => process.stop(self.shared.settings.grace),
                RunEffect::End(end) => break end,
            }
        };
        // Nobody is left who could write, so what the pipe holds now is all there will ever be.
        while let Some((source, bytes)) = pipes.read_now() {
            self.take_in(source, bytes, &mut observation).await;
        }
        self.note(observation.finish().await);
        self.notices.extend(Incident::sentences(&tripwire.check().await));
        Verdict::of(end, &command.success_codes)
    }

    /// Heeds being asked to stop, since whoever makes processes may stand still.
    async fn launch(&mut self, command: &Command) -> Result<Launched, Verdict> {
        let failed = |reason| Verdict::without_process(EndState::Failed, reason);
        let launcher = &self.shared.launcher;
        let policy = launcher.policy();
        let (files, program) =
            ArgumentFiles::write(command, policy.temp(), policy.visible_temp(launcher.tier()))
                .await
                .map_err(|error| {
                    failed(format!(
                        "could not be started: cannot write its argument file: {error}"
                    ))
                })?;
        let script = Script {
            program,
            directory: self.cell.directory.clone(),
            environment: command.environment.clone(),
            path_dirs: command.path_dirs.clone(),
            stdio: stdio(command),
        };
        let launched = tokio::select! {
            biased;
            launched = launcher.launch(script) => launched,
            why = self.stop() => return Err(Verdict::stopped(&why)),
        };
        let Running {
            output,
            mut process,
            tripwire,
        } = launched.map_err(|error| Verdict::not_launched(&error))?;
        match Pipes::new(output) {
            Ok(pipes) => Ok(Launched {
                process,
                pipes,
                tripwire,
                _files: files,
            }),
            Err(error) => {
                process.stop(self.shared.settings.grace);
                while let ProcessEvent::Exited(_) = process.next_event().await {}
                self.notices.extend(Incident::sentences(&tripwire.check().await));
                Err(failed(format!("its output cannot be read: {error}")))
            }
        }
    }

    pub(super) fn scope(&self) -> &Path {
        &self.shared.launcher.policy().scope
    }

    /// Waits between two commands. Says why there is to be no next one, also when that was asked for before.
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

    /// Waits until someone or the clock asks for the end.
    pub(super) async fn stop(&mut self) -> StopReason {
        tokio::select! {
            biased;
            why = self.cell.stop_asked().wait() => why.clone(),
            () = self.deadline.as_mut() => StopReason::TimedOut(self.timeout),
        }
    }

    async fn take_in(&mut self, source: Source, bytes: &[u8], observation: &mut Observation) {
        self.log.append(bytes);
        self.note(observation.feed(source, bytes).await);
        self.cell.changed();
    }

    fn note(&self, events: Vec<StreamEvent>) {
        if events.is_empty() {
            return;
        }
        let mut sight = self.cell.sight();
        for event in events {
            sight.take(event);
        }
        drop(sight);
        self.cell.changed();
    }
}

fn stdio(command: &Command) -> Stdio {
    match command.stream.as_ref().map(|rules| rules.stdio()) {
        None | Some(StdioNeed::Merged) => Stdio::Merged,
        Some(StdioNeed::Separate) => Stdio::Separate,
        Some(StdioNeed::Pty) => Stdio::Pty,
    }
}

/// The right to run. However the task ends, its operation gets an outcome and the place goes to the next.
#[derive(Debug)]
struct Place<'a> {
    operation: &'a Operation,
    shared: &'a Arc<Shared>,
}

impl Place<'_> {
    fn end(self, outcome: Outcome) {
        self.operation.cell().end(outcome);
        self.shared.release(self.operation);
        std::mem::forget(self);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let cell = self.operation.cell();
        let reason = "its task ended early, which is a mistake in the server or its sudden end";
        let verdict = Verdict::without_process(EndState::Interrupted, reason.to_owned());
        cell.end(outcome(
            cell,
            End {
                verdict,
                steps: Vec::new(),
                success_hint: None,
            },
            Duration::ZERO,
        ));
        // Without a panic it is the runtime that ends, and there is nothing left to run on.
        if std::thread::panicking() {
            self.shared.release(self.operation);
        }
    }
}

fn outcome(cell: &Cell, end: End, duration: Duration) -> Outcome {
    let End {
        verdict,
        steps,
        success_hint,
    } = end;
    let worst = cell.worst_findings();
    Outcome {
        id: cell.id.clone(),
        tool: cell.tool.clone(),
        command: cell.command.clone(),
        directory: cell.directory.clone(),
        success_hint: success_hint.filter(|_| verdict.state == EndState::Completed),
        state: verdict.state,
        exit: verdict.exit,
        reason: verdict.reason,
        duration,
        cpu: verdict.cpu,
        peak_memory_bytes: verdict.peak_memory_bytes,
        output: cell.log.excerpt(),
        lost: cell.log.loss(),
        findings: worst.findings,
        findings_only_counted: worst.only_counted,
        finding_counts: worst.counts,
        steps,
        background: verdict.background,
        notices: cell.sight().notices().to_vec(),
        sandbox_hint: None,
    }
}
