//! This server's description of itself in the history: its client, its tools, its sandbox.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use serde_json::{Value, json};

use super::{
    server::Server,
    tool_list::{cost_of, costs},
};
use crate::toolbox::Toolbox;

/// Changes come in bursts, above all at the start, and describing all tools takes longer than the rest of a session's start.
/// Sessions that end sooner have no description.
const SETTLING: Duration = Duration::from_millis(500);

/// Records them after the start, and after every change of the client or the tools.
pub(super) async fn follow(server: Arc<Server>) {
    let Some(history) = &server.settings.history else {
        return;
    };
    let mut tools = server.toolbox.changes();
    loop {
        tokio::time::sleep(SETTLING).await;
        // A client that introduced itself meanwhile is part of this description.
        let _ = server.subscriptions.peer_came().now_or_never();
        let toolbox = tools.borrow_and_update().clone();
        if toolbox.loads > 0 {
            history.note_facts(facts(&server, &toolbox).to_string());
        }
        tokio::select! {
            changed = tools.changed() => if changed.is_err() { return },
            () = server.subscriptions.peer_came() => {}
        }
    }
}

fn facts(server: &Server, toolbox: &Toolbox) -> Value {
    let settings = &server.settings;
    let client = server.subscriptions.peer().and_then(|peer| {
        let info = peer.peer_info()?;
        let client = &info.client_info;
        Some(json!({ "name": client.name, "version": client.version }))
    });
    json!({
        // A bridge is the only client of this server, and knows its own clients.
        "client": client.filter(|_| !settings.has_bridge),
        "has_bridge": settings.has_bridge,
        "tier": settings.sandbox.tier,
        "network": settings.sandbox.network,
        "sandbox": settings.sandbox_report,
        "directory": toolbox.directory,
        "directory_problem": toolbox.directory_problem,
        "tools": tools(toolbox),
        "problems": toolbox.problems,
    })
}

fn tools(toolbox: &Toolbox) -> Vec<Value> {
    let listed = costs(toolbox);
    let is_listed = |name: &str| listed.iter().any(|cost| cost.name == name);
    let of_files = toolbox.catalog.tools().map(|tool| {
        json!({
            "name": tool.name,
            "file": tool.file,
            "bytes": cost_of(tool).bytes,
            "listed": is_listed(&tool.name),
            "missing": toolbox.unavailable(&tool.name).map(|missing| &missing.reason),
        })
    });
    let built_in = listed
        .iter()
        .filter(|cost| toolbox.catalog.get(&cost.name).is_none());
    let built_in = built_in.map(|cost| json!({ "name": cost.name, "bytes": cost.bytes, "listed": true }));
    let mut tools: Vec<Value> = of_files.chain(built_in).collect();
    tools.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
    tools
}
