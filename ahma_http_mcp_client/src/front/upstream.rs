//! The side that faces the remote server: its notifications go to the client, its questions too.
#![expect(
    deprecated,
    reason = "roots, sampling, logging and resource subscriptions are deprecated, and clients still use them"
)]

use std::sync::Arc;

use rmcp::model::{
    ClientConfig, ClientRequest, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ErrorCode, ErrorData, InputRequest, ListRootsResult, LoggingMessageNotification,
    LoggingMessageNotificationParam, PingRequest, PromptListChangedNotification,
    ResourceListChangedNotification, ResourceUpdatedNotification, ResourceUpdatedNotificationParam,
    ServerNotification, SubscribeRequestParams, SubscriptionFilter, ToolListChangedNotification,
};
use rmcp::service::{NotificationContext, RequestContext, ServiceError, Subscription};
use rmcp::{ClientHandler, RoleClient};

use super::relay::{Relay, as_protocol_error, lock};
use crate::session::Connection;
use crate::transport::link::LinkEvent;

#[derive(Debug, Clone)]
pub(super) struct Upstream {
    relay: Arc<Relay>,
    client: ClientConfig,
}

pub(super) enum Ended {
    ClientGone,
    Lost(String),
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
        let notification = ToolListChangedNotification::default();
        self.relay
            .announce(ServerNotification::ToolListChangedNotification(notification))
            .await;
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
pub(super) async fn watch(relay: &Relay, connection: &mut Connection<Upstream>) -> String {
    let peer = connection.service.peer().clone();
    watch_resources_again(relay).await;
    let mut changes = subscribe(relay).await;
    loop {
        tokio::select! {
            event = connection.events.recv() => match event {
                Some(LinkEvent::SessionRenewed) => {
                    let notification = ToolListChangedNotification::default();
                    relay.announce(ServerNotification::ToolListChangedNotification(notification)).await;
                }
                // Any request opens a new one.
                Some(LinkEvent::SessionLost) => if let Err(error) = ping(&peer).await {
                    return format!("it forgot the session: {error}");
                },
                Some(LinkEvent::GaveUp) | None => return "it cannot be reached any more".to_owned(),
            },
            () = closed(&peer) => return "it closed the connection".to_owned(),
            change = next(&mut changes) => match change {
                Some(notification) => relay.announce(notification).await,
                None => {
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                    changes = subscribe(relay).await;
                }
            },
        }
    }
}

/// Asks the remote server to report changes of one resource, in its own era's way.
pub(super) async fn watch_resource(relay: &Arc<Relay>, uri: &str) -> Result<(), ErrorData> {
    let Some(remote) = relay.current() else {
        return Ok(());
    };
    lock(&relay.watched).insert(uri.to_owned());
    if !remote.is_modern() {
        let subscribed = remote.peer.subscribe(SubscribeRequestParams::new(uri)).await;
        return subscribed.map_err(|error| as_protocol_error(&error));
    }
    let filter = SubscriptionFilter::builder()
        .resource_subscriptions([uri.to_owned()])
        .build();
    let mut subscription = remote
        .peer
        .listen(filter)
        .await
        .map_err(|error| as_protocol_error(&error))?;
    let (relay, uri) = (Arc::clone(relay), uri.to_owned());
    // Ends with the connection, or when nobody watches the resource any more.
    tokio::spawn(async move {
        while let Ok(Some(notification)) = subscription.next().await {
            if !lock(&relay.watched).contains(&uri) {
                break;
            }
            relay.announce(notification).await;
        }
    });
    Ok(())
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

async fn watch_resources_again(relay: &Relay) {
    let Some(remote) = relay.current().filter(|remote| !remote.is_modern()) else {
        return;
    };
    let watched = lock(&relay.watched).clone();
    for uri in watched {
        let _ = remote.peer.subscribe(SubscribeRequestParams::new(uri)).await;
    }
}

/// A modern server reports changes on a subscription only.
async fn subscribe(relay: &Relay) -> Option<Subscription> {
    let remote = relay.current().filter(super::relay::Remote::is_modern)?;
    let wanted = SubscriptionFilter::builder()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed();
    let offered = wanted
        .build()
        .supported_by(&remote.peer.peer_info()?.capabilities);
    if offered == SubscriptionFilter::default() {
        return None;
    }
    remote.peer.listen(offered).await.ok()
}

async fn next(subscription: &mut Option<Subscription>) -> Option<ServerNotification> {
    let Some(active) = subscription else {
        return std::future::pending().await;
    };
    let notification = active.next().await.ok().flatten();
    if notification.is_none() {
        *subscription = None;
    }
    notification
}

async fn ping(peer: &rmcp::service::Peer<RoleClient>) -> Result<(), ServiceError> {
    peer.send_request(ClientRequest::PingRequest(PingRequest::default()))
        .await
        .map(drop)
}

/// rmcp has no signal for this, so it is looked up; a request notices at once anyway.
async fn closed(peer: &rmcp::service::Peer<RoleClient>) {
    while !peer.is_transport_closed() {
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
}
