//! Passes requests and notifications from one side of a front to the other.
#![expect(
    deprecated,
    reason = "logging levels are deprecated, and clients still use them"
)]

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use ahma_common::contract::{
    META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_PROTOCOL_VERSION,
};
use parking_lot::Mutex;
use rmcp::{
    RoleServer,
    model::{
        ClientRequest, ClientResult, ErrorCode, ErrorData, GetMeta, LoggingLevel, ProgressNotificationParam,
        ProtocolVersion, RequestMetaObject, ServerNotification, ServerPeerInfo, ServerRequest, ServerResult,
    },
    service::{Peer, RequestContext, ServiceError, SubscriptionSendError},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::subscriptions::Subscriptions;
use crate::{
    error::RemoteError,
    remote::{LiveConnection, ServerHandle},
};

/// Longest work on the requests of a client that has left. rmcp writes what is answered within five seconds, so this
/// leaves time to answer those that nothing came of.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_secs(4);
/// Progress that waits to be written to the client; more than this is a burst that no one reads.
const PROGRESS_BUFFER: usize = 1024;
/// Metadata that belongs to one hop only.
const HOP_KEYS: [&str; 4] = [
    "progressToken",
    META_PROTOCOL_VERSION,
    META_CLIENT_INFO,
    META_CLIENT_CAPABILITIES,
];

/// Both sides of a front.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) server: Arc<ServerHandle>,
    /// The description the server gave of itself last.
    pub(super) server_info: Mutex<Option<Arc<ServerPeerInfo>>>,
    /// The client, once it has sent something.
    pub(super) client: OnceLock<Peer<RoleServer>>,
    /// Cancelled when the client has sent its last message. It may still read.
    pub(super) client_left: CancellationToken,
    pub(super) subscriptions: Subscriptions,
    /// Set once by the client. A legacy server hears it again after a reconnect, a modern one with every request.
    pub(super) log_level: Mutex<Option<LoggingLevel>>,
}

impl Relay {
    pub(super) fn new(server: Arc<ServerHandle>) -> Self {
        Self {
            server,
            server_info: Mutex::default(),
            client: OnceLock::new(),
            client_left: CancellationToken::new(),
            subscriptions: Subscriptions::default(),
            log_level: Mutex::default(),
        }
    }

    /// Sends one of the client's requests to the server, with its progress and its cancellation.
    pub(super) async fn forward(
        &self,
        mut message: ClientRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let connection = self.connection().await?;
        *message.get_meta_mut() = self.meta_for(&connection, context);
        let token = context.meta.get_progress_token();
        let (sink, mut progress) = mpsc::channel::<ProgressNotificationParam>(PROGRESS_BUFFER);
        let sink = token.is_some().then_some(sink);
        let asked = self.server.request(&connection, message, sink, &context.ct);
        let reported = async {
            while let Some(mut step) = progress.recv().await {
                if let Some(token) = &token {
                    step.progress_token = token.clone();
                    let _ = context.peer.notify_progress(step).await;
                }
            }
        };
        // With the answer the route and its sender are gone, so the loop ends after the last progress.
        let (answer, ()) = tokio::join!(asked, reported);
        answer.map_err(as_protocol_error)
    }

    /// The client's metadata without what belongs to its own hop.
    fn meta_for(
        &self,
        connection: &LiveConnection,
        context: &RequestContext<RoleServer>,
    ) -> RequestMetaObject {
        let mut meta = context.meta.clone();
        meta.0.0.retain(|key, _| !HOP_KEYS.contains(&key.as_str()));
        if let Some(level) = self.log_level.lock().filter(|_| connection.is_modern())
            && let Ok(level) = serde_json::to_value(level)
        {
            meta.0.0.entry(META_LOG_LEVEL.to_owned()).or_insert(level);
        }
        meta
    }

    /// The server, waited for while it is being connected.
    pub(super) async fn connection(&self) -> Result<LiveConnection, ErrorData> {
        self.server.connection().await.map_err(as_protocol_error)
    }

    /// Works on a request, but not for a client that has left: it gets an error while it may still read.
    pub(super) async fn while_heard<T>(
        &self,
        work: impl Future<Output = Result<T, ErrorData>>,
    ) -> Result<T, ErrorData> {
        let too_late = async {
            self.client_left.cancelled().await;
            tokio::time::sleep(LAST_ANSWERS_TIMEOUT).await;
        };
        tokio::select! {
            done = work => done,
            () = too_late => Err(match self.server.current_trouble() {
                Some(trouble) => as_protocol_error(trouble),
                None => ErrorData::internal_error(
                    "the remote server did not answer before the client left, and the request may or may not have run",
                    None,
                ),
            }),
        }
    }

    /// Sends one of the server's requests to the client.
    pub(super) async fn ask_client(&self, request: ServerRequest) -> Result<ClientResult, ErrorData> {
        let Some(client) = self.legacy_client() else {
            let code = ErrorCode::METHOD_NOT_FOUND;
            return Err(ErrorData::new(
                code,
                "the client cannot be asked during a call",
                None,
            ));
        };
        let answer = client.send_request(request).await;
        answer.map_err(|error| match error {
            ServiceError::McpError(error) => error,
            error => ErrorData::internal_error(format!("the client did not answer: {error}"), None),
        })
    }

    /// Passes a change at the server on to the client.
    pub(super) async fn announce(&self, notification: ServerNotification) {
        for sink in self.subscriptions.sinks() {
            if let Err(SubscriptionSendError::SubscriptionClosed) = sink.send(notification.clone()).await {
                self.subscriptions.forget(&sink);
            }
        }
        if let Some(client) = self.legacy_client() {
            let _ = client.send_notification(notification).await;
        }
    }

    /// The client, if it is one that takes messages unasked.
    fn legacy_client(&self) -> Option<&Peer<RoleServer>> {
        let client = self.client.get()?;
        let info = client.peer_info()?;
        (!is_modern(&info.protocol_version)).then_some(client)
    }
}

pub(super) fn is_modern(version: &ProtocolVersion) -> bool {
    *version >= ProtocolVersion::NO_INITIALIZE
}

/// The remote server's own error unchanged; anything else as an internal error that says what happened.
pub(super) fn as_protocol_error(error: RemoteError) -> ErrorData {
    match error {
        RemoteError::Protocol(error) => error,
        error => ErrorData::internal_error(error.to_string(), None),
    }
}
