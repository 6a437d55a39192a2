//! The side of a front end: submitting operations and stopping them.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::{
    event::{End, Event},
    fold::{Effect, EndCause, Folded, Stage},
    index::Entry,
    link::{Append, Link, LinkError},
    request::{Request, SignedRequest, Signer},
    tail::Tail,
    worker::{Control, Job},
};
use time::OffsetDateTime;

/// Longest wait for NATS while a call is submitted: a new leader takes up to twelve seconds.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(15);

const RETRY: Duration = Duration::from_millis(200);

/// An answer is larger than most.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(5);

const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Requests that fit into a message with room for everything else.
const MAX_REQUEST_BYTES: usize = 256 << 10;

/// Operations of one principal that may be open. Several front ends may exceed it by a few, since none asks the others.
const MAX_OPEN: usize = 64;

/// Submits operations and stops them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FrontEnd {
    link: Link,
    tail: Tail,
    signer: Option<std::sync::Arc<Signer>>,
}

/// Reason why an operation was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    #[error(
        "the queue of pool {pool} is full: {ahead} operations wait ahead of it; try again when some have ended"
    )]
    QueueFull { pool: String, ahead: usize },
    #[error("{open} of your operations have not ended, which is the limit; await or cancel some first")]
    TooManyOpen { open: usize },
    #[error(
        "the log of pool {pool} is nearly full; older operations have to be forgotten first (`cluster init --max-age`)"
    )]
    LogFull { pool: String },
    #[error("the arguments take {bytes} bytes; a cluster takes up to 262144")]
    TooLarge { bytes: usize },
    #[error("the cluster could not take the operation")]
    Link(#[from] LinkError),
    #[error(
        "the cluster does not answer; it is not known whether {operation} runs: `status` with that id tells when it answers again"
    )]
    Unknown { operation: String },
}

/// All that the log says about an operation.
#[derive(Debug, Clone)]
pub struct OperationLog {
    pub request: Request,
    pub folded: Folded,
    pub queued_at: OffsetDateTime,
    /// Time of the claim that counts.
    pub claimed_at: Option<OffsetDateTime>,
    pub ended_at: Option<OffsetDateTime>,
    /// The worker of the claim that counts.
    pub worker: Option<String>,
    /// Times at which the workers of the first attempts were given up.
    pub lost_at: Vec<OffsetDateTime>,
    /// The end as its worker reported it.
    pub end: Option<End>,
}

impl FrontEnd {
    pub fn new(link: Link, tail: Tail, signer: Option<Signer>) -> Self {
        Self {
            link,
            tail,
            signer: signer.map(std::sync::Arc::new),
        }
    }

    pub fn link(&self) -> &Link {
        &self.link
    }

    pub fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Appends the operation to the log and puts it into the queue. Only after both does anybody learn of it.
    pub async fn submit(&self, request: &Request, rerun: bool) -> Result<(), SubmitError> {
        let signed = request.sign(self.signer.as_deref());
        let bytes = signed.request.len();
        if bytes > MAX_REQUEST_BYTES {
            return Err(SubmitError::TooLarge { bytes });
        }
        self.admit(&request.owner)?;
        let place = (request.owner.as_str(), request.operation.as_str());
        let queued = Event::Queued {
            request: signed.clone(),
            rerun,
        };
        let name = Append::First {
            name: &request.operation,
        };
        let append = || self.link.append(place, &queued, name);
        let first_sequence = until_answered(append).await?;
        let job = Job {
            owner: request.owner.clone(),
            operation: request.operation.clone(),
            attempt: 1,
            first_sequence,
            request: signed,
        };
        let Err(error) = until_answered(|| dispatch(&self.link, &job)).await else {
            return Ok(());
        };
        // A try that was not answered may have put it there. Then a worker has it by now, or it can still be dropped.
        let why = if error.is_full() {
            "the queue is full"
        } else {
            "it could not be queued"
        };
        match self.drop_queued(place, 1, first_sequence, "failed", why).await {
            Ok(()) => {}
            Err(outrun) if outrun.is_outrun() => return Ok(()),
            Err(_) => {
                return Err(SubmitError::Unknown {
                    operation: request.operation.clone(),
                });
            }
        }
        if !error.is_full() {
            return Err(error.into());
        }
        // To count those of other front ends, too; the refusal stands without them.
        let _ = self.tail.synced().await;
        Err(SubmitError::QueueFull {
            pool: self.link.pool().to_string(),
            // The log has those of all front ends; this one was dropped from it.
            ahead: self.tail.waiting_before(first_sequence),
        })
    }

    /// Refuses what would be too much before it is in the log.
    fn admit(&self, owner: &str) -> Result<(), SubmitError> {
        if self.tail.is_nearly_full() {
            let pool = self.link.pool().to_string();
            return Err(SubmitError::LogFull { pool });
        }
        let open = self.tail.open_of(owner);
        match open < MAX_OPEN {
            true => Ok(()),
            false => Err(SubmitError::TooManyOpen { open }),
        }
    }

    /// Asks for the end of an operation. It has to be repeated until the log says so: the worker may not hear it.
    pub async fn cancel(&self, entry: &Entry, reason: Option<String>) {
        let place = (entry.owner.as_str(), entry.operation.as_str());
        match &entry.folded.stage {
            Stage::Queued { attempt } => {
                let why = reason.filter(|reason| !reason.is_empty());
                let why = why.unwrap_or_else(|| "on request".to_owned());
                let dropped =
                    self.drop_queued(place, *attempt, entry.folded.last_sequence, "cancelled", &why);
                if let Err(error) = dropped.await {
                    tracing::debug!(%error, "an operation that waits could not be dropped");
                }
            }
            Stage::Running { attempt, worker, .. } => {
                let control = Control::Cancel {
                    operation: entry.operation.clone(),
                    attempt: *attempt,
                    reason,
                };
                let asked = self.ask(worker, &control, CANCEL_TIMEOUT).await;
                if let Err(error) = asked {
                    tracing::debug!(%error, worker, "a worker could not be asked to stop an operation");
                }
            }
            Stage::Unheard | Stage::Ended { .. } => {}
        }
    }

