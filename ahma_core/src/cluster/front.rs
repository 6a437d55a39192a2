//! A front end: hands calls over to workers, and finds the operations of others.

use std::{path::PathBuf, sync::Arc, time::Duration};

use ahma_cluster::{
    Entry, FrontEnd, Link, LinkError, LinkSettings, Request, Signer, Tail, check, new_name, owner_of,
    watch_over,
};
use ahma_common::error_chain;
use futures::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::{follow::Follower, tools};
use crate::{
    call::{CommandPlan, Lifetime, ToolCall},
    catalog::Expose,
    operation::{
        CallOrigin, ClientId, Cluster, ClusterTask, Engine, Journal, Operation, OperationId, PoolFilter,
        PoolOperation, Principal, RecordedCall, Whose,
    },
    toolbox::{self, ToolboxHandle},
};

/// Ended operations that are recalled besides those whose results were not collected.
const RECENT: usize = 5;

/// Operations that are recalled at once.
const MAX_RECALLED: usize = 50;

/// Time for the output of an operation that is recalled; what is missing then comes later.
const CATCH_UP: Duration = Duration::from_secs(10);

/// A cluster, as its front ends need to know it.
#[derive(Debug)]
pub struct ClusterSettings {
    pub link: LinkSettings,
    /// Silence after which a worker is given up.
    pub lease: Duration,
    /// Signs requests.
    pub signer: Option<Signer>,
    /// Tools that may run twice do so when their worker is lost.
    pub rerun: bool,
    /// Directory that paths in calls refer to.
    pub scope: PathBuf,
    pub expose: Expose,
}

/// The connection of a front end, with what it knows of the pool. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ClusterFront {
    pub(super) front: FrontEnd,
    rerun: bool,
    scope: PathBuf,
    toolbox: ToolboxHandle,
    shutdown: CancellationToken,
}

impl ClusterFront {
    /// Connects, and reads along until `shutdown`.
    pub async fn open(settings: ClusterSettings, shutdown: CancellationToken) -> Result<Self, LinkError> {
        let link = Link::connect(settings.link).await?;
        check(&link).await?;
        let tail = Tail::start(link.clone(), shutdown.clone());
        let front = FrontEnd::new(link.clone(), tail.clone(), settings.signer);
        let (workers, living) = watch::channel(Arc::default());
        let (announcing, announced) = watch::channel(None);
        let (following, expose, lease) = (front.clone(), settings.expose, settings.lease);
        let ended = shutdown.clone();
        // Ends with the token.
        tokio::spawn(async move {
            let steward = async {
                if let Err(error) = watch_over(&link, &tail, lease, workers).await {
                    tracing::error!(%error, "workers of the pool are not watched any more");
                }
            };
            tokio::select! {
                () = async { tokio::join!(steward, tools::follow(&following, living, expose, announcing)); } => {}
                () = ended.cancelled() => {}
            }
        });
        Ok(Self {
            front,
            rerun: settings.rerun,
            scope: settings.scope,
            toolbox: toolbox::announced(announced, shutdown.clone()),
            shutdown,
        })
    }

    /// The tools of the pool.
    pub fn toolbox(&self) -> ToolboxHandle {
        self.toolbox.clone()
    }

    /// Runs calls for those who have this engine.
    pub fn with_engine(&self, engine: Engine) -> Arc<dyn Cluster> {
        Arc::new(EngineOnCluster {
            cluster: self.clone(),
            engine,
        })
    }
}

#[derive(Debug)]
pub(super) struct EngineOnCluster {
    pub(super) cluster: ClusterFront,
    pub(super) engine: Engine,
}

impl Cluster for EngineOnCluster {
    fn submit<'a>(
        &'a self,
        origin: CallOrigin,
        call: ToolCall,
        plan: &'a CommandPlan,
        may_rerun: bool,
    ) -> BoxFuture<'a, Result<Operation, String>> {
        self.hand_over(origin, call, plan, may_rerun).boxed()
    }

    fn find<'a>(&'a self, whose: Whose<'a>, id: &'a str) -> BoxFuture<'a, Option<Operation>> {
        async move {
            let entry = self.entry(id).await?;
            match whose {
                Whose::One(principal) if entry.owner != owner_of(principal.name()) => None,
                Whose::One(_) | Whose::All => self.followed(&entry).await,
            }
        }
        .boxed()
    }

    fn list<'a>(&'a self, wanted: PoolFilter<'a>) -> BoxFuture<'a, Vec<PoolOperation>> {
        self.listed(wanted).boxed()
    }

    fn recall<'a>(&'a self, principal: &'a Principal) -> BoxFuture<'a, ()> {
        self.recall_all(owner_of(principal.name())).boxed()
    }

    fn note_task<'a>(&'a self, operation: &'a Operation, task: &'a str, life: Duration) -> BoxFuture<'a, ()> {
        async move {
            let owner = owner_of(operation.principal().name());
            let place = (owner.as_str(), operation.id().as_str());
            if let Err(error) = self.cluster.front.note_task(place, task, life).await {
                tracing::warn!(%error, task, "other front ends do not know the task");
            }
        }
        .boxed()
    }

    fn task<'a>(&'a self, task: &'a str) -> BoxFuture<'a, Option<ClusterTask>> {
        async move {
            let tail = self.cluster.front.tail();
            if tail.task(task).is_none() {
                tail.synced().await.ok()?;
            }
            let (operation, life) = tail.task(task)?;
            let operation = OperationId::recalled(&operation);
            Some(ClusterTask { operation, life })
        }
        .boxed()
    }
}

