//! Every operation is run by one worker, and none is forgotten.

use std::{collections::HashMap, sync::Arc, time::Instant};

use ahma_cluster::{
    EndCause, FrontEnd, PoolLimits, Request, Stage, SubmitError, Tail, claim, new_name, next_job,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use test_support::TEST_TIMEOUT;
use tokio_util::sync::CancellationToken;

use crate::pool::{TestPool, completes, request};

/// Counts how often each operation was run.
type Runs = Arc<Mutex<HashMap<String, usize>>>;

fn counted(runs: &Runs) -> impl Fn(ahma_cluster::Claim) -> futures::future::BoxFuture<'static, ()> + use<> {
    let runs = Arc::clone(runs);
    move |claim| {
        *runs.lock().entry(claim.operation.clone()).or_default() += 1;
        Box::pin(completes(claim))
    }
}

#[tokio::test]
async fn two_hundred_operations_run_once_each_while_nats_is_killed() {
    let Some(mut pool) = TestPool::start().await else {
        return;
    };
    let runs = Runs::default();
    let (one, other) = (pool.front_end().await, pool.front_end().await);
    let _first = pool.worker("one", counted(&runs)).await;
    let _second = pool.worker("two", counted(&runs)).await;
    let mut operations = Vec::new();
    for number in 0..200 {
        if number % 60 == 30 {
            pool.nats.restart();
        }
        let front = if number % 2 == 0 { &one } else { &other };
        operations.push(front.submit(false).await);
    }
    for operation in &operations {
        let ended = one
            .sees(operation, "ended", ahma_cluster::Folded::has_ended)
            .await;
        assert_eq!(
            other
                .sees(operation, "ended", ahma_cluster::Folded::has_ended)
                .await,
            ended
        );
        let Stage::Ended {
            end: EndCause::Reported { state },
            ..
        } = ended.stage
        else {
            panic!("{operation}: {ended:?}");
        };
        assert_eq!(state, "completed");
    }
    let runs = runs.lock();
    let once: Vec<usize> = operations.iter().map(|operation| runs[operation]).collect();
    assert_eq!(once, vec![1; 200]);
}

#[tokio::test]
async fn of_workers_that_claim_the_same_job_one_wins() {
    let Some(pool) = TestPool::start().await else {
        return;
    };
    let front = pool.front_end().await;
    let link = pool.link("workers").await;
    for _ in 0..50 {
        let operation = front.submit(false).await;
        let delivery = next_job(&link).await.unwrap();
        assert_eq!(delivery.job.operation, operation);
        let names: Vec<String> = (0..8).map(|_| new_name("w")).collect();
        let claims = names.iter().map(|name| claim(&link, &delivery.job, name));
        let won = futures::future::join_all(claims).await;
        assert_eq!(won.iter().flatten().count(), 1);
        delivery.done(&link).await;
    }
}

#[tokio::test]
async fn a_full_queue_is_told_and_leaves_nothing_behind() {
    let limits = PoolLimits {
        queue: 2,
        ..PoolLimits::default()
    };
    let Some(pool) = TestPool::start_with(limits).await else {
        return;
    };
    let front = pool.front_end().await;
    let waiting = [front.submit(false).await, front.submit(false).await];
    let refused = request();
    let told = front.front.submit(&refused, false).await;
    assert_eq!(
        told,
        Err(SubmitError::QueueFull {
            pool: "dev".to_owned(),
            ahead: 2,
        })
    );
    front
        .sees(&refused.operation, "dropped", ahma_cluster::Folded::has_ended)
        .await;
    for (place, operation) in (1..).zip(&waiting) {
        front
            .sees(operation, "queued", |folded| !folded.has_ended())
            .await;
        assert_eq!(front.front.tail().place_in_queue(operation), Some(place));
    }
}

#[tokio::test]
async fn a_principal_with_too_many_open_operations_is_refused_and_others_are_not() {
    let Some(pool) = TestPool::start().await else {
        return;
    };
    let (one, other) = (pool.front_end().await, pool.front_end().await);
    let anna = request();
    let of_anna = || Request {
        owner: anna.owner.clone(),
        ..request()
    };
    let mut open = Vec::new();
    for _ in 0..64 {
        let request = of_anna();
        one.front.submit(&request, false).await.unwrap();
        open.push(request.operation);
    }
    for front in [&one, &other] {
        front.front.tail().synced().await.unwrap();
        let told = front.front.submit(&of_anna(), false).await;
        assert_eq!(told, Err(SubmitError::TooManyOpen { open: 64 }));
        front.submit(false).await;
    }
    let entry = one.front.tail().entry(&open[0]).unwrap();
    one.front.cancel(&entry, None).await;
    one.sees(&open[0], "cancelled", ahma_cluster::Folded::has_ended)
        .await;
    one.front.submit(&of_anna(), false).await.unwrap();
}

