//! The side that faces the remote server: its notifications go to the client, its questions too.
#![expect(
    deprecated,
    reason = "roots, sampling, logging and resource subscriptions are deprecated, and clients still use them"
)]

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientConfig, ClientRequest, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ErrorCode, ErrorData, InputRequest, ListRootsResult, LoggingMessageNotification,
    LoggingMessageNotificationParam, PingRequest, PromptListChangedNotification,
    ResourceListChangedNotification, ResourceUpdatedNotification, ResourceUpdatedNotificationParam,
    ServerNotification, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    ToolListChangedNotification, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, ServiceError};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::relay::{Relay, Remote, as_protocol_error, lock};
use crate::remote::Nudge;
use crate::session::changes::{Change, Changes};
use crate::session::{Connection, reason_of};
use crate::transport::link::LinkEvent;

/// A server that ends every subscription at once is not asked again faster than this.
const RESUBSCRIBE_DELAY: Duration = Duration::from_secs(1);
const PING_PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub(super) struct Upstream {
    relay: Arc<Relay>,
    client: ClientConfig,
}

/// Why a connection came to its end.
pub(super) enum Ended {
    Lost(String),
    LoginRequired(String),
}

impl Upstream {
    pub(super) fn new(relay: Arc<Relay>, client: ClientConfig) -> Self {
        Self { relay, client }
    }

    fn client(&self) -> Result<&rmcp::service::Peer<rmcp::RoleServer>, ErrorData> {
        let cannot = || {
            ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                "the client cannot be asked during a call",
                None,
            )
        };
        self.relay.legacy_client().ok_or_else(cannot)
    }
}

impl ClientHandler for Upstream {
    fn get_info(&self) -> ClientConfig {
        self.client.clone()
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.client()?
            .create_message(params)
            .await
            .map_err(|error| as_protocol_error(&error))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.client()?
            .list_roots()
            .await
            .map_err(|error| as_protocol_error(&error))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.client()?
            .create_elicitation(params)
            .await
            .map_err(|error| as_protocol_error(&error))
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        // Unlike changes, log messages need no subscription in the modern era.
        if let Some(client) = self.relay.client.get() {
            let notification = LoggingMessageNotification::new(params);
            let _ = client
                .send_notification(ServerNotification::LoggingMessageNotification(notification))
                .await;
        }
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let notification = ResourceUpdatedNotification::new(params);
        self.relay
            .announce(ServerNotification::ResourceUpdatedNotification(notification))
            .await;
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        announce_tools(&self.relay).await;
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        let notification = ResourceListChangedNotification::default();
        self.relay
            .announce(ServerNotification::ResourceListChangedNotification(notification))
            .await;
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        let notification = PromptListChangedNotification::default();
        self.relay
            .announce(ServerNotification::PromptListChangedNotification(notification))
            .await;
    }
}

/// Carries changes to the client until the connection is lost; says why it was.
pub(super) async fn watch(
    relay: &Arc<Relay>,
    connection: &mut Connection,
    nudges: &mut mpsc::Receiver<Nudge>,
) -> Ended {
    let lost = |reason: &str| Ended::Lost(reason.to_owned());
    // What was said of an earlier connection has been seen to.
    while nudges.try_recv().is_ok() {}
    let peer = connection.peer.clone();
    // Beside the loop: a server that does not answer must not keep us from noticing that it is gone.
    tokio::spawn(wish_again(Arc::clone(relay)));
    let wanted = SubscriptionFilter::builder()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed();
    let mut changes = Changes::of(&peer, wanted.build());
    let mut has_missed_some = false;
    loop {
        tokio::select! {
            event = connection.events.recv() => match event {
                Some(LinkEvent::SessionRenewed | LinkEvent::Returned) => {
                    announce_tools(relay).await;
                    tokio::spawn(wish_again(Arc::clone(relay)));
                }
                // Any request opens a new one.
                Some(LinkEvent::SessionLost) => match tokio::time::timeout(PING_PATIENCE, ping(&peer)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        return lost(&format!("it forgot the session: {}", reason_of(&error)));
                    }
                    Err(_) => return lost("it forgot the session and does not answer"),
                },
                Some(LinkEvent::GaveUp) | None => return lost("it cannot be reached any more"),
            },
            Some(nudge) = nudges.recv() => if let Nudge::LoginRequired(challenge) = nudge {
                return Ended::LoginRequired(challenge);
            },
            () = connection.running.closed() => return lost("it closed the connection"),
            change = changes.next() => match change {
                Change::Announced(notification) => relay.announce(*notification).await,
                Change::Subscribed if has_missed_some => announce_tools(relay).await,
                Change::Subscribed => {}
                Change::Ended => has_missed_some = true,
            },
        }
    }
}

