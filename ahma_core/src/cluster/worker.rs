//! A worker: claims operations of its pool and runs them with its own engine.

use std::{
    collections::{
        HashMap,
        hash_map::{DefaultHasher, Entry},
    },
    hash::{Hash as _, Hasher as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ahma_cluster::{
    Beat, Claim, Control, ControlAnswer, Job, Link, LinkError, OutputPublisher, Reported, Request,
    RequestKeys, claim, controls, keep_beating, next_job,
};
use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{sync::watch, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    publish,
    wire::{Announcement, EndReport, UnavailableThere},
};
use crate::{
    call::{CommandPlan, PlanSettings, ToolCall},
    history::redacted_arguments,
    operation::{CallOrigin, ClientId, EndState, Engine, Operation, OperationId, Principal, preflight},
    toolbox::{Toolbox, ToolboxHandle},
};

/// A job for a tool that is not here is left to others for this long, so often. Then it is refused: no worker has the tool.
const PASS_ON_DELAY: Duration = Duration::from_millis(500);
const MAX_PASSES: u64 = 20;

/// Commands are stopped after so long without a connection: no client can see or stop them.
const ORPHAN_GRACE: Duration = Duration::from_secs(300);

/// Pause before operations are stopped that began meanwhile.
const AGAIN: Duration = Duration::from_secs(1);

/// A worker, apart from its tools and its sandbox.
#[derive(Debug)]
pub struct WorkerSettings {
    /// Name of this run.
    pub name: String,
    pub host: String,
    pub labels: Vec<String>,
    /// Operations that run at once.
    pub slots: usize,
    pub lease: Duration,
    /// Front ends that may ask.
    pub keys: RequestKeys,
    /// What every result has to say about the sandbox.
    pub warning: Option<String>,
    /// Time for running operations when the worker is asked to end.
    pub drain: Duration,
    pub plan: PlanSettings,
    /// Paths by which front ends name the scope of this worker, besides its own.
    pub mapped_from: Vec<PathBuf>,
    /// The tools for files, and the shell that only reads, are offered.
    pub file_tools: bool,
    pub read_only_shell: bool,
}

/// Works until `shutdown`, then until running operations have ended or had their time.
pub async fn work(
    link: Link,
    engine: Engine,
    toolbox: ToolboxHandle,
    settings: WorkerSettings,
    shutdown: CancellationToken,
) -> Result<(), LinkError> {
    let (suspicion, suspected) = watch::channel(0);
    let worker = Arc::new(PoolWorker {
        link,
        engine,
        toolbox,
        settings,
        running: Mutex::default(),
        suspected,
        shutdown,
    });
    worker.toolbox.loaded().await;
    let beats = keep_beating(&worker.link, worker.settings.lease, || worker.beat(), suspicion);
    let heed = async |control, answer| worker.heed(control, answer).await;
    let heeding = controls(&worker.link, &worker.settings.name, heed);
    // Dropping it ends them.
    let mut slots = JoinSet::new();
    for _ in 0..worker.settings.slots {
        slots.spawn(Arc::clone(&worker).work_in_slot());
    }
    tokio::select! {
        ended = beats => ended,
        ended = heeding => ended,
        () = worker.fence() => Ok(()),
        () = worker.mind_the_gap() => Ok(()),
        () = worker.drain() => Ok(()),
        ended = slots.join_all() => {
            worker.link.flush().await;
            ended.into_iter().collect()
        }
    }
}

struct PoolWorker {
    link: Link,
    engine: Engine,
    toolbox: ToolboxHandle,
    settings: WorkerSettings,
    running: Mutex<HashMap<String, Running>>,
    /// Number of times that this worker may have been given up.
    suspected: watch::Receiver<u64>,
    shutdown: CancellationToken,
}

/// An operation that this worker claimed, or is about to.
#[derive(Debug, Default)]
struct Running {
    claim: Option<Claim>,
    operation: Option<Operation>,
    /// Asked for before it began.
    cancelled: Option<Option<String>>,
    /// It was given up: nothing of it may be published any more.
    fenced: CancellationToken,
}

/// A job as this worker would run it.
struct PlannedJob {
    origin: CallOrigin,
    plan: CommandPlan,
}

/// What a worker has to do with a job that was handed to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admission {
    New,
    /// It runs here already: the server has not heard that it was taken.
    Claimed,
    /// An earlier attempt is being stopped here, or it is just being claimed.
    Busy,
}

impl PoolWorker {
    /// Takes one job after the other.
    async fn work_in_slot(self: Arc<Self>) -> Result<(), LinkError> {
        loop {
            let delivery = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return Ok(()),
                delivery = next_job(&self.link) => delivery?,
            };
            let tool = delivery.job.request.read().map(|request| request.tool);
            if tool.is_ok_and(|tool| !self.offers(&tool)) && delivery.deliveries < MAX_PASSES {
                delivery.pass_on(&self.link, PASS_ON_DELAY).await;
                continue;
            }
            let job = delivery.job.clone();
            match self.admit(&job) {
                Admission::New => {}
                Admission::Claimed => {
                    delivery.done(&self.link).await;
                    continue;
                }
                Admission::Busy => {
                    delivery.pass_on(&self.link, PASS_ON_DELAY).await;
                    continue;
                }
            }
            let (suspicions, begun) = (*self.suspected.borrow(), Instant::now());
            // Planning changes nothing, and the log takes longer to answer.
            let claiming = claim(&self.link, &job, &self.settings.name);
            let (claimed, planned) = tokio::join!(claiming, self.plan(&job));
            delivery.done(&self.link).await;
            if let Some(claim) = claimed {
                // The time decides too: the task that beats may notice it only later.
                let may_be_lost =
                    || begun.elapsed() > self.settings.lease / 2 || *self.suspected.borrow() != suspicions;
                self.run(claim, planned, may_be_lost).await;
            }
            self.running.lock().remove(&job.operation);
        }
    }

    /// Notes that a job is about to be claimed, before it is: a request to stop it may come at once.
    fn admit(&self, job: &Job) -> Admission {
        match self.running.lock().entry(job.operation.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(Running::default());
                Admission::New
            }
            Entry::Occupied(entry) => match &entry.get().claim {
                Some(claim) if claim.attempt == job.attempt => Admission::Claimed,
                Some(_) | None => Admission::Busy,
            },
        }
    }

    /// The log is asked once more if this worker may have been given up since it began to claim.
    async fn run(
        &self,
        claim: Claim,
        planned: Result<PlannedJob, String>,
        may_be_lost: impl FnOnce() -> bool,
    ) {
        let fenced = {
            let mut running = self.running.lock();
            let entry = running.entry(claim.operation.clone()).or_default();
            entry.claim = Some(claim.clone());
            entry.fenced.clone()
        };
        // From here on `fence` knows the claim.
        if may_be_lost() && !claim.holds().await {
            return;
        }
        let operation = match planned {
            Ok(planned) => self.start(&claim.operation, planned),
            Err(refusal) => {
                tracing::warn!(operation = claim.operation, refusal, "refused");
                let report = EndReport {
                    refusal: Some(refusal),
                    ..EndReport::default()
                };
                let report = serde_json::to_value(report).unwrap_or_default();
                claim.report("failed", (0, 0), report).await;
                return;
            }
        };
        tokio::select! {
            biased;
            () = fenced.cancelled() => {
                tracing::warn!(operation = claim.operation, "this worker was given up; the operation is stopped");
                operation.cancel(Some("its worker was given up".to_owned())).await;
            }
            () = self.carry_out(&claim, &operation) => {}
        }
    }

    /// Checks the request as a call from a client is checked.
    async fn plan(&self, job: &Job) -> Result<PlannedJob, String> {
        let place = (job.owner.as_str(), job.operation.as_str());
        let verified = job
            .request
            .verified(&self.settings.keys, self.link.pool(), place, Request::now());
        let request = verified.map_err(|error| error.to_string())?;
        self.check_scope(&request.scope)?;
        let mut given = request.arguments;
        for theirs in &self.settings.mapped_from {
            let values = given.values_mut();
            values.for_each(|value| map_paths(value, theirs, &self.settings.plan.scope));
        }
        let arguments = redacted_arguments(&given);
        let call = ToolCall {
            tool: request.tool,
            arguments: given,
        };
        let toolbox = self.toolbox.loaded().await;
        if let Some(unavailable) = toolbox.unavailable(&call.tool) {
            let reason = &unavailable.reason;
            return Err(format!(
                "`{}` is not available on {}: {reason}",
                call.tool, self.settings.host
            ));
        }
        let planned = preflight(&toolbox.offered, &self.settings.plan, call).await;
        let plan = planned.map_err(|error| error.to_string())?;
        let origin = CallOrigin {
            client: request.client.as_deref().map(ClientId::named).unwrap_or_default(),
            principal: request
                .principal
                .as_deref()
                .map(Principal::named)
                .unwrap_or_default(),
            program: request.program,
            arguments,
        };
        Ok(PlannedJob { origin, plan })
    }

    fn start(&self, name: &str, PlannedJob { origin, plan }: PlannedJob) -> Operation {
        let id = OperationId::recalled(name);
        let operation = self.engine.start_named(Some(id), origin, plan);
        let mut running = self.running.lock();
        let entry = running.entry(name.to_owned()).or_default();
        if let Some(reason) = entry.cancelled.take() {
            operation.request_cancel(reason);
        }
        entry.operation = Some(operation.clone());
        operation
    }

    /// Streams the operation and reports its end.
    async fn carry_out(&self, claim: &Claim, operation: &Operation) {
        let mut publisher =
            OutputPublisher::new(self.link.clone(), &claim.owner, &claim.operation, claim.attempt);
        publish::publish(operation, &mut publisher).await;
        let outcome = operation.outcome().await;
        let (mut bytes, findings) = publisher.sent();
        let mut report = EndReport {
            lost: outcome.lost.as_ref().map(|loss| publish::lost(operation, loss)),
            outcome: Some((*outcome).clone()),
            refusal: None,
        };
        let mut notices: Vec<String> = self.settings.warning.iter().cloned().collect();
        if let Err(stored) = publisher.finish().await {
            bytes = stored;
            notices.push(format!(
                "the cluster had no room for its output after byte {stored}"
            ));
        }
        if let Some(outcome) = &mut report.outcome {
            outcome.notices.append(&mut notices);
        }
        let report = serde_json::to_value(report).unwrap_or_default();
        let state = outcome.state.as_str();
        if claim.report(state, (bytes, findings), report).await == Reported::TooLate {
            tracing::warn!(operation = claim.operation, "it had been given up when it ended");
        }
    }

    /// A front end works in the same directory as this worker, or in one that it is said to call by that name.
    fn check_scope(&self, theirs: &str) -> Result<(), String> {
        let ours = &self.settings.plan.scope;
        let names = self
            .settings
            .mapped_from
            .iter()
            .chain([ours])
            .chain(&self.settings.plan.scope_aliases);
        if names.into_iter().any(|name| name == Path::new(theirs)) {
            return Ok(());
        }
        Err(format!(
            "the front end works in {theirs}, and worker {} in {}\nhint: share the directory under one path, or start the \
             worker with --mapped-from {theirs} if both are the same files",
            self.settings.name,
            ours.display()
        ))
    }

    fn offers(&self, tool: &str) -> bool {
        self.toolbox.current().offered.get(tool).is_some()
    }

    async fn heed(&self, control: Control, answer: ControlAnswer) {
        let text = match control {
            Control::Cancel {
                operation,
                attempt,
                reason,
            } => self.cancel(&operation, attempt, reason).into(),
            Control::Catalog => match announcement(&self.toolbox.current(), &self.settings).encode() {
                Ok(message) => message.into(),
                Err(error) => {
                    tracing::warn!(%error, "the tools cannot be announced");
                    return;
                }
            },
        };
        answer.send(&self.link, text).await;
    }

    fn cancel(&self, operation: &str, attempt: u32, reason: Option<String>) -> &'static str {
        let mut running = self.running.lock();
        let Some(entry) = running.get_mut(operation) else {
            return "unknown";
        };
        if entry.claim.as_ref().is_some_and(|claim| claim.attempt != attempt) {
            return "unknown";
        }
        match &entry.operation {
            Some(operation) => operation.request_cancel(reason),
            None => entry.cancelled = Some(reason),
        }
        "stopping"
    }

    fn beat(&self) -> Beat {
        let announcement = announcement(&self.toolbox.current(), &self.settings);
        Beat {
            worker: self.settings.name.clone(),
            host: self.settings.host.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            labels: self.settings.labels.clone(),
            slots: self.settings.slots,
            running: self.running.lock().len(),
            catalog: digest(&announcement),
            draining: self.shutdown.is_cancelled(),
        }
    }

    /// Stops what was given up while this worker could not be heard.
    async fn fence(&self) {
        let mut suspected = self.suspected.clone();
        while suspected.changed().await.is_ok() {
            let claims: Vec<(Claim, CancellationToken)> = {
                let running = self.running.lock();
                let claimed = running
                    .values()
                    .filter_map(|entry| Some((entry.claim.clone()?, entry.fenced.clone())));
                claimed.collect()
            };
            for (claim, fenced) in claims {
                // An operation that has just reported its end does not hold its claim either; stopping it does nothing.
                if !claim.holds().await {
                    fenced.cancel();
                }
            }
        }
    }

    /// Stops everything when there was no connection for long.
    async fn mind_the_gap(&self) {
        let mut connected = Instant::now();
        loop {
            tokio::time::sleep(self.settings.lease / 5).await;
            if self.link.is_connected() {
                connected = Instant::now();
            } else if connected.elapsed() > ORPHAN_GRACE {
                self.interrupt_all("its worker has no connection to the cluster")
                    .await;
            }
        }
    }

    /// Lets running operations end, for a while.
    async fn drain(&self) {
        self.shutdown.cancelled().await;
        tokio::time::sleep(self.settings.drain).await;
        // Their ends are reported by those who run them. What was just being claimed begins later.
        loop {
            self.interrupt_all("its worker was stopped").await;
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn interrupt_all(&self, reason: &str) {
        let operations: Vec<Operation> = {
            let running = self.running.lock();
            running
                .values()
                .filter_map(|entry| entry.operation.clone())
                .collect()
        };
        let ends = operations
            .iter()
            .map(|operation| operation.interrupt(reason.to_owned()));
        for outcome in join_all(ends).await {
            tracing::debug!(operation = %outcome.id, interrupted = outcome.state == EndState::Interrupted, "stopped");
        }
    }
}

/// Replaces the beginning of arguments that are paths below `theirs`. A path inside a longer text, such as a line of shell,
/// stays as it is.
fn map_paths(value: &mut Value, theirs: &Path, ours: &Path) {
    match value {
        Value::String(text) => {
            if let Ok(below) = Path::new(text.as_str()).strip_prefix(theirs) {
                *text = ours.join(below).display().to_string();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| map_paths(value, theirs, ours)),
        Value::Object(values) => values
            .values_mut()
            .for_each(|value| map_paths(value, theirs, ours)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn announcement(toolbox: &Toolbox, settings: &WorkerSettings) -> Announcement {
    let files = toolbox
        .sources
        .iter()
        .map(|source| (source.name.clone(), source.text.clone()));
    let unavailable = toolbox.unavailable.iter().map(|there| UnavailableThere {
        tool: there.tool.clone(),
        reason: there.reason.clone(),
        install_instructions: there.install_instructions.clone(),
    });
    Announcement {
        files: files.collect(),
        file_tools: settings.file_tools,
        read_only_shell: settings.read_only_shell,
        unavailable: unavailable.collect(),
    }
}

/// Changes with what is announced.
fn digest(announcement: &Announcement) -> String {
    let mut hasher = DefaultHasher::new();
    announcement.files.hash(&mut hasher);
    (announcement.file_tools, announcement.read_only_shell).hash(&mut hasher);
    for there in &announcement.unavailable {
        (&there.tool, &there.reason).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}
