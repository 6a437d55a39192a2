//! From a row back to an operation that can be awaited, read and searched like a fresh one.

use std::sync::Arc;

use super::{
    database::HistoryError,
    details::OutcomeDetails,
    reader::HistoryReader,
    rows::OperationRow,
    statements::{StoredWhere, read_end, read_findings, read_output},
};
use crate::{
    call::Lifetime,
    observe::Show,
    operation::{
        CallOrigin, ClientId, EndState, ExcerptFocus, Journal, Operation, Outcome, OutputLog,
        RecalledOperation, RecalledOutput, RecalledProgress, RecordedCall, SpoolFile, SpoolPlace,
    },
};

impl HistoryReader {
    /// The operation of a row, with output and findings so far. One that has ended has its outcome.
    pub(crate) fn recall(&self, row: &OperationRow, result_bytes: usize) -> Result<Operation, HistoryError> {
        self.recall_for(row, result_bytes, None)
    }

    /// The same, with a journal that is notified when the result is collected.
    pub(super) fn recall_for(
        &self,
        row: &OperationRow,
        result_bytes: usize,
        journal: Option<Arc<dyn Journal>>,
    ) -> Result<Operation, HistoryError> {
        let state = RecalledState::read(self, row)?;
        let output =
            OutputLog::recalled(row.id.clone(), result_bytes, &state.output).map_err(HistoryError::Output)?;
        let call = RecordedCall {
            id: row.id.clone(),
            origin: CallOrigin {
                client: row.session.as_deref().map(ClientId::named).unwrap_or_default(),
                principal: row.owner.principal.clone(),
                program: row.program.clone(),
                arguments: row.arguments.clone(),
            },
            tool: row.tool.clone(),
            command: row.command.clone(),
            directory: row.directory.clone(),
            lifetime: if row.keeps_running {
                Lifetime::KeepsRunning { ready: None }
            } else {
                Lifetime::Finite
            },
            created_at: row.created_at,
            seen: row.collected_at.is_some(),
            journal,
        };
        let operation = Operation::recalled(RecalledOperation {
            call,
            started_at: row.started_at,
            elapsed: row.duration,
            progress: state.progress.clone().into(),
            output,
        });
        if let Some(end) = row.state.as_end() {
            operation.recall_end(outcome(&operation, row, end, &state.details));
        }
        Ok(operation)
    }

    /// Brings a recalled operation up to the present state of its row.
    pub(crate) fn refresh(&self, row: &OperationRow, operation: &Operation) -> Result<(), HistoryError> {
        let state = RecalledState::read(self, row)?;
        operation
            .output()
            .catch_up(&state.output)
            .map_err(HistoryError::Output)?;
        operation.recall_progress(state.progress.clone().into());
        if let Some(end) = row.state.as_end() {
            operation.recall_end(outcome(operation, row, end, &state.details));
        }
        Ok(())
    }
}

/// The parts that are not in the row.
struct RecalledState {
    details: OutcomeDetails,
    output: RecalledOutput,
    progress: RecalledProgress,
}

impl RecalledState {
    fn read(reader: &HistoryReader, row: &OperationRow) -> Result<Self, HistoryError> {
        let connection = reader.connection();
        let (details, stored) = read_end(connection, row.number)?;
        let (head, tail) = read_output(connection, row.number)?;
        let directory = &reader.directory;
        let plain = directory.plain_output(&row.server, &row.id);
        let place = match stored {
            // A file that outgrew memory just before its server died is not known to the row.
            StoredWhere::Row => plain.exists().then_some(SpoolPlace::Plain(plain)),
            StoredWhere::Plain => Some(SpoolPlace::Plain(plain)),
            StoredWhere::Compressed => Some(SpoolPlace::Compressed(
                directory.compressed_output(&row.server, &row.id),
            )),
        };
        let output = RecalledOutput {
            file: place.map(|place| Arc::new(SpoolFile::kept(place))),
            head,
            tail,
            total_bytes: row.output_bytes,
            total_lines: row.output_lines,
            loss_cause: details.loss_cause(),
        };
        let progress = RecalledProgress {
            progress: row.reached.clone(),
            findings: read_findings(connection, row.number)?,
            only_counted: details.only_counted,
            notices: details.notices.clone(),
        };
        Ok(Self {
            details,
            output,
            progress,
        })
    }
}

fn outcome(operation: &Operation, row: &OperationRow, end: EndState, details: &OutcomeDetails) -> Outcome {
    let log = operation.output();
    let worst = operation.worst_findings();
    Outcome {
        id: row.id.clone(),
        tool: row.tool.clone(),
        command: row.command.clone(),
        directory: row.directory.clone(),
        state: end,
        exit: row.exit,
        reason: row.reason.clone(),
        hint: details.hint.clone(),
        duration: row.duration,
        cpu: row.cpu,
        peak_memory_bytes: row.peak_memory_bytes,
        output: log.excerpt(ExcerptFocus::of(end)),
        show: Show::Output,
        lost: log.loss(),
        reached: row.reached.clone(),
        findings: worst.findings,
        findings_only_counted: worst.only_counted,
        finding_counts: worst.counts,
        steps: details.steps(),
        background: details.background(),
        notices: details.notices.clone(),
        sandbox_hint: details.sandbox_hint.clone(),
    }
}
