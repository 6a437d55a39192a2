//! What the two sides of a front share: each other.
#![expect(
    deprecated,
    reason = "logging levels are deprecated, and clients still use them"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ErrorData, GetMeta, LoggingLevel, ProgressNotificationParam, ProtocolVersion,
    RequestMetaObject, ServerNotification, ServerPeerInfo, ServerResult,
};
use rmcp::service::{Peer, RequestContext, ServiceError, SubscriptionSendError, SubscriptionSink};
use rmcp::{RoleClient, RoleServer};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use crate::remote::Nudge;
use crate::session::progress::ProgressRoutes;
use crate::session::request::request;
use crate::session::{CREDENTIALS_REFUSED, Connection, Failure, describe_call};

/// How long a request waits for a remote server that is being connected again.
const RETURN_PATIENCE: Duration = Duration::from_secs(60);
/// How long a refused request waits for the link that would help it.
const OFFER_PATIENCE: Duration = Duration::from_secs(5);
/// How long the requests of a client that has left are worked on. rmcp writes what is answered within five seconds, so
/// this leaves time to answer those that nothing came of.
const LAST_ANSWERS: Duration = Duration::from_secs(4);
/// Progress that waits to be written to the client; more than this is a burst nobody reads.
const PROGRESS_BUFFER: usize = 1024;
/// Metadata that belongs to one hop only.
const HOP_KEYS: [&str; 4] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
];

#[derive(Debug)]
pub(super) struct Relay {
    standing: watch::Sender<Standing>,
    /// What requests have to say to whoever keeps the connection.
    nudges: mpsc::Sender<Nudge>,
    /// How to log in where no link is shown; none if the user brings the credentials.
    login_advice: Option<String>,
    /// What the remote server said about itself last.
    info: Mutex<Option<Arc<ServerPeerInfo>>>,
    /// The client, once it has said something.
    pub(super) client: OnceLock<Peer<RoleServer>>,
    /// Cancelled when the client will say nothing more. It may still read.
    pub(super) client_left: CancellationToken,
    /// Subscriptions of a modern client.
    sinks: Mutex<Vec<SubscriptionSink>>,
    /// Resources the client watches, each with what carries a modern server's updates; asked for again after a
    /// reconnect.
    pub(super) watched: Mutex<BTreeMap<String, Option<DropGuard>>>,
    /// What the client set once. A legacy server hears it again after a reconnect, a modern one with every request.
    pub(super) log_level: Mutex<Option<LoggingLevel>>,
}

/// How the remote server stands.
#[derive(Debug, Clone)]
pub(super) enum Standing {
    /// Requests wait for it.
    Connecting,
    Connected(Remote),
    /// Somebody has to open this page.
    LoginOffered(Url),
    /// The text says what happened, and what to do. Tried again from time to time, and for every request.
    Down(String),
}

/// The remote server, while it is connected.
#[derive(Debug, Clone)]
pub(super) struct Remote {
    pub(super) peer: Peer<RoleClient>,
    routes: ProgressRoutes,
}

impl Relay {
    pub(super) fn new(login_advice: Option<String>) -> (Self, mpsc::Receiver<Nudge>) {
        // One waiting nudge is as good as ten.
        let (nudges, received) = mpsc::channel(1);
        let relay = Self {
            standing: watch::Sender::new(Standing::Connecting),
            nudges,
            login_advice,
            info: Mutex::default(),
            client: OnceLock::new(),
            client_left: CancellationToken::new(),
            sinks: Mutex::default(),
            watched: Mutex::default(),
            log_level: Mutex::default(),
        };
        (relay, received)
    }

    pub(super) fn attach(&self, connection: &Connection) {
        let peer = connection.peer.clone();
        *lock(&self.info) = peer.peer_info();
        self.stand(Standing::Connected(Remote {
            peer,
            routes: connection.routes.clone(),
        }));
    }