    /// The tools of a worker, in the words of those who made them.
    pub async fn catalog(&self, worker: &str) -> Result<Bytes, LinkError> {
        self.ask(worker, &Control::Catalog, CATALOG_TIMEOUT).await
    }

    /// Notes a task of an operation, so that every front end knows it.
    pub async fn note_task(
        &self,
        (owner, operation): (&str, &str),
        id: &str,
        life: Duration,
    ) -> Result<(), LinkError> {
        let event = Event::Task {
            id: id.to_owned(),
            life_ms: u64::try_from(life.as_millis()).unwrap_or(u64::MAX),
        };
        let append = || self.link.append((owner, operation), &event, Append::Anytime);
        until_answered(append).await.map(drop)
    }

    /// Notes that a client was given the result.
    pub async fn note_collected(&self, (owner, operation): (&str, &str)) {
        let noted = self
            .link
            .append((owner, operation), &Event::Collected, Append::Anytime)
            .await;
        if let Err(error) = noted {
            tracing::debug!(%error, operation, "that its result was collected could not be noted");
        }
    }

    /// Reads the log of an operation.
    pub async fn log_of(&self, entry: &Entry) -> Result<Option<OperationLog>, LinkError> {
        let place = (entry.owner.as_str(), entry.operation.as_str());
        let mut from = entry.first_sequence;
        let mut log: Option<OperationLog> = None;
        while let Some((stored, event)) = self.link.next_event(place, from).await? {
            from = stored.sequence + 1;
            let Some(event) = event else { continue };
            if let (None, Event::Queued { request, .. }) = (&log, &event) {
                log = Some(OperationLog {
                    request: request.read().unwrap_or_default(),
                    folded: Folded::default(),
                    queued_at: stored.time,
                    claimed_at: None,
                    ended_at: None,
                    worker: None,
                    lost_at: Vec::new(),
                    end: None,
                });
            }
            let Some(log) = &mut log else { continue };
            let effect = log.folded.take(stored.sequence, &event);
            if effect != Effect::Ignored && matches!(event, Event::Lost { .. }) {
                log.lost_at.push(stored.time);
            }
            match effect {
                Effect::Claimed => {
                    log.claimed_at = Some(stored.time);
                    if let Event::Claim { worker, .. } = event {
                        log.worker = Some(worker);
                    }
                }
                Effect::Requeued => log.claimed_at = None,
                Effect::Ended => {
                    log.ended_at = Some(stored.time);
                    if let Event::End(end) = event {
                        log.end = Some(end);
                    }
                }
                Effect::Ignored | Effect::Queued => {}
            }
        }
        Ok(log)
    }

    async fn ask(&self, worker: &str, control: &Control, timeout: Duration) -> Result<Bytes, LinkError> {
        let subject = self.link.pool().control_subject(worker);
        let message = serde_json::to_vec(control).unwrap_or_default();
        let answer = self.link.request(subject, message.into(), None, timeout).await?;
        Ok(answer.payload)
    }

    async fn drop_queued(
        &self,
        place: (&str, &str),
        attempt: u32,
        after: u64,
        state: &str,
        why: &str,
    ) -> Result<(), LinkError> {
        let event = Event::Drop {
            attempt,
            state: state.to_owned(),
            why: why.to_owned(),
        };
        self.link
            .append(place, &event, Append::After(after))
            .await
            .map(drop)
    }
}

impl OperationLog {
    /// The cause of its end, if it has ended.
    pub fn end_cause(&self) -> Option<&EndCause> {
        match &self.folded.stage {
            Stage::Ended { end, .. } => Some(end),
            Stage::Unheard | Stage::Queued { .. } | Stage::Running { .. } => None,
        }
    }
}

/// Puts a job into the queue; one that is there already is fine.
pub(crate) async fn dispatch(link: &Link, job: &Job) -> Result<(), LinkError> {
    let message = serde_json::to_vec(job).unwrap_or_default();
    let subject = link.pool().job_subject(&job.operation);
    match link.store(subject, message.into(), None).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_there_already() => Ok(()),
        Err(error) => Err(error),
    }
}

/// The request that a log begins with.
pub(crate) async fn request_of(link: &Link, entry: &Entry) -> Result<Option<SignedRequest>, LinkError> {
    let place = (entry.owner.as_str(), entry.operation.as_str());
    let first = link.next_event(place, entry.first_sequence).await?;
    Ok(match first {
        Some((_, Some(Event::Queued { request, .. }))) => Some(request),
        _ => None,
    })
}

/// Repeats what does no harm a second time, until NATS answers.
async fn until_answered<T, F>(ask: impl Fn() -> F) -> Result<T, LinkError>
where
    F: Future<Output = Result<T, LinkError>>,
{
    let deadline = Instant::now() + SUBMIT_TIMEOUT;
    loop {
        match ask().await {
            // A server that has just started has no leader yet.
            Err(LinkError::Unanswered | LinkError::NothingThere { .. }) if Instant::now() < deadline => {
                tokio::time::sleep(RETRY).await;
            }
            Err(LinkError::Refused { code: 10_008, .. }) if Instant::now() < deadline => {
                tokio::time::sleep(RETRY).await;
            }
            answered => return answered,
        }
    }
}
