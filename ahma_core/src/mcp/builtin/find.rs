//! `ahma_find`: searches all tools, above all those that are not listed.

use std::{collections::BTreeSet, fmt::Write as _, sync::Arc};

use rmcp::{
    RoleServer,
    model::{CallToolResult, JsonObject, Tool},
    service::RequestContext,
};
use serde_json::json;

use super::{
    lookup::finish,
    registry::{reads_only, tool},
};
use crate::{
    call::NamedArguments,
    catalog::{Described, Expose, SearchIndex},
    mcp::{client, convert::client_meta, error::CallRefusal, server::Server},
};

pub(super) const NAME: &str = "ahma_find";

const MAX_TOOLS: u64 = 5;

/// Bytes of family names in the description: enough for all that are shipped, and a few where the list is to stay small
/// however many tool files there are.
const fn max_families_bytes(expose: Expose) -> usize {
    match expose {
        Expose::Core | Expose::All => 600,
        Expose::Search => 24,
    }
}

/// Characters of a signature, except that of the best answer; a call with wrong arguments gets the whole one.
const MAX_SIGNATURE_CHARS: usize = 160;

/// `families` are those of the tools that are not listed.
pub(super) fn definition(families: &BTreeSet<&str>, expose: Expose) -> Tool {
    let properties = json!({
        "query": { "type": "string" },
        "limit": { "type": "integer" },
    });
    let description = format!(
        "Finds hidden tools by what they do (`who changed this line`): {}.",
        shortened(families, max_families_bytes(expose))
    );
    tool(NAME, description, properties, &["query"])
        .with_annotations(reads_only())
        .with_meta(client_meta("anthropic/searchHint", "find more tools"))
}

fn shortened(families: &BTreeSet<&str>, max_bytes: usize) -> String {
    let mut text = String::new();
    for (index, family) in families.iter().enumerate() {
        if text.len() + family.len() > max_bytes {
            let _ = write!(text, " and {} more", families.len() - index);
            break;
        }
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{family}");
    }
    text
}

pub(super) async fn call(
    server: &Arc<Server>,
    arguments: JsonObject,
    ctx: &RequestContext<RoleServer>,
) -> Result<CallToolResult, CallRefusal> {
    let mut arguments = NamedArguments::new(arguments);
    let query = arguments.required_text("query");
    let limit = arguments.integer("limit", 1..=MAX_TOOLS).unwrap_or(MAX_TOOLS);
    finish(server, arguments, || definition(&BTreeSet::new(), Expose::All))?;
    let allowed = client::tool_limit(&ctx.meta);
    let toolbox = server.toolbox.loaded().await;
    let remote = match &server.remotes {
        Some(remotes) => remotes.list(&toolbox, ctx).await,
        None => Vec::new(),
    };
    let tools: Vec<Described<'_>> = (toolbox.present.tools().map(|tool| tool.described()))
        .chain(remote.iter().map(|tool| Described {
            name: &tool.name,
            description: tool.description.as_deref().unwrap_or_default(),
            input_schema: &tool.input_schema,
        }))
        .filter(|tool| allowed.allow(tool.name))
        .collect();
    let found = SearchIndex::build(tools.iter().copied());
    let mut text = String::new();
    for name in found.search(&query, limit as usize) {
        let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
            continue;
        };
        let mut signature = tool.signature();
        if !text.is_empty()
            && let Some((cut, _)) = signature.char_indices().nth(MAX_SIGNATURE_CHARS)
        {
            signature.truncate(cut);
            signature.push('…');
        }
        let _ = writeln!(text, "{signature} - {}", tool.summary());
    }
    if text.is_empty() {
        text = format!("no tool matches `{query}`; ask in other words, or use sandboxed_shell");
    } else {
        text.push_str("Call one with ahma_call {\"tool\": NAME, \"arguments\": {…}}.");
    }
    Ok(server.results.message(text))
}