    pub(super) fn stand(&self, standing: Standing) {
        self.standing.send_replace(standing);
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
        if let Some(level) = lock(&self.log_level).filter(|_| remote.is_modern()) {
            message.get_meta_mut().extend(log_level_meta(level));
        }
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
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.failed(&error).await),
        }
    }

    /// What the client is told of a request that failed; a login that it takes is asked for.
    async fn failed(&self, error: &ServiceError) -> ErrorData {
        let Some(Failure::LoginRequired(challenge)) = describe_call(error) else {
            return as_protocol_error(error);
        };
        let Some(advice) = &self.login_advice else {
            return ErrorData::internal_error(format!("remote server: {CREDENTIALS_REFUSED}"), None);
        };
        let mut standing = self.standing.subscribe();
        let _ = self.nudges.try_send(Nudge::LoginRequired(challenge));
        let offered = standing.wait_for(|standing| matches!(standing, Standing::LoginOffered(_)));
        match tokio::time::timeout(OFFER_PATIENCE, offered).await {
            Ok(Ok(offered)) => trouble(&offered),
            _ => ErrorData::internal_error(format!("the remote server wants a login: {advice}"), None),
        }
    }

    /// Works on a request, but not for a client that has left: it is told that there is no answer while it may read on.
    pub(super) async fn while_heard<T>(
        &self,
        work: impl Future<Output = Result<T, ErrorData>>,
    ) -> Result<T, ErrorData> {
        let too_late = async {
            self.client_left.cancelled().await;
            tokio::time::sleep(LAST_ANSWERS).await;
        };
        tokio::select! {
            done = work => done,
            () = too_late => Err(match &*self.standing.borrow() {
                Standing::Connected(_) => ErrorData::internal_error(
                    "remote server: it did not answer before the client left, and the request may or may not have run",
                    None,
                ),
                standing => trouble(standing),
            }),
        }
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

    /// Forgets a subscription that is over, and returns the resources that nobody watches any more.
    pub(super) fn unsubscribe(&self, ended: &SubscriptionSink) -> Vec<String> {
        // Both locks at once: a subscription that begins now is seen here, or finds nothing and watches anew.
        let mut sinks = lock(&self.sinks);
        let mut watched = lock(&self.watched);
        sinks.retain(|sink| sink.id() != ended.id());
        let is_wanted = |uri: &String| sinks.iter().any(|sink| resources(sink).contains(uri));
        let unwanted = resources(ended).iter().filter(|uri| !is_wanted(uri));
        unwanted
            .filter(|uri| watched.remove(*uri).is_some())
            .cloned()
            .collect()
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
        let mut standing = self.standing.subscribe();
        let mut nudged = false;
        let waiting = async {
            loop {
                match &*standing.borrow_and_update() {
                    Standing::Connected(remote) => return Ok(remote.clone()),
                    Standing::Connecting => {}
                    Standing::Down(_) if !nudged => {
                        let _ = self.nudges.try_send(Nudge::Retry);
                        nudged = true;
                    }
                    standing @ (Standing::Down(_) | Standing::LoginOffered(_)) => {
                        return Err(trouble(standing));
                    }
                }
                if standing.changed().await.is_err() {
                    return Err(trouble(&Standing::Connecting));
                }
            }
        };
        let waited = tokio::time::timeout(RETURN_PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| Err(trouble(&Standing::Connecting)))
    }

    pub(super) fn current(&self) -> Option<Remote> {
        match &*self.standing.borrow() {
            Standing::Connected(remote) => Some(remote.clone()),
            Standing::Connecting | Standing::LoginOffered(_) | Standing::Down(_) => None,
        }
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

/// The resources whose updates a subscription is for.
pub(super) fn resources(sink: &SubscriptionSink) -> &[String] {
    let resources = sink.accepted().resource_subscriptions.as_ref();
    resources.map_or(&[], Vec::as_slice)
}

pub(super) fn is_modern(version: Option<&ProtocolVersion>) -> bool {
    version.is_some_and(|version| *version >= ProtocolVersion::NO_INITIALIZE)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The remote server's own error as it is; anything else as an internal error that says what happened.
pub(super) fn as_protocol_error(error: &ServiceError) -> ErrorData {
    let failure = match (describe_call(error), error) {
        (Some(failure), _) => failure,
        (None, ServiceError::McpError(error)) => return error.clone(),
        (None, error) => Failure::Lost(error.to_string()),
    };
    let what = match &failure {
        Failure::Broken(_) => "it failed during the request, which may or may not have run: ",
        Failure::Lost(_) => "it was lost during the request, which may or may not have run: ",
        Failure::Unreachable(_)
        | Failure::LoginRequired(_)
        | Failure::NoToken(_)
        | Failure::TokenFile(_)
        | Failure::Refused(_) => "",
    };
    ErrorData::internal_error(format!("remote server: {what}{}", failure.reason()), None)
}

/// Why the remote server cannot be asked.
fn trouble(standing: &Standing) -> ErrorData {
    let text = match standing {
        Standing::LoginOffered(link) => format!("the remote server wants a login: open {link}"),
        Standing::Down(reason) => format!("the remote server is not available: {reason}"),
        Standing::Connecting | Standing::Connected(_) => {
            "the remote server is not available: it is still being connected".to_owned()
        }
    };
    ErrorData::internal_error(text, None)
}

/// The level a request asks log messages at, in a form that a request to a modern server carries.
fn log_level_meta(level: LoggingLevel) -> RequestMetaObject {
    let mut meta = RequestMetaObject::new();
    if let Ok(level) = serde_json::to_value(level) {
        let key = "io.modelcontextprotocol/logLevel".to_owned();
        meta.0.0.insert(key, level);
    }
    meta
}
