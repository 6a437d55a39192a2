//! Copies the output of an operation to stdout until it has ended, and stops it on a signal.

use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use bytes::{Buf as _, Bytes};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    signal::unix::SignalKind,
};

use super::{display::Display, redrawn_lines::RedrawnLines};
use crate::{
    observe::FindingBudget,
    operation::{EndState, Operation, OperationState, Outcome, Snapshot},
};

/// Capacity of a pipe.
const CHUNK_BYTES: usize = 64 << 10;

/// Interval between updates of a quiet command's bar.
const TICK: Duration = Duration::from_millis(500);

/// Time to write the last output of a stopped command, whose reader may be gone too.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Followed {
    pub(super) outcome: Arc<Outcome>,
    pub(super) stopped_by: Option<StoppedBy>,
}

impl Followed {
    /// True if the command failed without being stopped.
    pub(super) fn has_failed(&self) -> bool {
        self.stopped_by.is_none() && self.outcome.state == EndState::Failed
    }
}

/// Reason for which we ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoppedBy {
    Signal(SignalKind),
    /// The reader of the output is gone.
    ClosedOutput,
    /// It cannot be written, because a disk is full for instance.
    FailedOutput(io::ErrorKind),
}

/// `redrawn` is for a command that may draw bars.
pub(super) async fn to_the_end(
    operation: &Operation,
    display: &mut Display,
    redrawn: Option<RedrawnLines>,
    stdout: impl AsyncWrite + Unpin,
    signal: impl Future<Output = SignalKind>,
) -> Followed {
    let mut signal = pin!(signal);
    let mut carrier = Carrier {
        operation,
        display,
        redrawn,
        stdout,
        taken: 0,
        unwritten: Bytes::new(),
        findings: 0,
    };
    let stopped_by = tokio::select! {
        biased;
        kind = &mut signal => Some(StoppedBy::Signal(kind)),
        carried = carrier.carry_on() => carried.err().map(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => StoppedBy::ClosedOutput,
            kind => StoppedBy::FailedOutput(kind),
        }),
    };
    let outcome = match stopped_by {
        None => operation.outcome().await,
        Some(why) => {
            let reason = match why {
                StoppedBy::Signal(_) => "stopped from the terminal",
                StoppedBy::ClosedOutput => "the output is no longer read",
                StoppedBy::FailedOutput(_) => "its output cannot be written",
            };
            let outcome = operation.cancel(Some(reason.to_owned())).await;
            if matches!(why, StoppedBy::Signal(_)) {
                // The write under way at the signal may have been partial; only the rest is written.
                let _ = tokio::time::timeout(LAST_OUTPUT_TIMEOUT, carrier.last()).await;
            }
            outcome
        }
    };
    Followed { outcome, stopped_by }
}

/// Programs seldom report 100 %. After a success nothing is left, whatever was counted last.
fn with_all_done(mut now: Snapshot) -> Snapshot {
    if now.state == OperationState::Completed && now.progress.percent.is_some() {
        now.progress.percent = Some(100.0);
    }
    now
}

struct Carrier<'a, W> {
    operation: &'a Operation,
    display: &'a mut Display,
    redrawn: Option<RedrawnLines>,
    stdout: W,
    /// Bytes of the output that were looked at.
    taken: u64,
    /// The part of them that is still to be written.
    unwritten: Bytes,
    findings: usize,
}

impl<W: AsyncWrite + Unpin> Carrier<'_, W> {
    /// Until the operation has ended and all is written.
    async fn carry_on(&mut self) -> io::Result<()> {
        let mut changes = self.operation.watch();
        loop {
            changes.mark_unchanged();
            // Checked before the output is read, so that nothing can follow the last read.
            let ended = self.operation.ended().is_some();
            match ended {
                false => self.rest().await?,
                true => self.last().await?,
            }
            // A bar is of no use any more; a line reports the progress even of a fast command.
            if !ended || !self.display.is_terminal() {
                self.display.progress(&with_all_done(self.operation.snapshot()));
            }
            if ended {
                return Ok(());
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(TICK) => {}
            }
        }
    }

    /// Writes everything left of an operation that has ended.
    async fn last(&mut self) -> io::Result<()> {
        self.rest().await?;
        if let Some(redrawn) = &mut self.redrawn {
            self.unwritten = redrawn.rest().into();
        }
        self.write().await
    }

    /// Writes the output so far.
    async fn rest(&mut self) -> io::Result<()> {
        loop {
            self.write().await?;
            let bytes = self
                .operation
                .output()
                .bytes(self.taken, CHUNK_BYTES)
                .await
                .map_err(io::Error::other)?;
            if bytes.is_empty() {
                break;
            }
            self.taken += bytes.len() as u64;
            self.unwritten = match &mut self.redrawn {
                Some(redrawn) => redrawn.pass(&bytes).into(),
                None => bytes.into(),
            };
        }
        let news = self.operation.findings_since(self.findings, FindingBudget::ALL);
        self.findings = news.next;
        for finding in &news.findings {
            self.display.finding(finding);
        }
        Ok(())
    }

    async fn write(&mut self) -> io::Result<()> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        self.display.before_output(&self.unwritten);
        while !self.unwritten.is_empty() {
            let count = self.stdout.write(&self.unwritten).await?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            // Counted at once: a signal may take this future away at the next step.
            self.unwritten.advance(count);
        }
        self.stdout.flush().await
    }
}
