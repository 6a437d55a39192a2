//! The side that faces the client: every request is carried to the remote server.
#![expect(
    deprecated,
    reason = "logging levels and resource subscriptions are deprecated, and clients still use them"
)]

use std::sync::Arc;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelTaskRequest,
    ClientNotification, ClientRequest, CompleteRequest, CompleteRequestParams, CompleteResult,
    CustomNotification, CustomRequest, CustomResult, ErrorData, GetPromptRequest, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskRequest, GetTaskResult, InputRequiredResult, InputResponses,
    ListPromptsRequest, ListPromptsResult, ListResourceTemplatesRequest, ListResourceTemplatesResult,
    ListResourcesRequest, ListResourcesResult, ListToolsRequest, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequest, ReadResourceRequestParams, ReadResourceResponse, ServerConfig, ServerResult,
    SetLevelRequest, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams, UpdateTaskParams, UpdateTaskRequest,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};

use super::relay::{Relay, is_modern, lock, resources};
use super::upstream::{ask, end_updates, watch_resource};

/// A server that asks and asks is not answered for ever.
const MOST_ROUNDS: usize = 10;

pub(super) struct Downstream {
    relay: Arc<Relay>,
}

impl Downstream {
    pub(super) fn new(relay: Arc<Relay>) -> Self {
        Self { relay }
    }

    async fn forward(
        &self,
        request: ClientRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let _ = self.relay.client.set(context.peer.clone());
        self.relay.while_heard(self.relay.forward(request, context)).await
    }

    async fn watch_until_ended(&self, context: &SubscriptionContext) -> Result<(), ErrorData> {
        for uri in resources(context.sink()) {
            let watching = watch_resource(&self.relay, uri);
            self.relay.while_heard(watching).await?;
        }
        tokio::select! {
            () = context.cancelled() => {}
            () = self.relay.client_left.cancelled() => {}
        }
        Ok(())
    }

    /// Answers a modern server's questions by asking a legacy client; a modern client gets to see them itself.
    async fn answers(
        &self,
        result: &InputRequiredResult,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<InputResponses>, ErrorData> {
        if is_modern(context.protocol_version().as_ref()) {
            return Ok(None);
        }
        let mut answers = InputResponses::new();
        for (key, question) in result.input_requests.clone().unwrap_or_default() {
            answers.insert(key, ask(&self.relay, question).await?);
        }
        Ok(Some(answers))
    }
}

/// Carries a request whose answer may be a question, until it is an answer.
macro_rules! until_answered {
    ($self:ident, $params:ident, $context:ident, $request:ident, $response:ident { $($result:ident => $variant:ident),+ }) => {{
        for _ in 0..MOST_ROUNDS {
            let request = ClientRequest::$request($request::new($params.clone()));
            let question = match $self.forward(request, &$context).await? {
                $(ServerResult::$result(result) => return Ok($response::$variant(result)),)+
                ServerResult::InputRequiredResult(question) => question,
                _ => return Err(unexpected()),
            };
            let Some(answers) = $self.answers(&question, &$context).await? else {
                return Ok($response::InputRequired(question));
            };
            $params.input_responses = Some(answers);
            $params.request_state = question.request_state;
        }
        Err(ErrorData::internal_error("the remote server keeps asking", None))
    }};
}

/// Carries a request with one kind of answer.
macro_rules! carried {
    ($self:ident, $context:ident, $request:expr, $result:ident) => {
        match $self.forward($request, &$context).await? {
            ServerResult::$result(result) => Ok(result),
            _ => Err(unexpected()),
        }
    };
}

impl ServerHandler for Downstream {
    fn get_info(&self) -> ServerConfig {
        let Some(info) = self.relay.info() else {
            return ServerConfig::default();
        };
        let mut config = ServerConfig::new(info.capabilities.clone());
        if let Some(server) = &info.server_info {
            config = config.with_server_info(server.clone());
        }
        config.instructions = info.instructions.clone();
        config
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let request = ListToolsRequest {
            params,
            ..Default::default()
        };
        carried!(
            self,
            context,
            ClientRequest::ListToolsRequest(request),
            ListToolsResult
        )
    }

