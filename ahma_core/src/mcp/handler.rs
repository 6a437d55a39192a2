//! The server's implementation of rmcp's handler: passes every request to the module that answers it.
#![expect(
    deprecated,
    reason = "log messages are deprecated in the newest revision and used by clients of all"
)]

use std::sync::Arc;

use ahma_common::ToolPatterns;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomNotification, CustomRequest,
        CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
        Implementation, InitializeRequestParams, InitializeResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
        SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
        UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};

use super::{
    bridge_requests,
    builtin::{self, Builtin},
    call, client, convert,
    error::{self, CallRefusal},
    lobby::Lobby,
    log_messages, resources,
    server::Server,
    tasks, tool_list,
};
use crate::call::ToolCall;

/// One connection's view of the server.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    pub(super) lobby: Arc<Lobby>,
}

impl Handler {
    async fn server(&self) -> Result<Arc<Server>, ErrorData> {
        self.lobby.server().await
    }

    /// Calls a tool by its own name.
    async fn call_by_name(
        &self,
        request: CallToolRequestParams,
        ctx: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let server = self.server().await?;
        let limit = client::tool_limit(&ctx.meta);
        let builtin = Builtin::by_name(&request.name);
        // No limit applies to the tools that look after a client's own operations or find what it may call.
        if builtin.is_none() && !limit.allow(&request.name) {
            return Ok(server.results.refusal(not_allowed(&request.name, &limit)).into());
        }
        if let Some(remotes) = &server.remotes
            && let Some(target) = remotes.find(&*server.toolbox.loaded().await, &request.name)
        {
            return remotes.call(target, request, ctx).await;
        }
        let arguments = request.arguments.unwrap_or_default();
        let response = match builtin {
            Some(builtin) => builtin
                .call(&server, arguments, ctx)
                .await
                .map(CallToolResponse::from),
            None => {
                let call = ToolCall {
                    tool: request.name.into_owned(),
                    arguments,
                };
                call::run(&server, call, ctx).await
            }
        };
        let response = match response {
            Ok(response) => response,
            Err(CallRefusal::Answer(result)) => (*result).into(),
            Err(CallRefusal::Error(error)) => return Err(error),
        };
        let form = convert::wanted_form(server.settings.results, &ctx.meta);
        Ok(match response {
            CallToolResponse::Complete(result) => convert::in_form(result, form).into(),
            other => other,
        })
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_prompts()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("ahma_mcp", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.lobby.instructions.clone())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        ctx.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        // Tasks are an extension of the modern era; sessions have none.
        result.capabilities.extensions = None;
        Ok(result)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // The modern era gives the level with each request.
        if is_modern(&ctx) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        log_messages::set_level(&self.server().await?, request.level, &ctx);
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        expect_first_page(request)?;
        // Noted before it is read: the client is notified of a change in between.
        self.lobby.shown.note(&self.lobby.toolbox.loaded().await);
        let toolbox = self.lobby.toolbox.current();
        let mut remote = Vec::new();
        if self.lobby.has_remotes
            && let Some(remotes) = &self.server().await?.remotes
        {
            remote = remotes.list(&toolbox, &ctx).await;
        }
        let tools = tool_list::tools(&toolbox, remote, &client::tool_limit(&ctx.meta));
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != builtin::CALL_ANY {
            return self.call_by_name(request, &ctx).await;
        }
        let server = self.server().await?;
        let results = &server.results;
        match builtin::call_target(request.arguments.unwrap_or_default()) {
            Ok((tool, arguments)) => (request.name, request.arguments) = (tool.into(), Some(arguments)),
            Err(problems) => return Ok(results.invalid_arguments(&builtin::call_any(), problems).into()),
        }
        match self.call_by_name(request, &ctx).await {
            // The tool that was called exists, and its model can ask again: clients do not show it protocol errors.
            Err(error) if error.code == ErrorCode::INVALID_PARAMS => {
                Ok(results.refusal(error.message).into())
            }
            answer => answer,
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        refuse_sessions(&ctx, "tasks/get")?;
        let server = self.server().await?;
        Ok(GetTaskResult::new(
            tasks::get(&server, &ctx, &request.task_id).await?,
        ))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        refuse_sessions(&ctx, "tasks/update")?;
        let server = self.server().await?;
        tasks::update(&server, &ctx, &request.task_id).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        refuse_sessions(&ctx, "tasks/cancel")?;
        let server = self.server().await?;
        tasks::cancel(&server, &ctx, &request.task_id).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Err(error::unknown_prompt(&request.name))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        expect_first_page(request)?;
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        expect_first_page(request)?;
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let server = self.server().await?;
        let caller = client::caller(&server, &ctx.meta);
        Ok(resources::read(&server, &caller, &request.uri).await?.into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let server = self.server().await?;
        let caller = client::caller(&server, &ctx.meta);
        if !resources::exists(&server, &caller, &request.uri).await {
            return Err(error::unknown_resource(&request.uri));
        }
        server.subscriptions.subscribe(request.uri.clone());
        resources::watch(&server, &caller, request.uri).await;
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server().await?.subscriptions.unsubscribe(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            // The client is not known here.
            uris.retain(|uri| resources::is_address(uri));
        }
        Some(accepted)
    }

    async fn listen(&self, ctx: SubscriptionContext) -> Result<(), ErrorData> {
        let subscriptions = &self.lobby.subscriptions;
        let meta = &ctx.request_context().meta;
        // Before the server is there, so that no change of the tools is missed meanwhile.
        let number = subscriptions.add_sink(client::of(meta), ctx.sink().clone());
        let server = self.server().await;
        if let Ok(server) = &server {
            let caller = client::caller(server, meta);
            for uri in ctx.sink().accepted().resource_subscriptions.iter().flatten() {
                resources::watch(server, &caller, uri.clone()).await;
            }
            ctx.cancelled().await;
        }
        subscriptions.remove_sink(number);
        server.map(drop)
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleServer>,
    ) {
        if let Some((client, reason)) = client::gone(&notification)
            // Its calls may still wait in the lobby. If there are none, this does not ask for a sandbox.
            && let Ok(server) = self.lobby.arrived().await
        {
            server.log_levels.forget(&client);
            server.engine.stop_all_of(&client, reason);
        }
    }

    async fn on_initialized(&self, ctx: NotificationContext<RoleServer>) {
        self.lobby.subscriptions.add_peer(ctx.peer);
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let server = self.server().await?;
        if let Some(answer) = bridge_requests::answer(&server, &request).await {
            return answer;
        }
        // rmcp takes a known request with parameters it cannot read for an unknown one.
        if KNOWN_METHODS.split(' ').any(|known| known == request.method) {
            return Err(error::malformed(&request.method));
        }
        Err(unknown_method(&request.method))
    }
}

/// True for a request of the modern era, which has no sessions.
pub(super) fn is_modern(ctx: &RequestContext<RoleServer>) -> bool {
    ctx.protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn not_allowed(tool: &str, limit: &ToolPatterns) -> String {
    format!(
        "the token of this client is limited to other tools than {tool}: it may call {limit}, and await, cancel, output and status. The issuer of the token can change that."
    )
}

/// Tasks exist in the modern era only, whatever a client declares.
fn refuse_sessions(ctx: &RequestContext<RoleServer>, method: &str) -> Result<(), ErrorData> {
    if is_modern(ctx) {
        Ok(())
    } else {
        Err(unknown_method(method))
    }
}

fn unknown_method(method: &str) -> ErrorData {
    let message = format!("unknown method {method}");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// Requests that rmcp knows.
const KNOWN_METHODS: &str = "initialize completion/complete logging/setLevel prompts/get resources/read \
     resources/subscribe resources/unsubscribe subscriptions/listen tasks/cancel tasks/get tasks/update tools/call \
     tools/list";

/// Lists come whole, so no cursor was ever given out.
fn expect_first_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        Some(cursor) if !cursor.is_empty() => Err(error::unknown_cursor(&cursor)),
        _ => Ok(()),
    }
}