/// Says that the tools may be others now.
async fn announce_tools(relay: &Relay) {
    let notification = ToolListChangedNotification::default();
    relay
        .announce(ServerNotification::ToolListChangedNotification(notification))
        .await;
}

/// Asks the remote server to report changes of one resource, now and after every reconnect.
pub(super) async fn watch_resource(relay: &Arc<Relay>, uri: &str) -> Result<(), ErrorData> {
    let remote = relay.remote().await?;
    let carrier = ask_for_updates(relay, &remote, uri).await?;
    // An earlier carrier of the same updates ends here.
    lock(&relay.watched).insert(uri.to_owned(), carrier);
    Ok(())
}

/// Asks for updates of one resource in the server's own era's way. What a modern server says is carried until the value
/// is dropped; a legacy server says it unasked.
async fn ask_for_updates(
    relay: &Arc<Relay>,
    remote: &Remote,
    uri: &str,
) -> Result<Option<DropGuard>, ErrorData> {
    if !remote.is_modern() {
        let subscribed = remote.peer.subscribe(SubscribeRequestParams::new(uri)).await;
        return subscribed
            .map(|()| None)
            .map_err(|error| as_protocol_error(&error));
    }
    let peer = remote.peer.clone();
    let filter = SubscriptionFilter::builder()
        .resource_subscriptions([uri.to_owned()])
        .build();
    let mut subscription = peer
        .listen(filter.clone())
        .await
        .map_err(|error| as_protocol_error(&error))?;
    let stop = CancellationToken::new();
    let (relay, stopped) = (Arc::clone(relay), stop.clone());
    let carry = async move {
        loop {
            while let Ok(Some(notification)) = subscription.next().await {
                relay.announce(notification).await;
            }
            subscription = loop {
                tokio::time::sleep(RESUBSCRIBE_DELAY).await;
                // With the connection it ends; the next one brings another carrier.
                if peer.is_transport_closed() {
                    return;
                }
                if let Ok(again) = peer.listen(filter.clone()).await {
                    break again;
                }
            };
        }
    };
    tokio::spawn(async move { stopped.run_until_cancelled(carry).await });
    Ok(Some(stop.drop_guard()))
}

/// Asks for no more updates of a resource that nobody watches. A modern server sees the end of its stream, and one that
/// is gone has forgotten it.
pub(super) async fn end_updates(relay: &Relay, uri: &str) -> Result<(), ErrorData> {
    let Some(remote) = relay.current().filter(|remote| !remote.is_modern()) else {
        return Ok(());
    };
    let ended = remote.peer.unsubscribe(UnsubscribeRequestParams::new(uri)).await;
    ended.map_err(|error| as_protocol_error(&error))
}

/// Fulfils what a modern server needs for its answer by asking a legacy client.
pub(super) async fn ask(relay: &Relay, question: InputRequest) -> Result<serde_json::Value, ErrorData> {
    let client = relay
        .legacy_client()
        .ok_or_else(|| ErrorData::internal_error("the client cannot be asked", None))?;
    let answer = match question {
        InputRequest::CreateMessage(question) => client.create_message(question.params).await.map(value),
        InputRequest::Elicitation(question) => client.create_elicitation(question.params).await.map(value),
        InputRequest::ListRoots(_) => client.list_roots().await.map(value),
        _ => Err(ServiceError::UnexpectedResponse),
    };
    answer.map_err(|error| as_protocol_error(&error))
}

fn value(answer: impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(answer).unwrap_or_default()
}

/// Asks a server that is new, or has forgotten us, for what the client has asked for once.
async fn wish_again(relay: Arc<Relay>) {
    let Some(remote) = relay.current() else { return };
    let level = *lock(&relay.log_level);
    if let Some(level) = level.filter(|_| !remote.is_modern())
        && let Err(error) = remote.peer.set_level(SetLevelRequestParams::new(level)).await
    {
        tracing::warn!(reason = reason_of(&error), "the log level is not set again");
    }
    let watched: Vec<String> = lock(&relay.watched).keys().cloned().collect();
    for uri in watched {
        let carrier = match ask_for_updates(&relay, &remote, &uri).await {
            Ok(carrier) => carrier,
            Err(error) => {
                tracing::warn!(uri, error = %error.message, "the resource is no longer watched");
                continue;
            }
        };
        // The client may have lost interest meanwhile.
        if let Some(watch) = lock(&relay.watched).get_mut(&uri) {
            *watch = carrier;
        }
    }
}

async fn ping(peer: &rmcp::service::Peer<RoleClient>) -> Result<(), ServiceError> {
    peer.send_request(ClientRequest::PingRequest(PingRequest::default()))
        .await
        .map(drop)
}