#[tokio::test]
async fn what_waits_is_cancelled_without_a_worker_and_never_runs() {
    let Some(pool) = TestPool::start().await else {
        return;
    };
    let (one, other) = (pool.front_end().await, pool.front_end().await);
    let operation = one.submit(false).await;
    other
        .sees(&operation, "queued", |folded| !folded.has_ended())
        .await;
    let entry = other.front.tail().entry(&operation).unwrap();
    other.front.cancel(&entry, Some("not needed".to_owned())).await;
    let ended = one
        .sees(&operation, "ended", ahma_cluster::Folded::has_ended)
        .await;
    let dropped = EndCause::Dropped {
        state: "cancelled".to_owned(),
        why: "not needed".to_owned(),
    };
    assert_eq!(
        ended.stage,
        Stage::Ended {
            attempt: 1,
            end: dropped
        }
    );
    let runs = Runs::default();
    let _worker = pool.worker("late", counted(&runs)).await;
    let later = one.submit(false).await;
    one.sees(&later, "ended", ahma_cluster::Folded::has_ended).await;
    assert_eq!(runs.lock().get(&operation), None);
}

/// The steward of another front end tells of it.
#[tokio::test]
async fn an_operation_whose_front_end_died_before_it_was_queued_is_interrupted() {
    let Some(pool) = TestPool::start().await else {
        return;
    };
    let front = pool.front_end().await;
    let link = pool.link("dying").await;
    let dying = FrontEnd::new(
        link.clone(),
        Tail::start(link.clone(), CancellationToken::new()),
        None,
    );
    let request = request();
    // Both writes, and the second is taken back: the log has the operation, the queue does not.
    let submitted = tokio::time::timeout(TEST_TIMEOUT, dying.submit(&request, false)).await;
    submitted.unwrap().unwrap();
    next_job(&link).await.unwrap().done(&link).await;
    let ended = front
        .sees(&request.operation, "ended", ahma_cluster::Folded::has_ended)
        .await;
    let Stage::Ended {
        end: EndCause::Dropped { state, .. },
        ..
    } = ended.stage
    else {
        panic!("{ended:?}");
    };
    assert_eq!(state, "interrupted");
}

/// A front end that lost events on the way would have to ask the server for them again and again.
#[tokio::test]
async fn a_long_log_is_read_in_one_go() {
    const EVENTS: u64 = 20_000;
    let Some(pool) = TestPool::start().await else {
        return;
    };
    let client = async_nats::connect(pool.nats.address()).await.unwrap();
    let event = ahma_cluster::Event::Queued {
        request: request().sign(None),
        rerun: false,
    };
    let event = serde_json::to_vec(&event).unwrap();
    for number in 0..EVENTS {
        let subject = format!("ahma.op.dev.anna.op_{number}");
        client.publish(subject, event.clone().into()).await.unwrap();
    }
    client.flush().await.unwrap();
    let link = pool.link("front end").await;
    let deadline = Instant::now() + TEST_TIMEOUT;
    while ahma_cluster::state(&link).await.unwrap().operations.messages < EVENTS {
        assert!(Instant::now() < deadline, "gave up waiting for the events");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let tail = Tail::start(link.clone(), CancellationToken::new());
    while tail.synced().await.is_err() {
        assert!(Instant::now() < deadline, "gave up waiting for the tail");
    }
    assert_eq!(tail.open_entries().len(), EVENTS as usize);
    let consumers = ahma_cluster::state(&link).await.unwrap().operations.consumers;
    assert!(consumers <= 3, "{consumers} consumers were made");
}

/// What a front end remembers of ended operations would grow for ever.
#[tokio::test]
async fn an_ended_operation_is_forgotten_with_its_log() {
    let Some(pool) = TestPool::start().await else {
        return;
    };
    let front = pool.front_end().await;
    let worker = pool.worker("one", completes).await;
    let ended = front.submit(false).await;
    front.sees(&ended, "ended", ahma_cluster::Folded::has_ended).await;
    worker.die();
    let open = front.submit(false).await;
    front.sees(&open, "queued", |_| true).await;

    let client = async_nats::connect(pool.nats.address()).await.unwrap();
    let api = async |method: &str, text: String| {
        let subject = format!("$JS.API.STREAM.{method}.AHMA_DEV_OPS");
        let answer = client.request(subject, text.into()).await.unwrap();
        serde_json::from_slice::<Value>(&answer.payload).unwrap()
    };
    let mut config = api("INFO", String::new()).await["config"].take();
    for age in ["max_age", "duplicate_window"] {
        config[age] = json!(1_000_000_000);
    }
    let updated = api("UPDATE", config.to_string()).await;
    assert!(updated["error"].is_null(), "{updated}");
    let deadline = Instant::now() + TEST_TIMEOUT;
    while front.front.tail().entry(&ended).is_some() {
        assert!(Instant::now() < deadline, "it was never forgotten");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(front.front.tail().entry(&open).is_some());
}
