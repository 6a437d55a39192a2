//! The process of a front end that listens: whether its cluster answers, and figures about the pool. Sessions have
//! processes and connections of their own; this one is there before the first of them, and is a steward as they are.

use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ahma_cluster::{Beat, Link, LinkError, LinkSettings, PoolState, Stage, Tail, check, state, watch_over};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::operation::{LivingWorker, Workforce};

/// Pace of the questions to NATS.
const LOOK: Duration = Duration::from_secs(2);

/// A restart of NATS, or the choice of a new leader, takes less.
const SILENCE: Duration = Duration::from_secs(10);

/// The pool as the listener of a front end sees it.
#[derive(Debug)]
pub struct ClusterHealth {
    tail: Tail,
    workers: watch::Receiver<Arc<Vec<Beat>>>,
    streams: watch::Receiver<PoolState>,
    is_silent: Arc<AtomicBool>,
}

impl ClusterHealth {
    /// Connects, and watches until `shutdown`.
    pub async fn open(
        settings: LinkSettings,
        lease: Duration,
        shutdown: CancellationToken,
    ) -> Result<Self, LinkError> {
        let link = Link::connect(settings).await?;
        check(&link).await?;
        let tail = Tail::start(link.clone(), shutdown.clone());
        let (beating, workers) = watch::channel(Arc::default());
        let (looking, streams) = watch::channel(state(&link).await?);
        let is_silent = Arc::new(AtomicBool::new(false));
        let (watched, silent) = (tail.clone(), Arc::clone(&is_silent));
        // Ends with the token.
        tokio::spawn(async move {
            let steward = async {
                if let Err(error) = watch_over(&link, &watched, lease, beating).await {
                    tracing::error!(%error, "workers of the pool are not watched any more");
                }
            };
            tokio::select! {
                () = async { tokio::join!(steward, look(&link, &looking, &silent)); } => {}
                () = shutdown.cancelled() => {}
            }
        });
        Ok(Self {
            tail,
            workers,
            streams,
            is_silent,
        })
    }

    /// False when NATS has not answered for ten seconds.
    pub fn answers(&self) -> bool {
        !self.is_silent.load(Ordering::Relaxed)
    }

    /// The figures in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        let mut add = |name: &str, kind: &str, help: &str, samples: &[(&str, u64)]| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(text, "{name}{labels} {value}");
            }
        };
        let open = self.tail.open_entries();
        let running = open
            .iter()
            .filter(|entry| matches!(entry.folded.stage, Stage::Running { .. }));
        let running = running.count();
        let queued = open.len() - running;
        let workers = Arc::clone(&self.workers.borrow());
        let slots: usize = workers.iter().map(|beat| beat.slots).sum();
        let streams = self.streams.borrow().clone();
        add(
            "ahma_cluster_connected",
            "gauge",
            "1 if NATS answers, 0 if it has not for ten seconds.",
            &[("", u64::from(self.answers()))],
        );
        add(
            "ahma_cluster_operations",
            "gauge",
            "Operations of the pool that have not ended.",
            &[
                ("{state=\"queued\"}", queued as u64),
                ("{state=\"running\"}", running as u64),
            ],
        );
        add(
            "ahma_cluster_workers",
            "gauge",
            "Workers that were heard of within the lease.",
            &[("", workers.len() as u64)],
        );
        add(
            "ahma_cluster_slots",
            "gauge",
            "Operations that these workers can run at once.",
            &[("", slots as u64)],
        );
        add(
            "ahma_cluster_verdicts_total",
            "counter",
            "Operations whose worker was given up as gone, by any front end.",
            &[("", self.tail.verdicts())],
        );
        add(
            "ahma_cluster_stream_bytes",
            "gauge",
            "Size of the streams of the pool.",
            &[
                ("{stream=\"log\"}", streams.operations.bytes),
                ("{stream=\"queue\"}", streams.jobs.bytes),
                ("{stream=\"output\"}", streams.output.bytes),
            ],
        );
        text
    }
}

impl Workforce for ClusterHealth {
    fn workers(&self) -> Vec<LivingWorker> {
        let beats = Arc::clone(&self.workers.borrow());
        let mut workers: Vec<LivingWorker> = beats.iter().map(worker).collect();
        workers.sort_by(|one, other| (&one.host, &one.name).cmp(&(&other.host, &other.name)));
        workers
    }
}

fn worker(beat: &Beat) -> LivingWorker {
    LivingWorker {
        name: beat.worker.clone(),
        host: beat.host.clone(),
        version: beat.version.clone(),
        labels: beat.labels.clone(),
        running: beat.running,
        slots: beat.slots,
        is_draining: beat.draining,
    }
}

async fn look(link: &Link, streams: &watch::Sender<PoolState>, is_silent: &AtomicBool) {
    let mut answered = Instant::now();
    loop {
        tokio::time::sleep(LOOK).await;
        match state(link).await {
            Ok(state) => {
                answered = Instant::now();
                streams.send_replace(state);
            }
            Err(error) => tracing::debug!(%error, "the streams of the pool cannot be looked at"),
        }
        let silent = answered.elapsed() > SILENCE;
        if is_silent.swap(silent, Ordering::Relaxed) != silent {
            match silent {
                true => tracing::warn!("NATS does not answer; /healthz turns clients away"),
                false => tracing::info!("NATS answers again"),
            }
        }
    }
}
