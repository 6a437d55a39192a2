//! Publishes what an operation prints, finds and reaches, while it runs on this worker.

use std::{io, time::Duration};

use ahma_cluster::OutputPublisher;
use tokio::time::Instant;

use super::wire::{LostOutput, ProgressReport};
use crate::{
    observe::FindingBudget,
    operation::{Loss, Operation},
};

/// Bytes of one frame.
const FRAME_BYTES: usize = 32 << 10;

/// Pause after a frame of an operation that prints, so that not every line is one.
const PACE: Duration = Duration::from_millis(10);

/// Findings that are read at once.
const FINDINGS: FindingBudget = FindingBudget {
    findings: 200,
    bytes: 1 << 20,
};

/// Publishes until the operation has ended and all of it is on its way.
pub(super) async fn publish(operation: &Operation, publisher: &mut OutputPublisher) {
    let mut changes = operation.watch();
    let mut next_finding = 0;
    // What every operation begins with needs no frame.
    let mut told = ProgressReport::default();
    let mut printed: Option<Instant> = None;
    loop {
        changes.mark_unchanged();
        let has_ended = operation.ended().is_some();
        let (before, _) = publisher.sent();
        if let Err(error) = output(operation, publisher).await {
            tracing::warn!(%error, operation = %operation.id(), "its output cannot be read back");
        }
        if publisher.sent().0 > before {
            printed = Some(Instant::now());
        }
        loop {
            let news = operation.findings_since(next_finding, FINDINGS);
            if news.findings.is_empty() {
                break;
            }
            next_finding = news.next;
            for finding in &news.findings {
                publisher
                    .finding(serde_json::to_vec(finding).unwrap_or_default().into())
                    .await;
            }
        }
        let snapshot = operation.snapshot();
        let report = ProgressReport {
            progress: snapshot.progress,
            step: snapshot.step,
            ready: operation.is_ready(),
        };
        if told != report {
            publisher
                .progress(serde_json::to_vec(&report).unwrap_or_default().into())
                .await;
            told = report;
        }
        if has_ended {
            return;
        }
        // The operation itself holds the sender.
        let _ = changes.changed().await;
        if let Some(printed) = printed {
            // Not after the end, which a client may be waiting for.
            tokio::select! {
                () = tokio::time::sleep_until(printed + PACE) => {}
                _ = operation.outcome() => {}
            }
        }
    }
}

async fn output(operation: &Operation, publisher: &mut OutputPublisher) -> io::Result<()> {
    loop {
        let (sent, _) = publisher.sent();
        let bytes = operation.output().bytes_from(sent, FRAME_BYTES)?;
        if bytes.is_empty() {
            return Ok(());
        }
        publisher.output(bytes.into()).await;
    }
}

/// The end of an output that was too long to keep.
pub(super) fn lost(operation: &Operation, loss: &Loss) -> LostOutput {
    let parts = operation.output().in_memory_only();
    LostOutput {
        total_bytes: parts.total_bytes,
        total_lines: operation.output().size().0,
        tail: parts.tail,
        cause: loss.cause.clone(),
    }
}