    async fn call_tool(
        &self,
        mut params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        until_answered!(self, params, context, CallToolRequest, CallToolResponse {
            CallToolResult => Complete, CreateTaskResult => Task
        })
    }

    async fn get_prompt(
        &self,
        mut params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        until_answered!(self, params, context, GetPromptRequest, GetPromptResponse { GetPromptResult => Complete })
    }

    async fn read_resource(
        &self,
        mut params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        until_answered!(self, params, context, ReadResourceRequest, ReadResourceResponse { ReadResourceResult => Complete })
    }

    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let request = ListPromptsRequest {
            params,
            ..Default::default()
        };
        carried!(
            self,
            context,
            ClientRequest::ListPromptsRequest(request),
            ListPromptsResult
        )
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let request = ListResourcesRequest {
            params,
            ..Default::default()
        };
        carried!(
            self,
            context,
            ClientRequest::ListResourcesRequest(request),
            ListResourcesResult
        )
    }

    async fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let request = ListResourceTemplatesRequest {
            params,
            ..Default::default()
        };
        carried!(
            self,
            context,
            ClientRequest::ListResourceTemplatesRequest(request),
            ListResourceTemplatesResult
        )
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        carried!(
            self,
            context,
            ClientRequest::CompleteRequest(CompleteRequest::new(params)),
            CompleteResult
        )
    }

    async fn set_level(
        &self,
        params: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *lock(&self.relay.log_level) = Some(params.level);
        let remote = self.relay.while_heard(self.relay.remote()).await?;
        if remote.is_modern() {
            return Ok(());
        }
        self.forward(
            ClientRequest::SetLevelRequest(SetLevelRequest::new(params)),
            &context,
        )
        .await
        .map(drop)
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let _ = self.relay.client.set(context.peer.clone());
        let watching = watch_resource(&self.relay, &params.uri);
        self.relay.while_heard(watching).await
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        lock(&self.relay.watched).remove(&params.uri);
        end_updates(&self.relay, &params.uri).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        // First, so that no update is lost once the server has been asked for it.
        self.relay.subscribe(context.sink().clone());
        let listened = self.watch_until_ended(&context).await;
        for uri in self.relay.unsubscribe(context.sink()) {
            if let Err(error) = end_updates(&self.relay, &uri).await {
                tracing::debug!(uri, error = %error.message, "the server may go on reporting changes");
            }
        }
        listened
    }

    async fn get_task(
        &self,
        params: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        carried!(
            self,
            context,
            ClientRequest::GetTaskRequest(GetTaskRequest::new(params)),
            GetTaskResult
        )
    }

    async fn update_task(
        &self,
        params: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.forward(
            ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params)),
            &context,
        )
        .await
        .map(drop)
    }

    async fn cancel_task(
        &self,
        params: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.forward(
            ClientRequest::CancelTaskRequest(CancelTaskRequest::new(params)),
            &context,
        )
        .await
        .map(drop)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        carried!(self, context, ClientRequest::CustomRequest(request), CustomResult)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let _ = self.relay.client.set(context.peer);
    }

    async fn on_roots_list_changed(&self, _: NotificationContext<RoleServer>) {
        if let Some(remote) = self.relay.current().filter(|remote| !remote.is_modern()) {
            let _ = remote.peer.notify_roots_list_changed().await;
        }
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleServer>,
    ) {
        if let Some(remote) = self.relay.current() {
            let notification = ClientNotification::CustomNotification(notification);
            let _ = remote.peer.send_notification(notification).await;
        }
    }
}

fn unexpected() -> ErrorData {
    ErrorData::internal_error("the remote server gave an answer of another kind", None)
}
