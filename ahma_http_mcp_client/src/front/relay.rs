//! What the two sides of a front share: each other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ErrorData, GetMeta, ProgressNotificationParam, ProtocolVersion, RequestMetaObject,
    ServerNotification, ServerPeerInfo, ServerResult,
};
use rmcp::service::{Peer, RequestContext, ServiceError, SubscriptionSendError, SubscriptionSink};
use rmcp::{ClientHandler, RoleClient, RoleServer};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::DropGuard;

use crate::session::progress::ProgressRoutes;
use crate::session::request::request;
use crate::session::{Connection, describe_call};

/// How long a request waits for a remote server that is being connected again.
const RETURN_PATIENCE: Duration = Duration::from_secs(60);
/// Progress that waits to be written to the client; more than this is a burst nobody reads.
const PROGRESS_BUFFER: usize = 1024;
/// Metadata that belongs to one hop only.
const HOP_KEYS: [&str; 4] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
];

#[derive(Debug, Default)]
pub(super) struct Relay {
    remote: watch::Sender<Option<Remote>>,
    /// What the remote server said about itself last.
    info: Mutex<Option<Arc<ServerPeerInfo>>>,
    /// The client, once it has said something.
    pub(super) client: OnceLock<Peer<RoleServer>>,
    /// Subscriptions of a modern client.
    sinks: Mutex<Vec<SubscriptionSink>>,
    /// Resources the client watches, each with what carries a modern server's updates; asked for again after a
    /// reconnect.
    pub(super) watched: Mutex<BTreeMap<String, Option<DropGuard>>>,
}

/// The remote server, while it is connected.
#[derive(Debug, Clone)]
pub(super) struct Remote {
    pub(super) peer: Peer<RoleClient>,
    routes: ProgressRoutes,
}

impl Relay {
    pub(super) fn attach<H: ClientHandler>(&self, connection: &Connection<H>) {
        let peer = connection.service.peer().clone();
        *lock(&self.info) = peer.peer_info();
        self.remote.send_replace(Some(Remote {
            peer,
            routes: connection.routes.clone(),
        }));
    }

    pub(super) fn detach(&self) {
        self.remote.send_replace(None);
    }

    pub(super) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        lock(&self.info).clone()
    }

    /// Carries one request across, with its progress and its cancellation.
    pub(super) async fn forward(
        &self,
        mut message: ClientRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let remote = self.remote().await?;
        let mut meta = context.meta.clone();
        for key in HOP_KEYS {
            meta.0.0.remove(key);
        }
        message.get_meta_mut().extend(meta);
        let token = context.meta.get_progress_token();
        let (sink, mut progress) = mpsc::channel::<ProgressNotificationParam>(PROGRESS_BUFFER);
        let sink = token.is_some().then_some(sink);
        let asked = request(&remote.peer, &remote.routes, message, sink, &context.ct);
        let carried = async {
            while let Some(mut step) = progress.recv().await {
                if let Some(token) = &token {
                    step.progress_token = token.clone();
                    let _ = context.peer.notify_progress(step).await;
                }
            }
        };
        // With the answer the route and its sender are gone, so the loop ends after the last progress.
        let (answer, ()) = tokio::join!(asked, carried);
        answer.map_err(|error| as_protocol_error(&error))
    }

    /// Tells the client that something changed at the server.
    pub(super) async fn announce(&self, notification: ServerNotification) {
        let sinks = lock(&self.sinks).clone();
        for sink in &sinks {
            if let Err(SubscriptionSendError::SubscriptionClosed) = sink.send(notification.clone()).await {
                lock(&self.sinks).retain(|kept| kept.id() != sink.id());
            }
        }
        if let Some(client) = self.legacy_client() {
            let _ = client.send_notification(notification).await;
        }
    }

    pub(super) fn subscribe(&self, sink: SubscriptionSink) {
        lock(&self.sinks).push(sink);
    }

    /// The client, if it is one that takes messages unasked.
    pub(super) fn legacy_client(&self) -> Option<&Peer<RoleServer>> {
        self.client.get().filter(|client| {
            client
                .peer_info()
                .is_some_and(|info| info.protocol_version < ProtocolVersion::NO_INITIALIZE)
        })
    }

    /// The remote server, waited for while it is being connected again.
    pub(super) async fn remote(&self) -> Result<Remote, ErrorData> {
        let mut remote = self.remote.subscribe();
        let waiting = tokio::time::timeout(RETURN_PATIENCE, remote.wait_for(Option::is_some));
        match waiting.await {
            Ok(Ok(remote)) => Ok(remote.clone()).and_then(|remote| remote.ok_or_else(gone)),
            _ => Err(gone()),
        }
    }

    pub(super) fn current(&self) -> Option<Remote> {
        self.remote.borrow().clone()
    }
}

impl Remote {
    pub(super) fn is_modern(&self) -> bool {
        is_modern(
            self.peer
                .peer_info()
                .map(|info| info.protocol_version.clone())
                .as_ref(),
        )
    }
}

pub(super) fn is_modern(version: Option<&ProtocolVersion>) -> bool {
    version.is_some_and(|version| *version >= ProtocolVersion::NO_INITIALIZE)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The remote server's own error as it is; anything else as an internal error that says what happened.
pub(super) fn as_protocol_error(error: &ServiceError) -> ErrorData {
    match (describe_call(error), error) {
        (Some(failure), _) => ErrorData::internal_error(format!("remote server: {}", failure.reason()), None),
        (None, ServiceError::McpError(error)) => error.clone(),
        (None, error) => ErrorData::internal_error(format!("remote server: {error}"), None),
    }
}

fn gone() -> ErrorData {
    ErrorData::internal_error("the remote server is not connected", None)
}

/// The level a request asks log messages at, in a form that a request to a modern server carries.
pub(super) fn log_level_meta(level: &serde_json::Value) -> RequestMetaObject {
    let mut meta = RequestMetaObject::new();
    meta.0
        .0
        .insert("io.modelcontextprotocol/logLevel".to_owned(), level.clone());
    meta
}
