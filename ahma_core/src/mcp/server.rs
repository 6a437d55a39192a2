//! One server: the state that all requests share, its start and its end, and notifications of changes.

use std::{path::PathBuf, sync::Arc, time::Duration};

use ahma_common::error_chain;
use rmcp::{ServiceExt as _, service::ServerInitializeError};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Notify, broadcast::error::RecvError, watch},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    bridge_news,
    client::Caller,
    convert::ResultBuilder,
    facts,
    handler::Handler,
    lobby::{Arrival, Lobby, ShownTools},
    log_messages::LogLevels,
    remote::{self, Remotes},
    resources,
    subscriptions::{Change, Subscriptions},
    tasks::TaskStore,
    transport::LineTransport,
};
use crate::{
    call::PlanSettings,
    catalog::Expose,
    history::History,
    operation::{Cluster, Engine, Operation, Principal, Whose},
    toolbox::ToolboxHandle,
};

/// Settings of the server besides tools and engine.
#[derive(Debug, Clone)]
pub(crate) struct ServerSettings {
    pub(crate) plan: PlanSettings,
    /// The principal of requests that name none.
    pub(crate) principal: Principal,
    /// A bridge in front of the server wants news of its operations.
    pub(crate) has_bridge: bool,
    /// The history, if one is kept.
    pub(crate) history: Option<History>,
    /// Other hosts that run all calls, if there are such.
    pub(crate) cluster: Option<Arc<dyn Cluster>>,
    /// Time after which a call of a tool that runs in the background answers with an operation id.
    pub(crate) inline_wait: Duration,
    /// Time after which a synchronous call answers with an operation id; none if it depends on the client.
    pub(crate) sync_wait: Option<Duration>,
    pub(crate) results: ResultForm,
    /// No scope is known yet: every call is refused.
    pub(crate) deferred: bool,
    pub(crate) sandbox: SandboxNote,
    /// The sandbox report, for people.
    pub(crate) sandbox_report: String,
}

/// Parts of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultForm {
    /// Text only: it reaches every model, and exactly once.
    Text,
    /// Text, and the same as data.
    Structured,
}

/// The description of the sandbox for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SandboxNote {
    /// `full`, `core` or `off`.
    pub(crate) tier: String,
    pub(crate) scope: PathBuf,
    pub(crate) network: String,
    /// Something a client should not overlook.
    pub(crate) warning: Option<String>,
    /// The pool whose workers run all commands, if there is one. Each has its own sandbox: of the above, only the scope is
    /// known here.
    pub(crate) pool: Option<String>,
}

/// State that all requests share.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) settings: ServerSettings,
    pub(super) engine: Engine,
    pub(super) toolbox: ToolboxHandle,
    pub(super) remotes: Option<Arc<Remotes>>,
    pub(super) results: ResultBuilder,
    pub(super) subscriptions: Arc<Subscriptions>,
    pub(super) shown: Arc<ShownTools>,
    pub(super) log_levels: LogLevels,
    pub(super) task_store: TaskStore,
    pub(super) shutdown: CancellationToken,
    /// Background work; all of it ends with `shutdown`.
    tasks: TaskTracker,
}

/// Everything for answers before the sandbox is set up.
#[derive(Debug)]
pub(crate) struct Greeting {
    /// The sandbox as it is going to be; its tier does not matter here.
    pub(crate) sandbox: SandboxNote,
    pub(crate) expose: Expose,
    pub(crate) toolbox: ToolboxHandle,
    /// Remote servers may have tools, too.
    pub(crate) has_remotes: bool,
    /// Notified when a request needs the sandbox.
    pub(crate) needed: Arc<Notify>,
}

/// The parts that calls need, once they are ready.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) settings: ServerSettings,
    pub(crate) engine: Engine,
    pub(crate) remotes: Option<Arc<Remotes>>,
}

/// Serves one client until it is gone or `shutdown` is cancelled; cancels `shutdown` itself in the first case. `initialize`
/// and `tools/list` are answered at once; everything else waits for `opening`. If that gives nothing, the server ends.
///
/// The caller owns running operations and remote servers, and ends them.
pub(crate) async fn serve<R, W>(
    (input, output): (R, W),
    greeting: Greeting,
    opening: impl Future<Output = Option<Opened>>,
    shutdown: CancellationToken,
) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (arrival, server) = watch::channel(Arrival::Awaited);
    let shown = Arc::new(ShownTools::default());
    let subscriptions = Arc::new(Subscriptions::default());
    let lobby = Arc::new(Lobby {
        instructions: instructions(&greeting),
        toolbox: greeting.toolbox.clone(),
        has_remotes: greeting.has_remotes,
        shown: Arc::clone(&shown),
        subscriptions: Arc::clone(&subscriptions),
        server,
        needed: greeting.needed,
    });
    let open = async {
        let Some(opened) = opening.await else {
            arrival.send_replace(Arrival::Failed);
            shutdown.cancel();
            return None;
        };
        let server = Server::open(opened, greeting.toolbox, shown, subscriptions, shutdown.clone());
        arrival.send_replace(Arrival::Open(Arc::clone(&server)));
        Some(server)
    };
    let transport = LineTransport::new(input, output, shutdown.clone());
    let answer = async {
        match (Handler { lobby })
            .serve_with_ct(transport, shutdown.clone())
            .await
        {
            Ok(running) => running.waiting().await.map(drop).map_err(ServeError::Crashed),
            // The client left, or a signal came, before there was a session.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
            Err(error) => Err(ServeError::Handshake(Box::new(error))),
        }
    };
    // The failure of a sandbox is reported even if the client has gone.
    let (server, served) = tokio::join!(open, answer);
    shutdown.cancel();
    if let Some(server) = server {
        server.task_store.shutdown();
        server.tasks.close();
        server.tasks.wait().await;
    }
    served
}

