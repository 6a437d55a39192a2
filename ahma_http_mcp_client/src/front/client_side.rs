//! The side that faces the client: every request goes to the remote server, apart from those about this connection.
#![expect(
    deprecated,
    reason = "logging levels and resource subscriptions are deprecated, and clients still use them"
)]

use std::sync::Arc;

use rmcp::{
    RoleServer, ServerHandler,
    model::{
        ClientNotification, ClientRequest, ErrorCode, ErrorData, InputRequest, InputRequiredResult,
        InputResponses, ProtocolVersion, ServerConfig, ServerRequest, ServerResult, SetLevelRequest,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, Service, SubscriptionContext},
};

use super::relay::{Relay, is_modern};

/// Rounds after which a server that keeps asking for input is given up.
const MAX_ROUNDS: usize = 10;

/// Relays the client's requests and notifications.
pub(super) struct ClientSide {
    own: OwnRequests,
}

/// The requests that a front answers itself, at least in part.
struct OwnRequests {
    relay: Arc<Relay>,
}

impl ClientSide {
    pub(super) fn new(relay: Arc<Relay>) -> Self {
        Self {
            own: OwnRequests { relay },
        }
    }

    /// Relays a request. If the answer is a question, a legacy client is asked; a modern one gets to see it itself.
    async fn relay(
        &self,
        mut request: ClientRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let relay = &self.own.relay;
        let client_is_modern = context.protocol_version().as_ref().is_some_and(is_modern);
        for _ in 0..MAX_ROUNDS {
            let answer = relay.while_heard(relay.forward(request.clone(), context)).await;
            match answer.map_err(|error| in_era(error, client_is_modern))? {
                ServerResult::InputRequiredResult(question) if !client_is_modern => {
                    self.answer(&mut request, question).await?;
                }
                mut result if client_is_modern => {
                    result.fill_missing_cache_hints();
                    return Ok(result);
                }
                mut result => {
                    result.strip_result_type_for_legacy_peer();
                    return Ok(result);
                }
            }
        }
        Err(ErrorData::internal_error(
            "the remote server keeps asking for input",
            None,
        ))
    }

    /// Puts the client's answers to a modern server's question into the next round of the request.
    async fn answer(
        &self,
        request: &mut ClientRequest,
        question: InputRequiredResult,
    ) -> Result<(), ErrorData> {
        let unexpected = || ErrorData::internal_error("the remote server asks for input it cannot get", None);
        let (responses, state) = match request {
            ClientRequest::CallToolRequest(request) => (
                &mut request.params.input_responses,
                &mut request.params.request_state,
            ),
            ClientRequest::GetPromptRequest(request) => (
                &mut request.params.input_responses,
                &mut request.params.request_state,
            ),
            ClientRequest::ReadResourceRequest(request) => (
                &mut request.params.input_responses,
                &mut request.params.request_state,
            ),
            _ => return Err(unexpected()),
        };
        let mut answers = InputResponses::new();
        for (key, question) in question.input_requests.unwrap_or_default() {
            let question = match question {
                InputRequest::CreateMessage(question) => ServerRequest::CreateMessageRequest(question),
                InputRequest::Elicitation(question) => ServerRequest::ElicitRequest(question),
                InputRequest::ListRoots(question) => ServerRequest::ListRootsRequest(question),
                _ => return Err(unexpected()),
            };
            let answer = self.own.relay.ask_client(question).await?;
            answers.insert(key, serde_json::to_value(answer).unwrap_or_default());
        }
        (*responses, *state) = (Some(answers), question.request_state);
        Ok(())
    }
}

impl Service<RoleServer> for ClientSide {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let _ = self.own.relay.client.set(context.peer.clone());
        match request {
            ClientRequest::InitializeRequest(_)
            | ClientRequest::DiscoverRequest(_)
            | ClientRequest::PingRequest(_)
            | ClientRequest::SetLevelRequest(_)
            | ClientRequest::SubscribeRequest(_)
            | ClientRequest::UnsubscribeRequest(_)
            | ClientRequest::SubscriptionsListenRequest(_) => {
                Service::handle_request(&self.own, request, context).await
            }
            request => {
                check_metadata(&context)?;
                self.relay(request, &context).await
            }
        }
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let relay = &self.own.relay;
        let is_relayed = match &notification {
            ClientNotification::CustomNotification(_) => true,
            ClientNotification::RootsListChangedNotification(_) => {
                relay.server.live().is_some_and(|server| !server.is_modern())
            }
            ClientNotification::InitializedNotification(_) => {
                let _ = relay.client.set(context.peer);
                false
            }
            // rmcp cancels the request itself; the relayed one ends with it.
            _ => false,
        };
        if let Some(server) = relay.server.live().filter(|_| is_relayed) {
            let _ = server.peer.send_notification(notification).await;
        }
        Ok(())
    }

    fn get_info(&self) -> ServerConfig {
        ServerHandler::get_info(&self.own)
    }
}

impl ServerHandler for OwnRequests {
    fn get_info(&self) -> ServerConfig {
        let Some(info) = self.relay.server_info.lock().clone() else {
            return ServerConfig::default();
        };
        let mut config = ServerConfig::new(info.capabilities.clone());
        if let Some(server) = &info.server_info {
            config = config.with_server_info(server.clone());
        }
        config.instructions = info.instructions.clone();
        config
    }

    async fn set_level(
        &self,
        params: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.relay.log_level.lock() = Some(params.level);
        let setting = async {
            if self.relay.connection().await?.is_modern() {
                return Ok(());
            }
            let request = ClientRequest::SetLevelRequest(SetLevelRequest::new(params));
            self.relay.forward(request, &context).await.map(drop)
        };
        self.relay.while_heard(setting).await
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.relay
            .while_heard(self.relay.watch_resource(&params.uri))
            .await
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.relay.subscriptions.stop_watching(&params.uri);
        self.relay.end_updates(&params.uri).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.relay.serve_subscription(&context).await
    }
}

/// Modern requests describe themselves; rmcp checks that only for requests it handles itself.
fn check_metadata(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    let Some(version) = context.meta.protocol_version() else {
        return Ok(());
    };
    if !ProtocolVersion::KNOWN_VERSIONS.contains(&version) {
        return Err(ErrorData::unsupported_protocol_version(
            version,
            ProtocolVersion::KNOWN_VERSIONS,
        ));
    }
    match context.meta.missing_required_keys(&version).as_slice() {
        [] => Ok(()),
        missing => Err(ErrorData::invalid_params(
            format!("request _meta lacks required fields: {}", missing.join(", ")),
            None,
        )),
    }
}

/// The modern era reports a missing resource with another code.
fn in_era(mut error: ErrorData, client_is_modern: bool) -> ErrorData {
    if client_is_modern && error.code == ErrorCode::RESOURCE_NOT_FOUND {
        error.code = ErrorCode::INVALID_PARAMS;
    }
    error
}
