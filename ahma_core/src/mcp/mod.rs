//! The MCP server; the only module that knows rmcp.
//!
//! [`serve`] answers one client on a pair of streams until the client goes or `shutdown` is asked for. A request goes
//! from `server` to the module that answers it: `call` for tools of the catalogue, `builtin` for our own, `remote` for
//! those of other servers, `resources`.
//! `convert` makes results and `error` errors. Nothing here starts a process or reads a
//! file; operations belong to the engine and outlive the request that started them.

mod audience;
mod builtin;
mod call;
mod changes;
mod convert;
mod error;
mod feed;
mod owner;
mod progress;
#[cfg(feature = "client")]
mod remote;
#[cfg(not(feature = "client"))]
#[path = "no_remote.rs"]
mod remote;
mod report;
mod resources;
mod server;
mod tasks;
mod wire;
mod wording;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rmcp::{
    RoleServer, ServiceExt as _,
    model::ProtocolVersion,
    service::{RequestContext, ServerInitializeError},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::broadcast::error::RecvError,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

#[cfg(feature = "bridge")]
pub(crate) use self::builtin::LONGEST_WAIT_SECONDS;
pub(crate) use self::builtin::{BuiltinTool, descriptions as builtin_tools};
pub use self::remote::Remotes;

use self::{
    audience::{Audience, Change},
    convert::Results,
    server::Handler,
    wire::LineTransport,
};
use crate::{
    call::PlanSettings,
    operation::Engine,
    toolbox::{Toolbox, ToolboxHandle},
};

/// What the server needs to know besides tools and engine.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    pub plan: PlanSettings,
    /// How long a synchronous call waits before it answers with an operation id.
    pub sync_wait: Duration,
    /// No scope is known yet: every call is refused.
    pub deferred: bool,
    pub sandbox: SandboxNote,
}

/// What clients are told about the wall around commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxNote {
    /// How commands are confined: `full`, `core` or `off`.
    pub tier: String,
    pub scope: PathBuf,
    pub network: String,
    /// Something a client should not overlook.
    pub warning: Option<String>,
}

/// What the handlers of all requests share.
#[derive(Debug)]
struct Inner {
    settings: ServerSettings,
    engine: Engine,
    toolbox: ToolboxHandle,
    remotes: Option<Arc<Remotes>>,
    results: Results,
    instructions: String,
    audience: Audience,
    /// The list of tools that clients were last shown or told about.
    shown: Mutex<Option<Arc<Toolbox>>>,
    log_level: feed::ClientLevels,
    task_store: tasks::Store,
    shutdown: CancellationToken,
    /// What goes on beside requests; all of it ends with `shutdown`.
    tasks: TaskTracker,
}

/// Serves one client until it is gone or `shutdown` is cancelled; cancels `shutdown` itself in the first case.
///
/// Operations that still run and remote servers are left to the caller, who owns them.
pub async fn serve<R, W>(
    (input, output): (R, W),
    settings: ServerSettings,
    engine: Engine,
    (toolbox, remotes): (ToolboxHandle, Option<Arc<Remotes>>),
    shutdown: CancellationToken,
) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let inner = Arc::new(Inner {
        results: Results::new(&settings.sandbox),
        instructions: instructions(&settings.sandbox),
        audience: Audience::default(),
        shown: Mutex::default(),
        log_level: feed::ClientLevels::default(),
        task_store: tasks::Store::default(),
        tasks: TaskTracker::new(),
        settings,
        engine,
        toolbox,
        remotes,
        shutdown: shutdown.clone(),
    });
    inner.spawn(tell_of_tools(inner.clone()));
    inner.spawn(tell_of_operations(inner.clone()));
    inner.spawn(remote::follow(inner.clone()));

    let transport = LineTransport::new(input, output, shutdown.clone());
    let served = match (Handler { inner: inner.clone() })
        .serve_with_ct(transport, shutdown.clone())
        .await
    {
        Ok(running) => running.waiting().await.map(drop).map_err(ServeError::Crashed),
        // The client went, or we were asked to end, before there was a session.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(ServeError::Handshake(Box::new(error))),
    };
    shutdown.cancel();
    inner.task_store.shutdown();
    inner.tasks.close();
    inner.tasks.wait().await;
    served
}

/// Why serving a client ended badly.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the session could not be opened")]
    Handshake(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the service ended unexpectedly")]
    Crashed(#[source] tokio::task::JoinError),
}

impl Inner {
    /// Runs `task` beside the requests, until it is done or the server ends.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let shutdown = self.shutdown.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = task => {}
                () = shutdown.cancelled() => {}
            }
        });
    }

    /// Remembers which list of tools clients know.
    fn note_shown(&self, toolbox: Arc<Toolbox>) -> Option<Arc<Toolbox>> {
        self.shown
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(toolbox)
    }

    fn is_anything_shown(&self) -> bool {
        self.shown
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }
}

/// Tells clients when the list of tools is no longer the one they know.
async fn tell_of_tools(server: Arc<Inner>) {
    let mut changes = server.toolbox.changes();
    while changes.changed().await.is_ok() {
        let toolbox = changes.borrow_and_update().clone();
        let still_starting = toolbox.loads <= 1 && toolbox.probing > 0;
        if still_starting && !server.is_anything_shown() {
            continue;
        }
        let before = server.note_shown(toolbox.clone());
        if before.is_some_and(|before| !before.offers_the_same_as(&toolbox)) {
            server.audience.tell(Change::ToolList).await;
        }
        resources::tell_of_tools(&server).await;
    }
}

/// Tells clients that subscribed when operations change.
async fn tell_of_operations(server: Arc<Inner>) {
    let mut changes = server.engine.changes();
    loop {
        match changes.recv().await {
            Ok(change) => resources::tell_of(&server, &change).await,
            // Some were missed while a client did not read, and the end of an operation is told only once.
            Err(RecvError::Lagged(_)) => resources::tell_of_all(&server).await,
            Err(RecvError::Closed) => return,
        }
    }
}

/// Whether a request is of the era without sessions.
fn is_modern(ctx: &RequestContext<RoleServer>) -> bool {
    ctx.protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// What a model should know about this server.
fn instructions(sandbox: &SandboxNote) -> String {
    let mut text = format!(
        "Tools run command-line programs inside {}. A tool that runs in the background says so, and a call of it \
         returns an operation id at once; other calls do so only if they take long. \
         Do other work meanwhile, then collect results with `await`. `status` shows what runs and what is \
         missing, `output` reads long output and, with `what: findings`, everything a tool found, `cancel` stops an operation.",
        sandbox.scope.display()
    );
    if let Some(warning) = &sandbox.warning {
        text.push_str(" Warning: ");
        text.push_str(warning);
    }
    text
}
