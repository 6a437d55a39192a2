//! Workers that are gone, or only seem to be.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ahma_cluster::{Claim, EndCause, Folded, Reported, Stage, roll_call};
use serde_json::Value;
use test_support::TEST_TIMEOUT;
use tokio::sync::mpsc;

use crate::pool::{TestPool, completes};

fn is_running(folded: &Folded) -> bool {
    matches!(folded.stage, Stage::Running { .. })
}

#[tokio::test]
async fn an_operation_whose_worker_dies_is_interrupted_and_nobody_else_runs_it() {
    let Some(pool) = TestPool::start().await else {
        return;
    };
    let (one, other) = (pool.front_end().await, pool.front_end().await);
    let worker = pool.worker("dying", |_| std::future::pending()).await;
    let operation = one.submit(false).await;
    one.sees(&operation, "running", is_running).await;
    worker.die();
    let _second = pool.worker("living", completes).await;
    let ended = one.sees(&operation, "ended", Folded::has_ended).await;
    let lost = EndCause::WorkerLost {
        worker: worker.name.clone(),
    };
    assert_eq!(
        ended.stage,
        Stage::Ended {
            attempt: 1,
            end: lost
        }
    );
    assert_eq!(
        other.sees(&operation, "ended", Folded::has_ended).await.stage,
        ended.stage
    );
}

#[tokio::test]
async fn what_may_run_again_does_on_another_worker() {
    let Some(pool) = TestPool::start().await else {
        return;
    };
    let front = pool.front_end().await;
    let worker = pool.worker("dying", |_| std::future::pending()).await;
    let operation = front.submit(true).await;
    front.sees(&operation, "running", is_running).await;
    worker.die();
    let _second = pool.worker("living", completes).await;
    let ended = front.sees(&operation, "ended", Folded::has_ended).await;
    let completed = EndCause::Reported {
        state: "completed".to_owned(),
    };
    assert_eq!(
        ended.stage,
        Stage::Ended {
            attempt: 2,
            end: completed
        }
    );
}

#[tokio::test]
async fn a_worker_that_was_given_up_notices_and_its_report_is_ignored() {
    let Some(pool) = TestPool::start().await else {
        return;
    };
    let front = pool.front_end().await;
    let (held, mut claims) = mpsc::unbounded_channel::<Claim>();
    let hold = move |claim| {
        held.send(claim).unwrap();
        std::future::pending()
    };
    let worker = pool.worker("silent", hold).await;
    let operation = front.submit(false).await;
    front.sees(&operation, "running", is_running).await;
    let claim = claims.recv().await.unwrap();
    assert!(claim.holds().await);
    worker.fall_silent();
    let lost = front.sees(&operation, "ended", Folded::has_ended).await;
    assert!(!claim.holds().await);
    assert_eq!(
        claim.report("completed", (0, 0), Value::Null).await,
        Reported::TooLate
    );
    front.front.tail().synced().await.unwrap();
    assert_eq!(
        front.front.tail().entry(&operation).unwrap().folded.stage,
        lost.stage
    );
}

#[tokio::test]
async fn workers_are_known_while_they_beat() {
    let Some(pool) = TestPool::start().await else {
        return;
    };
    let mut front = pool.front_end().await;
    let worker = pool.worker("one", completes).await;
    let name = worker.name.clone();
    let is_there = |list: &Arc<Vec<ahma_cluster::Beat>>| list.iter().any(|beat| beat.worker == name);
    front.living.wait_for(is_there).await.unwrap();
    let link = pool.link("operator").await;
    let deadline = Instant::now() + TEST_TIMEOUT;
    let heard = loop {
        let heard = roll_call(&link, Duration::from_secs(1)).await.unwrap();
        if !heard.is_empty() {
            break heard;
        }
        assert!(Instant::now() < deadline, "gave up waiting for an answer");
    };
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].beat.worker, worker.name);
    assert!(heard[0].clock_ahead_ms.is_some());
    worker.die();
    front.living.wait_for(|list| !is_there(list)).await.unwrap();
}
