//! Output and findings of a running operation: published by its worker, read by front ends.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::StreamExt as _;
use time::OffsetDateTime;
use tokio::{sync::watch, task::JoinSet, time::Instant};

use crate::{
    frame::{Assembler, Frame, FrameKind},
    link::{Link, LinkError},
};

/// Frames on their way at once. Each holds up to 32 KiB.
const IN_FLIGHT: usize = 128;

/// Pause before a frame is sent again to a stream that is full.
const FULL_RETRY: Duration = Duration::from_secs(1);

/// Pause before anything else is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// Time that the end of an operation waits for room in a full stream.
const FULL_PATIENCE: Duration = Duration::from_secs(30);

/// Publishes the frames of one attempt. Every frame is repeated until it is stored; dropping this ends that.
#[derive(Debug)]
pub struct OutputPublisher {
    link: Link,
    subject: String,
    in_flight: JoinSet<Frame>,
    /// Offsets of output that is not stored yet.
    unstored: BTreeSet<u64>,
    sent_bytes: u64,
    sent_findings: u64,
    sent_progress: u64,
    is_full: Arc<AtomicBool>,
}

impl OutputPublisher {
    pub fn new(link: Link, owner: &str, operation: &str, attempt: u32) -> Self {
        let subject = link.pool().output_subject(owner, operation, attempt);
        Self {
            link,
            subject,
            in_flight: JoinSet::new(),
            unstored: BTreeSet::new(),
            sent_bytes: 0,
            sent_findings: 0,
            sent_progress: 0,
            is_full: Arc::default(),
        }
    }

    /// Bytes of output, and findings, that were sent so far.
    pub fn sent(&self) -> (u64, u64) {
        (self.sent_bytes, self.sent_findings)
    }

    pub async fn output(&mut self, data: Bytes) {
        let number = self.sent_bytes;
        self.sent_bytes += data.len() as u64;
        self.unstored.insert(number);
        self.send(FrameKind::Output, number, data).await;
    }

    /// One finding, as JSON.
    pub async fn finding(&mut self, data: Bytes) {
        let number = self.sent_findings;
        self.sent_findings += 1;
        self.send(FrameKind::Finding, number, data).await;
    }

    /// A report of progress, as JSON.
    pub async fn progress(&mut self, data: Bytes) {
        let number = self.sent_progress;
        self.sent_progress += 1;
        self.send(FrameKind::Progress, number, data).await;
    }

    /// Waits until all is stored. If the stream stays full, gives up and returns the bytes that are stored without a gap.
    pub async fn finish(mut self) -> Result<(), u64> {
        let mut full_since = None;
        while !self.in_flight.is_empty() {
            let _ = tokio::time::timeout(FULL_RETRY, self.take_stored()).await;
            if !self.is_full.load(Ordering::Relaxed) {
                full_since = None;
                continue;
            }
            let since = *full_since.get_or_insert_with(Instant::now);
            if since.elapsed() > FULL_PATIENCE {
                return Err(self.unstored.first().copied().unwrap_or(self.sent_bytes));
            }
        }
        Ok(())
    }

    async fn send(&mut self, kind: FrameKind, number: u64, data: Bytes) {
        while self.in_flight.len() >= IN_FLIGHT {
            self.take_stored().await;
        }
        let frame = Frame { kind, number, data };
        let (link, subject) = (self.link.clone(), self.subject.clone());
        let is_full = Arc::clone(&self.is_full);
        self.in_flight.spawn(async move {
            store(&link, &subject, frame.encode(), &is_full).await;
            frame
        });
    }

    async fn take_stored(&mut self) {
        if let Some(Ok(frame)) = self.in_flight.join_next().await
            && frame.kind == FrameKind::Output
        {
            self.unstored.remove(&frame.number);
        }
    }
}