/// Reason why serving a client failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error("the session could not be opened")]
    Handshake(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the service ended unexpectedly")]
    Crashed(#[source] tokio::task::JoinError),
}

impl Server {
    fn open(
        opened: Opened,
        toolbox: ToolboxHandle,
        shown: Arc<ShownTools>,
        subscriptions: Arc<Subscriptions>,
        shutdown: CancellationToken,
    ) -> Arc<Self> {
        let Opened {
            settings,
            engine,
            remotes,
        } = opened;
        let server = Arc::new(Self {
            results: ResultBuilder::new(&settings.sandbox),
            subscriptions,
            shown,
            log_levels: LogLevels::default(),
            task_store: TaskStore::default(),
            tasks: TaskTracker::new(),
            settings,
            engine,
            toolbox,
            remotes,
            shutdown,
        });
        server.spawn(announce_tools(server.clone()));
        server.spawn(announce_operations(server.clone()));
        if server.settings.has_bridge {
            server.spawn(bridge_news::follow(server.clone()));
        }
        server.spawn(remote::follow(server.clone()));
        server.spawn(facts::follow(server.clone()));
        server
    }

    /// Runs `task` in the background, until it is done or the server ends.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks
            .spawn(self.shutdown.clone().run_until_cancelled_owned(task));
    }

    /// The operations of a caller that names none: those of its session, and on a cluster those of its principal, whose
    /// sessions may be at other front ends.
    pub(super) async fn operations_of(&self, caller: &Caller) -> Vec<Operation> {
        let Some(cluster) = &self.settings.cluster else {
            return self.engine.operations_of(&caller.client);
        };
        cluster.recall(&caller.principal).await;
        let mut operations = self.engine.operations();
        operations.retain(|operation| operation.principal() == &caller.principal);
        operations
    }

    /// An operation of a principal, from memory, from the cluster or from the history. Those of others do not exist for it.
    pub(super) async fn operation_of(&self, principal: &Principal, id: &str) -> Option<Operation> {
        if let Some(operation) = self.engine.get_for(principal, id) {
            return Some(operation);
        }
        if let Some(cluster) = &self.settings.cluster {
            return cluster.find(Whose::One(principal), id).await;
        }
        let history = self.settings.history.as_ref()?;
        history.find(principal, id).await.unwrap_or_else(|error| {
            tracing::warn!(error = %error_chain(&error), "the history cannot be read");
            None
        })
    }
}

/// Notifies clients of changes of the list of tools.
async fn announce_tools(server: Arc<Server>) {
    let mut changes = server.toolbox.changes();
    // The list may have been shown, and changed, while the sandbox was being set up.
    changes.mark_changed();
    while changes.changed().await.is_ok() {
        let toolbox = changes.borrow_and_update().clone();
        if toolbox.loads > 0 && server.shown.supersede(&toolbox) {
            server.subscriptions.notify(Change::ToolList).await;
        }
        resources::notify_status(&server).await;
    }
}

/// Notifies subscribers of changes of operations.
async fn announce_operations(server: Arc<Server>) {
    let mut changes = server.engine.changes();
    loop {
        match changes.recv().await {
            Ok(change) => resources::notify_operation(&server, &change).await,
            // Some were missed while a client did not read, and the end of an operation is announced only once.
            Err(RecvError::Lagged(_)) => resources::notify_all(&server).await,
            Err(RecvError::Closed) => return,
        }
    }
}

/// Introduction of the server for a model, with everything that no description of a tool says.
fn instructions(greeting: &Greeting) -> String {
    let SandboxNote {
        scope,
        network,
        warning,
        pool,
        ..
    } = &greeting.sandbox;
    let network = match (pool, network.as_str()) {
        (Some(_), _) | (None, "open") => String::new(),
        (None, other) => format!(" Network: {other}."),
    };
    let more = match greeting.expose {
        Expose::All => "",
        Expose::Core | Expose::Search => " ahma_find finds tools that are not listed, ahma_call runs them.",
    };
    let warning = warning.as_ref().map(|warning| format!(" Warning: {warning}"));
    format!(
        "Runs this project's commands and edits its files in a sandbox: use it to build, test, lint, search, commit and \
         run anything long. Commands write below {} and in a private /tmp that lasts between calls; most of the home \
         directory cannot be read. They see PATH, HOME and toolchain variables, TERM=dumb, no CI; `env` sets \
         more.{network} A call answers when its command ends, or after some seconds with an operation id: do other \
         work, then `await` collects the result. Every tool takes env, working_directory, timeout_seconds and \
         execution_mode (synchronous waits longer, asynchronous not at all).{more}{}",
        scope.display(),
        warning.unwrap_or_default()
    )
}
