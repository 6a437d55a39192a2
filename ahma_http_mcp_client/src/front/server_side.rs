//! The side that faces the remote server: its notifications and its questions go to the client.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{
        ClientConfig, ClientRequest, ClientResult, ErrorData, PingRequest, ServerNotification, ServerRequest,
        SubscriptionFilter, Tool, ToolListChangedNotification,
    },
    service::{NotificationContext, RequestContext, Service, ServiceError},
};

use super::relay::Relay;
use crate::{
    remote::{LiveConnection, Purpose, ServerEvent},
    session::describe_call,
};

const PING_TIMEOUT: Duration = Duration::from_secs(30);

/// Speaks to the remote server in the client's name.
#[derive(Debug, Clone)]
pub(super) struct ServerSide {
    relay: Arc<Relay>,
    client: ClientConfig,
}

impl ServerSide {
    pub(super) fn new(relay: Arc<Relay>, client: ClientConfig) -> Self {
        Self { relay, client }
    }

    async fn announce_tools(&self) {
        let notification = ToolListChangedNotification::default();
        self.relay
            .announce(ServerNotification::ToolListChangedNotification(notification))
            .await;
    }

    /// Repeats the client's subscriptions and log level in a task of its own: a server that does not answer must not keep the actor from
    /// noticing that it is gone.
    fn repeat_wishes(&self, connection: &LiveConnection) {
        let (relay, connection) = (Arc::clone(&self.relay), connection.clone());
        tokio::spawn(async move { relay.repeat_wishes(&connection).await });
    }
}

impl Service<RoleClient> for ServerSide {
    async fn handle_request(
        &self,
        request: ServerRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        match request {
            ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
            request => self.relay.ask_client(request).await,
        }
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        match notification {
            // Unlike changes, log messages need no subscription in the modern era.
            ServerNotification::LoggingMessageNotification(_) => {
                if let Some(client) = self.relay.client.get() {
                    let _ = client.send_notification(notification).await;
                }
            }
            ServerNotification::ResourceUpdatedNotification(_)
            | ServerNotification::ToolListChangedNotification(_)
            | ServerNotification::ResourceListChangedNotification(_)
            | ServerNotification::PromptListChangedNotification(_) => self.relay.announce(notification).await,
            _ => {}
        }
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        self.client.clone()
    }
}

impl Purpose for ServerSide {
    type Service = Self;
    const IS_POLLED: bool = false;

    fn service(&self) -> &Self {
        self
    }

    fn subscription(&self) -> SubscriptionFilter {
        SubscriptionFilter::builder()
            .tools_list_changed()
            .prompts_list_changed()
            .resources_list_changed()
            .build()
    }

    /// Publishes no tools: the client lists them itself.
    async fn on_event(
        &self,
        connection: &LiveConnection,
        event: ServerEvent,
    ) -> Result<Arc<[Tool]>, ServiceError> {
        match event {
            ServerEvent::Connected => {
                *self.relay.server_info.lock() = connection.peer.peer_info();
                self.repeat_wishes(connection);
            }
            ServerEvent::Restarted => {
                self.announce_tools().await;
                self.repeat_wishes(connection);
            }
            ServerEvent::Doubted => ping(connection).await?,
            ServerEvent::Subscribed { again: true } => self.announce_tools().await,
            ServerEvent::Subscribed { again: false } => {}
            ServerEvent::Changed(notification) => self.relay.announce(*notification).await,
        }
        Ok(Arc::default())
    }
}

/// Any answer will do; modern servers do not know the method.
async fn ping(connection: &LiveConnection) -> Result<(), ServiceError> {
    let request = ClientRequest::PingRequest(PingRequest::default());
    match tokio::time::timeout(PING_TIMEOUT, connection.peer.send_request(request)).await {
        Ok(Err(error)) if describe_call(&error).is_some() => Err(error),
        Ok(_) => Ok(()),
        Err(_) => Err(ServiceError::Timeout {
            timeout: PING_TIMEOUT,
        }),
    }
}
