//! The server as rmcp knows it: every request goes to the module that answers it.
#![expect(
    deprecated,
    reason = "log messages are deprecated in the newest revision and used by clients of all"
)]

use std::{sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomNotification, CustomRequest,
        CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
        Implementation, InitializeRequestParams, InitializeResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestMethod, SetLevelRequestParams,
        SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};

use super::{Inner, builtin, builtin::Builtin, call, convert, error, feed, is_modern, owner, resources};
use crate::{call::ToolCall, mtdf::SHELL_TOOL, toolbox::Toolbox};

/// How long the list of tools waits for availability probes. Late answers change the list, and clients are told; but some
/// do not listen, so the first list should be the right one. Most probes ask a program for its version.
const LIST_PATIENCE: Duration = Duration::from_secs(3);

/// One connection's view of the server.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    pub(super) inner: Arc<Inner>,
}

impl Handler {
    /// The built-in tools, then all others by name: the same order in every run.
    fn tools(&self, toolbox: &Toolbox) -> Vec<Tool> {
        let offered = toolbox.offered.tools().map(|tool| {
            let converted = convert::tool(tool);
            if tool.name == SHELL_TOOL {
                converted.with_raw_output_schema(builtin::operation_schema())
            } else {
                converted
            }
        });
        builtin::tools().iter().cloned().chain(offered).collect()
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
            .with_instructions(self.inner.instructions.clone())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        ctx.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        // Tasks are an extension of the newer era; sessions have none.
        result.capabilities.extensions = None;
        Ok(result)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // The newer era says the level with each request.
        if is_modern(&ctx) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        feed::set_level(&self.inner, request.level, &ctx);
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        expect_first_page(request)?;
        let toolbox = self.inner.toolbox.settled(LIST_PATIENCE).await;
        // Before waiting for others: a list that changes meanwhile is one that the client has to be told of.
        self.inner.note_shown(toolbox.clone());
        let mut tools = self.tools(&toolbox);
        if let Some(remotes) = &self.inner.remotes {
            tools.extend(remotes.list(&toolbox, &ctx).await);
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(remotes) = &self.inner.remotes
            && let Some(target) = remotes.find(&*self.inner.toolbox.loaded().await, &request.name)
        {
            return remotes.call(target, request, &ctx).await;
        }
        let arguments = request.arguments.unwrap_or_default();
        match Builtin::by_name(&request.name) {
            Some(builtin) => builtin
                .call(&self.inner, arguments, &ctx)
                .await
                .map(CallToolResponse::from),
            None => {
                let call = ToolCall {
                    tool: request.name.into_owned(),
                    arguments,
                };
                call::run(&self.inner, call, &ctx).await
            }
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        refuse_sessions(&ctx, "tasks/get")?;
        self.inner
            .task_store
            .get(&owner::of(&ctx.meta), &request.task_id)
            .map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        refuse_sessions(&ctx, "tasks/update")?;
        self.inner
            .task_store
            .update(&owner::of(&ctx.meta), &request.task_id)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        refuse_sessions(&ctx, "tasks/cancel")?;
        self.inner
            .task_store
            .cancel(&owner::of(&ctx.meta), &request.task_id)
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
        resources::read(&self.inner, &owner::of(&ctx.meta), &request.uri)
            .await
            .map(ReadResourceResponse::from)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let owner = owner::of(&ctx.meta);
        if !resources::exists(&self.inner, &owner, &request.uri) {
            return Err(error::unknown_resource(&request.uri));
        }
        self.inner.audience.subscribe(request.uri.clone());
        resources::watch(&self.inner, &owner, request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.inner.audience.unsubscribe(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            // Who asks is not known here.
            uris.retain(|uri| resources::is_address(uri));
        }
        Some(accepted)
    }

    async fn listen(&self, ctx: SubscriptionContext) -> Result<(), ErrorData> {
        let owner = owner::of(&ctx.request_context().meta);
        let number = self.inner.audience.add_sink(owner.clone(), ctx.sink().clone());
        for uri in ctx.sink().accepted().resource_subscriptions.iter().flatten() {
            resources::watch(&self.inner, &owner, uri.clone());
        }
        ctx.cancelled().await;
        self.inner.audience.remove_sink(number);
        Ok(())
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleServer>,
    ) {
        if let Some(owner) = owner::gone(&notification) {
            self.inner.log_level.forget(&owner);
            self.inner
                .engine
                .stop_all_of(&owner, "the client ended its session");
        }
    }

    async fn on_initialized(&self, ctx: NotificationContext<RoleServer>) {
        self.inner.audience.add_peer(ctx.peer);
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // rmcp takes a known request with parameters it cannot read for an unknown one.
        if KNOWN_METHODS.contains(&request.method.as_str()) {
            return Err(error::malformed(&request.method));
        }
        Err(unknown_method(&request.method))
    }
}

/// Tasks exist in the era without sessions only, whatever a client declares.
fn refuse_sessions(ctx: &RequestContext<RoleServer>, method: &str) -> Result<(), ErrorData> {
    if is_modern(ctx) {
        Ok(())
    } else {
        Err(unknown_method(method))
    }
}

fn unknown_method(method: &str) -> ErrorData {
    ErrorData::new(
        ErrorCode::METHOD_NOT_FOUND,
        format!("unknown method {method}"),
        None,
    )
}

const KNOWN_METHODS: [&str; 13] = [
    "initialize",
    "completion/complete",
    "logging/setLevel",
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    "tools/call",
    "tools/list",
];

/// Lists come whole, so no cursor was ever given out.
fn expect_first_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        Some(cursor) if !cursor.is_empty() => Err(error::unknown_cursor(&cursor)),
        _ => Ok(()),
    }
}
