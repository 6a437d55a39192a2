//! The side of a worker: jobs, claims, heartbeats and requests.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{sync::watch, time::Instant};

use crate::{
    event::{End, Event},
    fold::{EndCause, Folded, Stage},
    inspect::SentBeat,
    link::{Append, Link, LinkError},
    names::{QUEUE_CONSUMER, new_name},
    request::SignedRequest,
    roster::Beat,
};

/// Time that a request for a job stays open at the server.
const PULL_EXPIRES: Duration = Duration::from_secs(5);

/// Pause before something is tried again.
const RETRY: Duration = Duration::from_millis(200);

/// An operation that waits for a worker. The same as in its log; the queue is only a hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub owner: String,
    pub operation: String,
    pub attempt: u32,
    /// Sequence of the operation's first event.
    pub first_sequence: u64,
    pub request: SignedRequest,
}

/// A job on its way to us.
#[derive(Debug)]
pub struct JobDelivery {
    pub job: Job,
    /// Number of times it was handed to a worker, this one included.
    pub deliveries: u64,
    address: String,
}

impl JobDelivery {
    /// Takes the job out of the queue.
    pub async fn done(self, link: &Link) {
        link.publish(self.address, Bytes::from_static(b"+ACK")).await;
    }

    /// Leaves the job to another worker.
    pub async fn pass_on(self, link: &Link, delay: Duration) {
        let delay = json!({ "delay": u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX) });
        link.publish(self.address, format!("-NAK {delay}").into()).await;
    }
}

