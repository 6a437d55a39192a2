//! The server as rmcp knows it: every request goes to the module that answers it.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, Implementation,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
        SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};

use super::{Inner, builtin, builtin::Builtin, call, convert, error, resources};
use crate::{call::ToolCall, mtdf::SHELL_TOOL, toolbox::Toolbox};

/// How long the list of tools waits for availability probes. Late answers change the list, and clients are told.
const LIST_PATIENCE: Duration = Duration::from_millis(200);

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
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("ahma_mcp", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.inner.instructions.clone())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let toolbox = self.inner.toolbox.settled(LIST_PATIENCE).await;
        let tools = self.tools(&toolbox);
        self.inner.note_shown(toolbox);
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let toolbox = self.inner.toolbox.current();
        builtin::tools()
            .iter()
            .find(|tool| tool.name == name)
            .cloned()
            .or_else(|| toolbox.offered.get(name).map(|tool| convert::tool(tool)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let result = match Builtin::by_name(&request.name) {
            Some(builtin) => builtin.call(&self.inner, arguments, &ctx).await,
            None => {
                call::run(
                    &self.inner,
                    ToolCall {
                        tool: request.name.into_owned(),
                        arguments,
                    },
                    &ctx,
                )
                .await
            }
        };
        result.map(CallToolResponse::from)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&self.inner, &request.uri)
            .await
            .map(ReadResourceResponse::from)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !resources::exists(&request.uri) {
            return Err(error::unknown_resource(&request.uri));
        }
        self.inner.audience.subscribe(request.uri);
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
            uris.retain(|uri| resources::exists(uri));
        }
        Some(accepted)
    }

    async fn listen(&self, ctx: SubscriptionContext) -> Result<(), ErrorData> {
        let number = self.inner.audience.add_sink(ctx.sink().clone());
        ctx.cancelled().await;
        self.inner.audience.remove_sink(number);
        Ok(())
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
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!("unknown method {}", request.method),
            None,
        ))
    }
}

const KNOWN_METHODS: [&str; 9] = [
    "initialize",
    "completion/complete",
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];
