//! A pool on a NATS server of its own.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use ahma_cluster::{
    Beat, Claim, Credentials, Folded, FrontEnd, Link, LinkSettings, Pool, PoolLimits, Request, Tail, claim,
    create, keep_beating, new_name, next_job, owner_of, watch_over,
};
use serde_json::Value;
use test_support::{Nats, TEST_TIMEOUT};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Short, so that tests are; long enough for a busy machine to beat in time.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// A busy machine may let a question go unanswered for longer than it is asked.
async fn until_ok<T, E: std::fmt::Display>(attempt: impl AsyncFn() -> Result<T, E>) -> T {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        match attempt().await {
            Ok(value) => return value,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub(crate) struct TestPool {
    pub(crate) nats: Nats,
}

impl TestPool {
    pub(crate) async fn start() -> Option<Self> {
        Self::start_with(PoolLimits::default()).await
    }

    pub(crate) async fn start_with(limits: PoolLimits) -> Option<Self> {
        let pool = Self { nats: Nats::start()? };
        // The server reserves what is asked for, and disks of test machines are small.
        let limits = PoolLimits {
            output_bytes: 64 << 20,
            ..limits
        };
        let link = pool.link("test").await;
        until_ok(async || create(&link, limits).await).await;
        Some(pool)
    }

    pub(crate) async fn link(&self, name: &str) -> Link {
        let settings = || LinkSettings {
            address: self.nats.address(),
            pool: "dev".parse::<Pool>().unwrap(),
            name: name.to_owned(),
            credentials: Credentials::default(),
        };
        until_ok(async || Link::connect(settings()).await).await
    }

    /// A front end with its steward.
    pub(crate) async fn front_end(&self) -> TestFrontEnd {
        let link = self.link("front end").await;
        let shutdown = CancellationToken::new();
        let tail = Tail::start(link.clone(), shutdown.clone());
        until_ok(async || tail.synced().await).await;
        let (workers, living) = watch::channel(Arc::default());
        let (steward_link, steward_tail) = (link.clone(), tail.clone());
        let steward = tokio::spawn(async move {
            watch_over(&steward_link, &steward_tail, LEASE, workers)
                .await
                .unwrap();
        });
        TestFrontEnd {
            front: FrontEnd::new(link, tail, None),
            living,
            steward,
            _tail: shutdown.drop_guard(),
        }
    }

    /// A worker with one place, which does `work` with each claim.
    pub(crate) async fn worker<F>(
        &self,
        name: &str,
        work: impl Fn(Claim) -> F + Send + Sync + 'static,
    ) -> TestWorker
    where
        F: Future<Output = ()> + Send,
    {
        let link = self.link(name).await;
        let name = new_name(name);
        let (suspicion, _) = watch::channel(0);
        let (beat_link, beat) = (
            link.clone(),
            Beat {
                worker: name.clone(),
                ..Beat::default()
            },
        );
        let heart = tokio::spawn(async move {
            keep_beating(&beat_link, LEASE, || beat.clone(), suspicion)
                .await
                .unwrap();
        });
        let worker = name.clone();
        let hands = tokio::spawn(async move {
            loop {
                let delivery = next_job(&link).await.unwrap();
                let claimed = claim(&link, &delivery.job, &worker).await;
                delivery.done(&link).await;
                if let Some(claimed) = claimed {
                    work(claimed).await;
                }
            }
        });
        TestWorker { name, heart, hands }
    }
}

pub(crate) struct TestFrontEnd {
    pub(crate) front: FrontEnd,
    pub(crate) living: watch::Receiver<Arc<Vec<Beat>>>,
    steward: JoinHandle<()>,
    _tail: DropGuard,
}

impl Drop for TestFrontEnd {
    fn drop(&mut self) {
        self.steward.abort();
    }
}

impl TestFrontEnd {
    /// Submits an operation; gives its name.
    pub(crate) async fn submit(&self, rerun: bool) -> String {
        let request = request();
        self.front.submit(&request, rerun).await.unwrap();
        request.operation
    }

    /// Waits until this front end sees an operation in a state.
    pub(crate) async fn sees(&self, operation: &str, what: &str, is_so: impl Fn(&Folded) -> bool) -> Folded {
        let mut changes = self.front.tail().changes_of(operation);
        let seen = async {
            loop {
                match self.front.tail().entry(operation) {
                    Some(entry) if is_so(&entry.folded) => return entry.folded,
                    _ => changes.changed().await.unwrap(),
                }
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, seen)
            .await
            .unwrap_or_else(|_| {
                panic!(
                    "{operation} was never {what}: {:?}",
                    self.front.tail().entry(operation)
                )
            })
    }
}

pub(crate) struct TestWorker {
    pub(crate) name: String,
    heart: JoinHandle<()>,
    hands: JoinHandle<()>,
}

impl TestWorker {
    /// As if the machine was switched off.
    pub(crate) fn die(&self) {
        self.heart.abort();
        self.hands.abort();
    }

    /// It goes on working, but is not heard.
    pub(crate) fn fall_silent(&self) {
        self.heart.abort();
    }
}

impl Drop for TestWorker {
    fn drop(&mut self) {
        self.die();
    }
}

/// A request of a principal of its own: each may have a few operations only.
pub(crate) fn request() -> Request {
    Request {
        pool: "dev".to_owned(),
        operation: new_name("op_"),
        owner: owner_of(Some(&new_name("anna"))),
        tool: "echo".to_owned(),
        issued_at: Request::now(),
        ..Request::default()
    }
}

pub(crate) async fn completes(claim: Claim) {
    claim.report("completed", (0, 0), Value::Null).await;
}