/// Waits for a job. A worker asks once for each place it has free, so that none waits at a busy one. Fails only if its
/// credential may not ask.
pub async fn next_job(link: &Link) -> Result<JobDelivery, LinkError> {
    let stream = link.pool().jobs_stream();
    let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{QUEUE_CONSUMER}");
    let expires = u64::try_from(PULL_EXPIRES.as_nanos()).unwrap_or(u64::MAX);
    let asked = Bytes::from(json!({ "batch": 1, "expires": expires }).to_string());
    loop {
        let mut connects = link.connects();
        let timeout = PULL_EXPIRES + RETRY;
        let answered = tokio::select! {
            answered = link.pull(subject.clone(), asked.clone(), timeout) => answered,
            // The server has forgotten that we asked.
            _ = connects.changed() => continue,
        };
        match answered {
            Ok(message) if message.status.is_none() => {
                let address = message.reply.map(|reply| reply.to_string()).unwrap_or_default();
                match serde_json::from_slice(&message.payload) {
                    Ok(job) => {
                        return Ok(JobDelivery {
                            job,
                            deliveries: deliveries(&address),
                            address,
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a job cannot be read");
                        link.publish(address, Bytes::from_static(b"+TERM")).await;
                    }
                }
            }
            // Nothing came in time.
            Ok(message) if message.status.is_some_and(|status| status.as_u16() == 408) => {}
            Err(LinkError::Unanswered) => {}
            Err(denied @ LinkError::Denied { .. }) => return Err(denied),
            Ok(_) | Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

fn deliveries(address: &str) -> u64 {
    let parts: Vec<&str> = address.split('.').collect();
    let index = if parts.len() >= 11 { 6 } else { 4 };
    parts.get(index).and_then(|part| part.parse().ok()).unwrap_or(1)
}

/// The right to run an operation, until a steward gives the worker up.
#[derive(Debug, Clone)]
pub struct Claim {
    link: Link,
    pub owner: String,
    pub operation: String,
    pub attempt: u32,
    pub nonce: String,
    first_sequence: u64,
    /// That of the claim itself.
    sequence: u64,
}

/// Fate of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    Counted,
    /// The operation was given up before.
    TooLate,
}

/// Claims an operation. Nothing if it is another's, or has ended.
///
/// What comes after the claim is not looked at: whoever was silent for so long that its claim was given up at once has to ask
/// with [`Claim::holds`] before it begins.
pub async fn claim(link: &Link, job: &Job, worker: &str) -> Option<Claim> {
    let nonce = new_name("");
    let event = Event::Claim {
        attempt: job.attempt,
        worker: worker.to_owned(),
        nonce: nonce.clone(),
    };
    let mut log = LogReader::new(link, (&job.owner, &job.operation), job.first_sequence);
    let mut after = job.first_sequence;
    loop {
        // Also after an answer: on some servers several writers with the same expectation are told that they won. The
        // order of the log is the same for all. What was there before is read meanwhile.
        let append = link.append(log.place, &event, Append::After(after));
        let (appended, ()) = tokio::join!(append, log.read_first());
        loop {
            if log.folded.is_run_by(&nonce) {
                return Some(Claim {
                    link: link.clone(),
                    owner: job.owner.clone(),
                    operation: job.operation.clone(),
                    attempt: job.attempt,
                    nonce,
                    first_sequence: job.first_sequence,
                    sequence: log.folded.last_sequence,
                });
            }
            if !log.read_next().await {
                break;
            }
        }
        match log.folded.stage {
            Stage::Queued { attempt } if attempt == job.attempt => after = log.folded.last_sequence,
            // Gone from the log, another's, or over.
            Stage::Unheard | Stage::Queued { .. } | Stage::Running { .. } | Stage::Ended { .. } => {
                return None;
            }
        }
        if let Err(error) = appended
            && !error.is_outrun()
        {
            tracing::debug!(%error, operation = job.operation, "cannot claim; trying again");
            tokio::time::sleep(RETRY).await;
        }
    }
}

impl Claim {
    /// True while the claim counts. Waits for the log if it cannot be read.
    pub async fn holds(&self) -> bool {
        self.fold().await.is_run_by(&self.nonce)
    }

    /// Reports the end, as often as it takes. After this nothing more may be published.
    pub async fn report(
        &self,
        state: &str,
        (bytes, findings): (u64, u64),
        outcome: serde_json::Value,
    ) -> Reported {
        let event = Event::End(End {
            attempt: self.attempt,
            nonce: self.nonce.clone(),
            state: state.to_owned(),
            bytes,
            findings,
            outcome,
        });
        let mut after = self.sequence;
        loop {
            match self.link.append(self.place(), &event, Append::After(after)).await {
                // Nothing came between the claim and this, or nothing that matters.
                Ok(_) => return Reported::Counted,
                Err(error) if error.is_outrun() => {}
                Err(error) => {
                    tracing::debug!(%error, operation = self.operation, "the end cannot be reported; trying again");
                    tokio::time::sleep(RETRY).await;
                }
            }
            // It may have been stored without an answer.
            let folded = self.fold().await;
            match folded.stage {
                Stage::Ended {
                    attempt,
                    end: EndCause::Reported { .. },
                } if attempt == self.attempt => return Reported::Counted,
                _ if folded.is_run_by(&self.nonce) => after = folded.last_sequence,
                _ => return Reported::TooLate,
            }
        }
    }

    fn place(&self) -> (&str, &str) {
        (&self.owner, &self.operation)
    }

    /// The log as its leader has it now.
    async fn fold(&self) -> Folded {
        let mut log = LogReader::new(&self.link, self.place(), self.first_sequence);
        while log.read_next().await {}
        log.folded
    }
}

/// Reads the log of an operation from its leader, event by event.
struct LogReader<'a> {
    link: &'a Link,
    place: (&'a str, &'a str),
    /// Where to read on.
    from: u64,
    folded: Folded,
}

impl<'a> LogReader<'a> {
    fn new(link: &'a Link, place: (&'a str, &'a str), first_sequence: u64) -> Self {
        Self {
            link,
            place,
            from: first_sequence,
            folded: Folded::default(),
        }
    }

    /// Takes the first event, unless it has been taken.
    async fn read_first(&mut self) {
        if self.folded.last_sequence == 0 {
            self.read_next().await;
        }
    }

    /// Takes the next event; false if there is none now. Waits for the log if it cannot be read.
    async fn read_next(&mut self) -> bool {
        loop {
            match self.link.next_event(self.place, self.from).await {
                Ok(Some((stored, event))) => {
                    self.from = stored.sequence + 1;
                    match event {
                        Some(event) => drop(self.folded.take(stored.sequence, &event)),
                        None => self.folded.last_sequence = stored.sequence,
                    }
                    return true;
                }
                Ok(None) => return false,
                Err(error) => {
                    let operation = self.place.1;
                    tracing::debug!(%error, operation, "its log cannot be read; trying again");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}

/// A request of a front end to one worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "control", rename_all = "snake_case")]
pub enum Control {
    /// Stops an operation.
    Cancel {
        operation: String,
        attempt: u32,
        reason: Option<String>,
    },
    /// Asks for the tools that the worker offers.
    Catalog,
}

/// Subject for the answer to a request.
#[derive(Debug)]
pub struct ControlAnswer {
    address: String,
}

impl ControlAnswer {
    pub async fn send(self, link: &Link, answer: Bytes) {
        link.publish(self.address, answer).await;
    }
}

/// Passes requests on to `take`, for ever.
pub async fn controls(
    link: &Link,
    worker: &str,
    mut take: impl AsyncFnMut(Control, ControlAnswer),
) -> Result<(), LinkError> {
    let mut messages = link.subscribe(link.pool().control_subject(worker)).await?;
    while let Some(message) = messages.next().await {
        let (Some(reply), Ok(control)) = (message.reply, serde_json::from_slice(&message.payload)) else {
            continue;
        };
        let answer = ControlAnswer {
            address: reply.to_string(),
        };
        take(control, answer).await;
    }
    Ok(())
}

/// Beats for ever. `suspicion` rises when this worker may have been given up: after a reconnect, and when a beat was late
/// because the process was stopped.
pub async fn keep_beating(
    link: &Link,
    lease: Duration,
    describe: impl Fn() -> Beat,
    suspicion: watch::Sender<u64>,
) -> Result<(), LinkError> {
    let mut roll_calls = link.subscribe(link.pool().roll_call_subject()).await?;
    let mut connects = link.connects();
    let mut last = Instant::now();
    let mut interval = tokio::time::interval(lease / 5);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let now = Instant::now();
        if now.duration_since(last) > lease / 2 {
            suspicion.send_modify(|times| *times += 1);
        }
        last = now;
        let beat = describe();
        let subject = link.pool().beat_subject(&beat.worker);
        let message = serde_json::to_vec(&SentBeat::now(beat)).unwrap_or_default();
        link.publish(subject, message.into()).await;
        tokio::select! {
            _ = interval.tick() => {}
            _ = roll_calls.next() => {}
            _ = connects.changed() => suspicion.send_modify(|times| *times += 1),
        }
    }
}