impl EngineOnCluster {
    async fn hand_over(
        &self,
        origin: CallOrigin,
        call: ToolCall,
        plan: &CommandPlan,
        may_rerun: bool,
    ) -> Result<Operation, String> {
        let cluster = &self.cluster;
        let request = Request {
            pool: cluster.front.link().pool().to_string(),
            operation: new_name("op_"),
            owner: owner_of(origin.principal.name()),
            principal: origin.principal.name().map(str::to_owned),
            client: origin.client.name().map(str::to_owned),
            program: origin.program.clone(),
            tool: call.tool,
            arguments: call.arguments,
            scope: cluster.scope.display().to_string(),
            command: plan.in_short(),
            directory: plan.directory.display().to_string(),
            keeps_running: matches!(plan.lifetime, Lifetime::KeepsRunning { .. }),
            issued_at: Request::now(),
        };
        let submitted = cluster.front.submit(&request, cluster.rerun && may_rerun).await;
        submitted.map_err(|error| error_chain(&error))?;
        let call = RecordedCall {
            lifetime: plan.lifetime.clone(),
            ..self.mirrored(&request, origin, std::time::SystemTime::now())
        };
        Ok(self.mirror(call, &request.owner).0)
    }

    /// The operation of a log, followed here from now on. One that has ended has its outcome.
    pub(super) async fn followed(&self, entry: &Entry) -> Option<Operation> {
        if let Some(known) = self.engine.get(&entry.operation) {
            return Some(known);
        }
        let log = match self.cluster.front.log_of(entry).await {
            Ok(log) => log?,
            Err(error) => {
                tracing::warn!(%error, operation = entry.operation, "its log cannot be read");
                return None;
            }
        };
        let request = &log.request;
        let origin = CallOrigin {
            client: ClientId::elsewhere(),
            principal: request
                .principal
                .as_deref()
                .map(Principal::named)
                .unwrap_or_default(),
            program: request.program.clone(),
            arguments: None,
        };
        let call = RecordedCall {
            seen: entry.collected,
            ..self.mirrored(request, origin, log.queued_at.into())
        };
        let (operation, caught_up) = self.mirror(call, &entry.owner);
        let ready = async {
            // What has ended is read to its end.
            if entry.folded.has_ended() {
                operation.outcome().await;
            } else {
                let _ = caught_up.await;
            }
        };
        let _ = tokio::time::timeout(CATCH_UP, ready).await;
        Some(operation)
    }

    async fn recall_all(&self, owner: String) {
        if let Err(error) = self.cluster.front.tail().synced().await {
            tracing::warn!(%error, "operations of other front ends may be missing");
        }
        let mut entries = self.cluster.front.tail().entries_of(&owner);
        let mut recent = 0;
        entries.reverse();
        entries.retain(|entry| {
            let is_news = !entry.folded.has_ended() || !entry.collected;
            recent += usize::from(!is_news);
            is_news || recent <= RECENT
        });
        entries.truncate(MAX_RECALLED);
        entries.reverse();
        join_all(entries.iter().map(|entry| self.followed(entry))).await;
    }

    /// State in the log, after another look if it has none.
    async fn entry(&self, id: &str) -> Option<Entry> {
        let tail = self.cluster.front.tail();
        if let Some(entry) = tail.entry(id) {
            return Some(entry);
        }
        if let Err(error) = tail.synced().await {
            tracing::warn!(%error, "operations of other front ends may be missing");
        }
        tail.entry(id)
    }

    fn mirrored(
        &self,
        request: &Request,
        origin: CallOrigin,
        created_at: std::time::SystemTime,
    ) -> RecordedCall {
        let journal = CollectedJournal {
            front: self.cluster.front.clone(),
        };
        RecordedCall {
            id: OperationId::recalled(&request.operation),
            origin,
            tool: request.tool.clone(),
            command: request.command.clone(),
            directory: request.directory.clone().into(),
            lifetime: match request.keeps_running {
                true => Lifetime::KeepsRunning { ready: None },
                false => Lifetime::Finite,
            },
            created_at,
            seen: false,
            journal: Some(Arc::new(journal)),
        }
    }

    /// Follows an operation until it has ended or this front end does. The receiver hears when what was there is read.
    fn mirror(&self, call: RecordedCall, owner: &str) -> (Operation, oneshot::Receiver<()>) {
        let (caught_up, heard) = oneshot::channel();
        let mirror = match self.engine.mirror(call) {
            Ok(mirror) => mirror,
            // Another task was faster.
            Err(known) => return (known, heard),
        };
        let operation = mirror.operation().clone();
        let follower = Follower {
            front: self.cluster.front.clone(),
            owner: owner.to_owned(),
            mirror,
            caught_up: Some(caught_up),
            is_incomplete: false,
        };
        let shutdown = self.cluster.shutdown.clone();
        // Ends with the operation, or with the token.
        tokio::spawn(async move {
            tokio::select! {
                () = follower.run() => {}
                () = shutdown.cancelled() => {}
            }
        });
        (operation, heard)
    }
}

/// Notes in the log that a result was collected, so that no other front end offers it as new.
#[derive(Debug)]
struct CollectedJournal {
    front: FrontEnd,
}

impl Journal for CollectedJournal {
    fn changed(&self, _: &Operation) {}

    fn collected(&self, operation: &Operation) {
        let (front, id) = (self.front.clone(), operation.id().clone());
        let owner = owner_of(operation.principal().name());
        // A note of no consequence: if it is lost, a result is offered twice.
        tokio::spawn(async move { front.note_collected((&owner, id.as_str())).await });
    }
}
