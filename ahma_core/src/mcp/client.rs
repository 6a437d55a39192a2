//! The client behind a request: its name and its principal, where several share this server through a bridge, and the time
//! that it waits for an answer.
//!
//! The bridge writes the names into `_meta`, over whatever the client wrote there, and says when a client is gone. Where
//! there is no bridge the name is absent, and everything is the only client's. A message after the answer names its
//! request, so that the bridge knows where to send it.
//!
//! A client that gives up on a request loses its answer, and most do not say how long they wait; so the table of waits
//! holds only what is known of a client, with a margin.

use std::time::Duration;

use ahma_common::{
    ToolPatterns,
    contract::{CLIENT_GONE, META_CLIENT, META_PRINCIPAL, META_PROGRAM, META_RELATED_REQUEST, META_TOOLS},
};
use rmcp::{
    RoleServer,
    model::{CustomNotification, NotificationMetaObject, RequestId, RequestMetaObject},
    service::RequestContext,
};
use serde_json::Value;

use super::server::{Server, ServerSettings};
use crate::operation::{ClientId, Principal};

/// The maker of a request.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// The session, which operations are pushed to.
    pub(super) client: ClientId,
    /// The owner of what it starts, also after the session.
    pub(super) principal: Principal,
}

pub(super) fn caller(server: &Server, meta: &RequestMetaObject) -> Caller {
    Caller {
        client: of(meta),
        principal: principal(server, meta),
    }
}

/// The principal of a request, where the bridge names one; else that of the whole server.
pub(super) fn principal(server: &Server, meta: &RequestMetaObject) -> Principal {
    let named = meta.0.get(META_PRINCIPAL).and_then(Value::as_str);
    named.map_or_else(|| server.settings.principal.clone(), Principal::named)
}

/// The name of the client's program, if the bridge gives one.
pub(super) fn program(meta: &RequestMetaObject) -> Option<String> {
    meta.0
        .get(META_PROGRAM)
        .and_then(Value::as_str)
        .map(str::to_owned)
}

/// The tools that a request may list and call. A limit that cannot be read allows none.
pub(super) fn tool_limit(meta: &RequestMetaObject) -> ToolPatterns {
    match meta.0.get(META_TOOLS) {
        None | Some(Value::Null) => ToolPatterns::any(),
        Some(limit) => limit
            .as_str()
            .and_then(|text| text.parse().ok())
            .unwrap_or_default(),
    }
}

pub(super) fn of(meta: &RequestMetaObject) -> ClientId {
    meta.0.get(META_CLIENT).map(named).unwrap_or_default()
}

/// The client whose end a notification of the bridge announces, and the reason.
pub(super) fn gone(notification: &CustomNotification) -> Option<(ClientId, &str)> {
    let params = notification
        .params
        .as_ref()
        .filter(|_| notification.method == CLIENT_GONE)?;
    let reason = params.get("reason").and_then(Value::as_str);
    Some((
        named(params.get("client")?),
        reason.unwrap_or("the client ended its session"),
    ))
}

pub(super) fn related_to(request: &RequestId) -> NotificationMetaObject {
    let mut meta = NotificationMetaObject::new();
    if let Ok(id) = serde_json::to_value(request) {
        meta.insert(META_RELATED_REQUEST.to_owned(), id);
    }
    meta
}

/// Metadata that addresses a notification to one of several clients.
pub(super) fn meant_for(client: &ClientId) -> Option<NotificationMetaObject> {
    let mut meta = NotificationMetaObject::new();
    meta.insert(META_CLIENT.to_owned(), client.name()?.into());
    Some(meta)
}

fn named(name: &Value) -> ClientId {
    name.as_str().map(ClientId::named).unwrap_or_default()
}

/// Most clients give up after a minute.
pub(crate) const DEFAULT_SYNC_WAIT: Duration = Duration::from_secs(45);

/// By the name that the client gives itself. `claude-code` moves a call to the background after two minutes, the others
/// give it up after five and ten.
const KNOWN_WAITS: [(&str, Duration); 3] = [
    ("claude-code", Duration::from_secs(110)),
    ("codex-mcp-client", Duration::from_secs(240)),
    ("gemini-cli-mcp-client", Duration::from_secs(540)),
];

/// A client that waits as long as it gets progress notifications.
const RESET_BY_PROGRESS: (&str, Duration) = ("opencode", Duration::from_secs(540));

/// Most clients give up a silent request after a minute.
pub(crate) const MAX_QUIET_AWAIT: Duration = Duration::from_secs(50);

/// The longest wait of a client that gets progress notifications, which show it that the request is alive.
pub(super) const MAX_AWAIT: Duration = Duration::from_secs(600);

/// Time that a synchronous call may take: the user's choice, or what its client allows.
pub(super) fn sync_wait(settings: &ServerSettings, ctx: &RequestContext<RoleServer>) -> Duration {
    settings.sync_wait.unwrap_or_else(|| {
        let name = ctx.client_info().map(|client| client.name);
        let has_progress = ctx.meta.get_progress_token().is_some();
        of_client(name.as_deref().unwrap_or_default(), has_progress)
    })
}

/// Time that `await` may take: the time asked for, but no longer than the client allows.
pub(super) fn await_wait(
    asked: Option<Duration>,
    settings: &ServerSettings,
    ctx: &RequestContext<RoleServer>,
) -> Duration {
    let has_progress = ctx.meta.get_progress_token().is_some();
    await_within(asked, sync_wait(settings, ctx), has_progress)
}

fn await_within(asked: Option<Duration>, allowed: Duration, has_progress: bool) -> Duration {
    let longest = if has_progress {
        MAX_AWAIT
    } else {
        allowed.max(MAX_QUIET_AWAIT)
    };
    asked.unwrap_or(allowed).min(longest)
}

fn of_client(name: &str, has_progress: bool) -> Duration {
    let resets = has_progress.then_some(RESET_BY_PROGRESS);
    KNOWN_WAITS
        .into_iter()
        .chain(resets)
        .find(|(known, _)| *known == name)
        .map_or(DEFAULT_SYNC_WAIT, |(_, wait)| wait)
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