async fn store(link: &Link, subject: &str, message: Bytes, is_full: &AtomicBool) {
    loop {
        // What is sent without a connection is sent later nevertheless; each try would add a copy.
        while !link.is_connected() {
            tokio::time::sleep(RETRY).await;
        }
        match link.store(subject.to_owned(), message.clone(), None).await {
            Ok(_) => return is_full.store(false, Ordering::Relaxed),
            Err(error) if error.is_full() => {
                is_full.store(true, Ordering::Relaxed);
                tokio::time::sleep(FULL_RETRY).await;
            }
            Err(error) => {
                tracing::debug!(%error, "output could not be stored yet");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// The event that ends a reader's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The operation runs.
    Open,
    /// It has ended and published so much.
    Ended { bytes: u64, findings: u64 },
    /// Its worker was given up at this time: what was stored until then is all.
    Cut { at: OffsetDateTime },
}

/// A part of what an operation prints and finds, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Output(Bytes),
    /// JSON.
    Finding(Bytes),
    /// JSON; replaces the one before.
    Progress(Bytes),
    /// All that was stored when the reader began has been given out; what follows is new.
    CaughtUp,
}

/// Reason why a reader stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadEnd {
    /// All that the operation published.
    Whole,
    /// All that was stored.
    Cut,
    /// The stream does not have it any more.
    Incomplete,
}

/// Time after which a gap in live messages is looked for in the stream.
const GAP_PATIENCE: Duration = Duration::from_millis(300);

/// Time for which a stream may lack what it is said to have: a server near us may lag behind its leader.
const LAG_PATIENCE: Duration = Duration::from_secs(5);

/// Reads one attempt from its first byte to its goal: live messages, and from the stream what came before or was missed.
pub async fn read_output(
    link: &Link,
    (owner, operation, attempt): (&str, &str, u32),
    mut goal: watch::Receiver<Goal>,
    mut sink: impl FnMut(Piece),
) -> Result<ReadEnd, LinkError> {
    let subject = link.pool().output_subject(owner, operation, attempt);
    let mut connects = link.connects();
    // Before the stream is read, so that nothing falls between the two.
    let mut live = link.subscribe(subject.clone()).await?;
    let mut stored = StoredFrames {
        link,
        subject,
        from: 1,
    };
    let mut assembler = Assembler::default();
    let mut has_caught_up = false;
    let mut give = |assembler: &mut Assembler, frame: Option<Frame>| {
        let Some(frame) = frame else {
            return sink(Piece::CaughtUp);
        };
        for (kind, data) in assembler.take(frame) {
            sink(match kind {
                FrameKind::Output => Piece::Output(data),
                FrameKind::Finding => Piece::Finding(data),
                FrameKind::Progress => Piece::Progress(data),
            });
        }
    };
    let mut look = true;
    let mut ended_since = None;
    loop {
        let wanted = *goal.borrow_and_update();
        // The stream has nothing else when live messages have brought it all.
        if std::mem::take(&mut look) && !(has_caught_up && is_whole(&assembler, wanted)) {
            let until = match wanted {
                Goal::Cut { at } => Some(at),
                Goal::Open | Goal::Ended { .. } => None,
            };
            while let Some(frame) = stored.next(until).await {
                give(&mut assembler, Some(frame));
            }
            if !std::mem::replace(&mut has_caught_up, true) {
                give(&mut assembler, None);
            }
        }
        match wanted {
            Goal::Open => {}
            Goal::Cut { .. } => return Ok(ReadEnd::Cut),
            Goal::Ended { .. } => {
                if is_whole(&assembler, wanted) {
                    return Ok(ReadEnd::Whole);
                }
                if ended_since.get_or_insert_with(Instant::now).elapsed() > LAG_PATIENCE {
                    return Ok(ReadEnd::Incomplete);
                }
            }
        }
        let is_waiting = assembler.has_gap() || wanted != Goal::Open;
        tokio::select! {
            biased;
            message = live.next() => match message.map(|message| Frame::decode(&message.payload)) {
                Some(frame @ Some(_)) => give(&mut assembler, frame),
                Some(None) => {}
                None => return Err(LinkError::Unanswered),
            },
            changed = goal.changed() => {
                if changed.is_err() {
                    return Ok(ReadEnd::Incomplete);
                }
                // The last frames may be on their way; the stream has them.
                look = true;
            }
            _ = connects.changed() => look = true,
            () = tokio::time::sleep(GAP_PATIENCE), if is_waiting => look = true,
        }
    }
}

/// True if all that an operation published is there.
fn is_whole(assembler: &Assembler, goal: Goal) -> bool {
    let (read, found) = assembler.reached();
    matches!(goal, Goal::Ended { bytes, findings } if read >= bytes && found >= findings)
}

/// The frames that the stream has, one after the other.
struct StoredFrames<'a> {
    link: &'a Link,
    subject: String,
    from: u64,
}

impl StoredFrames<'_> {
    /// The next one, stored at `until` at the latest; nothing if there is none now.
    async fn next(&mut self, until: Option<OffsetDateTime>) -> Option<Frame> {
        loop {
            match self.link.next_frame(&self.subject, self.from).await {
                Ok(Some(stored)) if until.is_none_or(|until| stored.time <= until) => {
                    self.from = stored.sequence + 1;
                    if let Some(frame) = Frame::decode(&stored.data) {
                        return Some(frame);
                    }
                }
                Ok(_) => return None,
                Err(error) => {
                    tracing::debug!(%error, "stored output cannot be read; trying again");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}
