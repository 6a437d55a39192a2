//! The steward, one in every front end: listens to heartbeats, gives up workers that are gone, and looks after operations that
//! wait although they are not in the queue. The first verdict in the log counts, so stewards need no leader.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures::StreamExt as _;
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior},
};

use crate::{
    event::Event,
    fold::Stage,
    front::{dispatch, request_of},
    index::Entry,
    link::{Append, Link, LinkError},
    roster::{Beat, Roster},
    streams::{JOBS_AGE, drop_output, log_state, output_limits},
    tail::Tail,
    worker::Job,
};

/// An operation without an end is remembered for this long even if its log is gone: clients still follow it.
const OPEN_MEMORY: Duration = Duration::from_secs(7 * 24 * 3600);

/// Looks after the pool for ever. `workers` is told who lives.
pub async fn watch_over(
    link: &Link,
    tail: &Tail,
    lease: Duration,
    workers: watch::Sender<Arc<Vec<Beat>>>,
) -> Result<(), LinkError> {
    let pool = link.pool().clone();
    let mut beats = link.subscribe(pool.beat_subject("*")).await?;
    let mut connects = link.connects();
    link.publish(pool.roll_call_subject(), Bytes::new()).await;
    let mut roster = Roster::new(lease, Instant::now());
    let pace = lease / 5;
    let mut ticks = tokio::time::interval(pace);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_tick = Instant::now();
    loop {
        let news = tokio::select! {
            // Beats first: they may have piled up while this process was stopped.
            biased;
            message = beats.next() => {
                let Some(message) = message else { return Err(LinkError::Unanswered) };
                match serde_json::from_slice(&message.payload) {
                    Ok(beat) => roster.take(beat, Instant::now()),
                    Err(_) => false,
                }
            }
            _ = connects.changed() => {
                roster.was_deaf(Instant::now());
                link.publish(pool.roll_call_subject(), Bytes::new()).await;
                false
            }
            _ = ticks.tick() => {
                let now = Instant::now();
                if !link.is_connected() || now.duration_since(last_tick) > pace * 2 {
                    roster.was_deaf(now);
                }
                last_tick = now;
                look(link, tail, &roster, lease, now).await;
                last_tick = last_tick.max(Instant::now());
                roster.forget_silent(now)
            }
        };
        // Loads change with every beat, and those who look want them as they are.
        let list: Vec<Beat> = roster.workers().into_iter().cloned().collect();
        if news || *list != **workers.borrow() {
            workers.send_replace(Arc::new(list));
        }
    }
}

/// `heard` is when beats were last taken: those that come while requests wait for an answer are not missing.
async fn look(link: &Link, tail: &Tail, roster: &Roster, lease: Duration, heard: Instant) {
    match log_state(link).await {
        Ok(log) => {
            tail.set_nearly_full(log.is_nearly_full);
            tail.forget_before(ago(log.age), ago(log.age.max(OPEN_MEMORY)));
        }
        Err(error) => tracing::debug!(%error, "the state of the log is not known"),
    }
    if let Err(error) = trim_outputs(link, tail).await {
        tracing::debug!(%error, "output over the limit of its principal cannot be dropped now");
    }
    for entry in tail.open_entries() {
        let now = Instant::now();
        let looked = match &entry.folded.stage {
            Stage::Running { attempt, worker, .. } if roster.has_lost(worker, entry.noticed, heard) => {
                give_up(link, &entry, *attempt, worker).await
            }
            Stage::Queued { attempt } if now.duration_since(entry.noticed) > lease => {
                requeue(link, &entry, *attempt).await
            }
            _ => Ok(()),
        };
        if let Err(error) = looked
            && !error.is_outrun()
        {
            tracing::debug!(%error, operation = entry.operation, "a steward cannot look after it now");
            return;
        }
    }
}

/// Drops the oldest output of principals that keep too much. Repeated until the log says so.
async fn trim_outputs(link: &Link, tail: &Tail) -> Result<(), LinkError> {
    let limits = output_limits(link).await?;
    for entry in tail.over_quota(limits.bytes, ago(limits.age)) {
        drop_output(link, &entry.owner, &entry.operation).await?;
        let after = Append::After(entry.folded.last_sequence);
        match link.append(place(&entry), &Event::OutputDropped, after).await {
            Ok(_) => {}
            // Another steward was faster, or a client collected the result just now.
            Err(error) if error.is_outrun() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Says that a worker is gone. What may run again is queued at once.
async fn give_up(link: &Link, entry: &Entry, attempt: u32, worker: &str) -> Result<(), LinkError> {
    let lost = Event::Lost {
        attempt,
        worker: worker.to_owned(),
    };
    let after = Append::After(entry.folded.last_sequence);
    let sequence = link.append(place(entry), &lost, after).await?;
    tracing::warn!(worker, operation = entry.operation, "a worker is gone");
    let mut folded = entry.folded.clone();
    folded.take(sequence, &lost);
    match folded.stage {
        Stage::Queued { attempt } => queue(link, entry, attempt).await,
        Stage::Unheard | Stage::Running { .. } | Stage::Ended { .. } => Ok(()),
    }
}

/// For an operation that waits for long: if it is not in the queue, its front end died before it could queue it.
async fn requeue(link: &Link, entry: &Entry, attempt: u32) -> Result<(), LinkError> {
    let method = format!("STREAM.MSG.GET.{}", link.pool().jobs_stream());
    let asked = json!({ "last_by_subj": link.pool().job_subject(&entry.operation) });
    match link.api::<serde_json::Value>(&method, &asked).await {
        Ok(_) => return Ok(()),
        Err(LinkError::Refused { code: 10_037, .. }) => {}
        Err(error) => return Err(error),
    }
    if attempt > 1 {
        return queue(link, entry, attempt).await;
    }
    let waited = SystemTime::now().duration_since(entry.created_at);
    let why = if waited.is_ok_and(|waited| waited >= JOBS_AGE) {
        "no worker took it within an hour, which is as long as the queue keeps it"
    } else {
        // No client was ever told of it.
        "its front end ended before it was queued"
    };
    let dropped = Event::Drop {
        attempt,
        state: "interrupted".to_owned(),
        why: why.to_owned(),
    };
    let after = Append::After(entry.folded.last_sequence);
    link.append(place(entry), &dropped, after).await.map(drop)
}

async fn queue(link: &Link, entry: &Entry, attempt: u32) -> Result<(), LinkError> {
    let Some(request) = request_of(link, entry).await? else {
        return Ok(());
    };
    let job = Job {
        owner: entry.owner.clone(),
        operation: entry.operation.clone(),
        attempt,
        first_sequence: entry.first_sequence,
        request,
    };
    dispatch(link, &job).await
}

fn ago(age: Duration) -> SystemTime {
    SystemTime::now()
        .checked_sub(age)
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

fn place(entry: &Entry) -> (&str, &str) {
    (&entry.owner, &entry.operation)
}
