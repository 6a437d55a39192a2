//! The client side of the MCP conformance suite: connects to the address it is given and uses every tool there.
//!
//! Run by the suite: `npx conformance client --command target/debug/examples/conformance_client …`. A login is done
//! as a user would, except that the "browser" only follows the link. Scenarios in which the server asks something
//! back run through [`front`], the others through [`RemoteServers`].

use std::time::Duration;

use ahma_http_mcp_client::{
    ClientSettings, LoginMode, RemoteError, RemoteServers, ServerState, TokenFile,
    config::{HttpEndpoint, Secret, ServerConfig, TransportChoice},
    front,
};
use anyhow::{Context, Result, bail};
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
        ElicitationAction, ElicitationCapability, FormElicitationCapability, Implementation, ProtocolVersion,
        Tool,
    },
    service::{ClientLifecycleMode, RequestContext, serve_client_with_lifecycle},
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use url::Url;

const SERVER: &str = "conformance";
/// The address at which the suite pretends that our client-id metadata document is.
const METADATA_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

#[tokio::main]
async fn main() -> Result<()> {
    let url: Url = std::env::args()
        .next_back()
        .context("the address of the server is missing")?
        .parse()?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let context: Value = std::env::var("MCP_CONFORMANCE_CONTEXT")
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let directory = std::env::temp_dir().join(format!("conformance-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let settings = ClientSettings {
        tokens: TokenFile::at(directory.join(TokenFile::FILE_NAME)),
        login: LoginMode::Link,
        ..ClientSettings::default()
    };
    let config = server(url, &context)?;
    let result = match scenario.as_str() {
        "elicitation-sep1034-client-defaults" | "sep-2322-client-request-state" => {
            asked_back(config, settings).await
        }
        _ => mounted(config, settings, &context).await,
    };
    std::fs::remove_dir_all(&directory)?;
    result
}

fn server(url: Url, context: &Value) -> Result<ServerConfig> {
    let mut endpoint = HttpEndpoint::new(url);
    endpoint.oauth.client_id = context["client_id"].as_str().map(str::to_owned);
    endpoint.oauth.client_secret = context["client_secret"].as_str().map(Secret::new);
    endpoint.oauth.client_metadata_url = Some(METADATA_DOCUMENT.to_owned());
    // Scenarios run side by side, and each needs a callback of its own: below the ports that the kernel hands out, where
    // another scenario's server would take it before the login begins.
    endpoint.oauth.callback_port = Some(20_000 + (std::process::id() % 12_000) as u16);
    Ok(ServerConfig {
        name: SERVER.to_owned(),
        transport: TransportChoice::Auto,
        http: Some(endpoint),
        stdio: None,
    })
}

/// Uses the server as a mounted one.
async fn mounted(config: ServerConfig, settings: ClientSettings, context: &Value) -> Result<()> {
    let servers = RemoteServers::start(vec![config], settings);
    let tools = ready(&servers).await?;
    for params in calls(&tools, context) {
        let name = params.name.clone();
        for _ in 0..3 {
            match servers
                .call(SERVER, params.clone(), None, &CancellationToken::new())
                .await
            {
                // More rights are wanted: the actor logs in again.
                Err(RemoteError::LoginRequired { .. }) => {
                    ready(&servers).await?;
                }
                Err(error) => bail!("{name}: {error}"),
                Ok(_) => break,
            }
        }
    }
    servers.shutdown().await;
    Ok(())
}

/// Waits for the tools; follows every login link on the way.
async fn ready(servers: &RemoteServers) -> Result<Vec<Tool>> {
    let mut states = servers.states();
    let mut followed = None;
    loop {
        let state = states.borrow_and_update().get(SERVER).cloned();
        match state {
            Some(ServerState::Ready { tools, .. }) => return Ok(tools.to_vec()),
            Some(ServerState::LoginRequired { link: Some(link), .. }) if followed.as_ref() != Some(&link) => {
                tokio::spawn(reqwest::get(link.clone()));
                followed = Some(link);
            }
            // A login that failed gives its reason before the advice.
            Some(ServerState::LoginRequired { link: None, reason }) if reason.contains("; run ") => {
                bail!("the login failed: {reason}");
            }
            Some(ServerState::Failed { reason }) => bail!("{reason}"),
            _ => {}
        }
        tokio::time::timeout(Duration::from_secs(100), states.changed()).await??;
    }
}

/// Uses the server through a front, as a client that can be asked.
async fn asked_back(config: ServerConfig, settings: ClientSettings) -> Result<()> {
    let (near, far) = tokio::io::duplex(1024 * 1024);
    let (input, output) = tokio::io::split(far);
    let serving = tokio::spawn(async move { front(input, output, &config, &settings, |_| ()).await });
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    };
    let modern =
        std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").is_ok_and(|version| version == "2026-07-28");
    let lifecycle = if modern {
        lifecycle
    } else {
        ClientLifecycleMode::Initialize
    };
    let client = serve_client_with_lifecycle(Person, near, lifecycle).await?;
    for tool in client.list_all_tools().await? {
        client.call_tool(call_of(&tool)).await?;
    }
    client.cancel().await?;
    Ok(serving.await??)
}

/// Accepts whatever is proposed.
#[derive(Clone)]
struct Person;

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut form = FormElicitationCapability::default();
        form.schema_validation = Some(true);
        let mut elicitation = ElicitationCapability::default();
        elicitation.form = Some(form);
        let capabilities = ClientCapabilities::builder()
            .enable_elicitation_with(elicitation)
            .build();
        ClientConfig::new(
            capabilities,
            Implementation::new("ahma_mcp", env!("CARGO_PKG_VERSION")),
        )
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let schema = serde_json::to_value(&params).unwrap_or_default();
        let mut content = Map::new();
        for (name, property) in schema["requestedSchema"]["properties"]
            .as_object()
            .into_iter()
            .flatten()
        {
            let value = match (property.get("default"), property["type"].as_str()) {
                (Some(default), _) => default.clone(),
                (None, Some("boolean")) => json!(true),
                (None, Some("integer" | "number")) => json!(1),
                (None, _) => json!("yes"),
            };
            content.insert(name.clone(), value);
        }
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content)))
    }
}

/// The calls that the suite prescribes, or one to every tool.
fn calls(tools: &[Tool], context: &Value) -> Vec<CallToolRequestParams> {
    // One scenario wants to see whether a tool's schema survived the way through us.
    if let [focal, echo] = tools
        && echo.name == "json_schema_echo"
    {
        let mut params = CallToolRequestParams::new("json_schema_echo");
        params.arguments = json!({"schema": *focal.input_schema}).as_object().cloned();
        return vec![params];
    }
    let Some(prescribed) = context["toolCalls"].as_array() else {
        return tools.iter().map(call_of).collect();
    };
    let call = |call: &Value| {
        let mut params = CallToolRequestParams::new(call["name"].as_str().unwrap_or_default().to_owned());
        params.arguments = call["arguments"].as_object().cloned();
        params
    };
    prescribed.iter().map(call).collect()
}

fn call_of(tool: &Tool) -> CallToolRequestParams {
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    let arguments = properties.into_iter().flatten().map(|(name, property)| {
        let value = match property["type"].as_str() {
            Some("integer" | "number") => json!(3),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("x"),
        };
        (name.clone(), value)
    });
    let mut params = CallToolRequestParams::new(tool.name.clone());
    params.arguments = Some(arguments.collect());
    params
}
