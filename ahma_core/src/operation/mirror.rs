//! An operation that a worker of the cluster runs, as its front ends have it: what the worker publishes is written into it,
//! and its readers cannot tell it from one that runs here.

use std::{sync::Arc, time::SystemTime};

use crate::observe::{Finding, Progress, StreamEvent};

use super::{
    EndState, Engine, LossCause, Operation, Outcome, OutputLog, StepPosition,
    cell::{PlaceInQueue, RecalledOperation, RecordedCall, Started},
    command_result::CommandResult,
    engine::EngineCore,
    log::{LogWriter, RecalledOutput},
    progress_state::ProgressState,
    shown::Shown,
    task,
};

/// A worker keeps far fewer.
const MAX_FINDINGS: usize = 100_000;

/// The one writer of a mirrored operation.
#[derive(Debug)]
pub(crate) struct Mirror {
    operation: Operation,
    log: LogWriter,
    shared: Arc<EngineCore>,
}

impl Engine {
    /// Takes in an operation of the cluster. If it is known already, another task writes it.
    pub(crate) fn mirror(&self, call: RecordedCall) -> Result<Mirror, Operation> {
        let output = OutputLog::new(call.id.clone(), self.settings().result_bytes);
        let operation = self.shared.admit_mirrored(RecalledOperation {
            call,
            started_at: None,
            elapsed: Default::default(),
            progress: ProgressState::new(MAX_FINDINGS),
            output: output.clone(),
        })?;
        self.shared.announce(&operation);
        let shared = Arc::clone(&self.shared);
        Ok(Mirror {
            log: LogWriter::new(output, shared.settings.quota_bytes, Arc::clone(&shared.spool)),
            operation,
            shared,
        })
    }
}

impl Mirror {
    pub(crate) fn operation(&self) -> &Operation {
        &self.operation
    }

    /// It waits for a worker.
    pub(crate) fn waits(&self, place: Option<PlaceInQueue>) {
        self.operation.cell().set_place(place);
    }

    /// A worker began to run it.
    pub(crate) fn started(&self, at: SystemTime) {
        let elapsed = SystemTime::now().duration_since(at).unwrap_or_default();
        let started = Started::ago(elapsed, at);
        self.operation.cell().set_started(Some(started));
        self.shared.announce(&self.operation);
    }

    /// Its worker was lost, and another is to run it from the beginning. Its progress is forgotten; what the first one printed
    /// stays.
    pub(crate) fn begins_again(&mut self, attempt: u32) {
        self.log.end_line();
        let line = format!("[the worker was lost; attempt {attempt} begins]\n");
        self.print(line.as_bytes());
        self.operation.cell().set_started(None);
        self.reached(Progress::default(), None);
    }

    pub(crate) fn print(&mut self, bytes: &[u8]) {
        self.log.append(bytes);
        self.operation.cell().changed();
    }

    pub(crate) fn found(&self, finding: Finding) {
        let cell = self.operation.cell();
        cell.progress.lock().take(StreamEvent::Finding(finding));
        cell.changed();
    }

    pub(crate) fn reached(&self, progress: Progress, step: Option<StepPosition>) {
        let cell = self.operation.cell();
        {
            let mut known = cell.progress.lock();
            known.progress = progress;
            known.step = step;
        }
        cell.changed();
    }

    pub(crate) fn is_ready(&self) {
        self.operation.cell().set_ready();
    }

    /// Takes over what its worker could not keep of a long output.
    pub(crate) fn lost(&self, total_bytes: u64, total_lines: u64, tail: Vec<u8>, cause: LossCause) {
        let stored = RecalledOutput {
            tail,
            total_bytes,
            total_lines,
            loss_cause: Some(cause),
            ..RecalledOutput::default()
        };
        // Without a file there is nothing to fail.
        let _ = self.operation.output().catch_up(&stored);
    }

    /// Ends it where no worker reports an outcome.
    pub(crate) fn end_as(self, state: EndState, reason: String) {
        let cell = self.operation.cell();
        let elapsed = self.operation.snapshot().elapsed;
        let result = CommandResult::without_process(state, reason);
        let outcome = task::outcome(cell, result.into(), &Shown::default(), elapsed);
        self.end(outcome);
    }

    /// Sets what it ended with.
    pub(crate) fn end(self, outcome: Outcome) {
        self.log.close();
        self.operation.cell().end(outcome);
        self.shared.remember(&self.operation);
    }
}
