//! The client and the principal that a request comes from, where several share this server through a bridge.
//!
//! The bridge writes the names into `_meta`, over whatever the client wrote there, and says when a client is gone. Where
//! there is no bridge the name is absent, and everything is the only client's. A message after the answer names its
//! request, so that the bridge knows where to send it.

use ahma_common::ToolPatterns;
use ahma_common::contract::{
    CLIENT_GONE, META_CLIENT, META_PRINCIPAL, META_PROGRAM, META_RELATED_REQUEST, META_TOOLS,
};
use rmcp::model::{CustomNotification, NotificationMetaObject, RequestId, RequestMetaObject};
use serde_json::Value;

use super::server::Server;
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

/// What the client's program calls itself, where the bridge says so.
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
