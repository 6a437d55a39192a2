//! Operations and the state of the server as resources, under `ahma://`.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ErrorData,
    model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate},
};
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    builtin::{StatusReport, status_report},
    client::Caller,
    error,
    report::OperationReport,
    server::Server,
    subscriptions::Change,
    watcher::{Pace, Sink, Watcher},
};
use crate::operation::{ClientId, Operation, OperationChange, OutputQuery, PageStart};

const OPERATIONS: &str = "ahma://operations";
const STATUS: &str = "ahma://status";

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

/// The resources that are always there.
pub(super) fn list() -> Vec<Resource> {
    vec![
        Resource::new(OPERATIONS, "operations")
            .with_title("Operations")
            .with_description("Every known operation in short, oldest first.")
            .with_mime_type(JSON),
        Resource::new(STATUS, "status")
            .with_title("Status")
            .with_description(
                "The sandbox, running operations, tools that are not available, mistakes in tool files.",
            )
            .with_mime_type(JSON),
    ]
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("ahma://operations/{id}", "operation")
            .with_title("Operation")
            .with_description("How one operation stands or ended, with its output in short.")
            .with_mime_type(JSON),
        ResourceTemplate::new("ahma://operations/{id}/output", "operation output")
            .with_title("Output of an operation")
            .with_description(
                "What it printed, from the beginning; the `output` tool reads the rest if it is long.",
            )
            .with_mime_type(TEXT),
    ]
}

/// A URI of this server, read.
#[derive(Debug, PartialEq, Eq)]
enum ResourceAddress<'a> {
    Operations,
    Operation(&'a str),
    Output(&'a str),
    Status,
}

fn parse(uri: &str) -> Option<ResourceAddress<'_>> {
    let parts: Vec<&str> = uri.strip_prefix("ahma://")?.split('/').collect();
    match parts.as_slice() {
        ["operations"] => Some(ResourceAddress::Operations),
        ["operations", id] => Some(ResourceAddress::Operation(id)),
        ["operations", id, "output"] => Some(ResourceAddress::Output(id)),
        ["status"] => Some(ResourceAddress::Status),
        _ => None,
    }
}

pub(super) async fn read(
    server: &Server,
    caller: &Caller,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let unknown = || error::unknown_resource(uri);
    let operation = async |id: &str| {
        let found = server.operation_of(&caller.principal, id).await;
        found.ok_or_else(unknown)
    };
    let (text, kind) = match parse(uri).ok_or_else(unknown)? {
        ResourceAddress::Operations => {
            let operations = server.operations_of(caller).await;
            let row = |operation: &Operation| OperationReport::row(&operation.snapshot());
            let rows: Vec<_> = operations.iter().map(row).collect();
            (pretty(&json!({ "operations": rows })), JSON)
        }
        ResourceAddress::Operation(id) => (pretty(&OperationReport::full(&operation(id).await?)), JSON),
        ResourceAddress::Output(id) => {
            let everything = OutputQuery::Range {
                from: PageStart::Line(1),
                max_lines: u64::MAX,
            };
            let read = operation(id).await?.output().read(everything).await;
            let page = read.map_err(|error| error::unreadable("the output", &error))?;
            (page.text, TEXT)
        }
        ResourceAddress::Status => {
            let report: StatusReport = status_report(server, server.operations_of(caller).await, None);
            (pretty(&report), JSON)
        }
    };
    Ok(ReadResourceResult::new(vec![
        ResourceContents::text(text, uri).with_mime_type(kind),
    ]))
}

/// True if a URI may be a resource of some client.
pub(super) fn is_address(uri: &str) -> bool {
    parse(uri).is_some()
}

/// True if the caller has this resource now.
pub(super) async fn exists(server: &Server, caller: &Caller, uri: &str) -> bool {
    match parse(uri) {
        Some(ResourceAddress::Operations | ResourceAddress::Status) => true,
        Some(ResourceAddress::Operation(id) | ResourceAddress::Output(id)) => {
            server.operation_of(&caller.principal, id).await.is_some()
        }
        None => false,
    }
}

/// Notifies subscribers of changes of a running operation.
#[derive(Debug)]
pub(super) struct ResourceSink {
    server: Arc<Server>,
    client: ClientId,
    uri: String,
    /// Cancelled when there is no subscriber any more.
    unsubscribed: CancellationToken,
}

impl ResourceSink {
    pub(super) const PACE: Pace = Pace {
        interval: Duration::from_millis(100),
        heartbeat: None,
        is_behind: false,
    };

    pub(super) async fn send(&mut self) {
        let subscriptions = &self.server.subscriptions;
        if subscriptions.goes_on_watching(&self.uri) {
            let change = Change::Operation(&self.client, &self.uri);
            subscriptions.notify(change).await;
        } else {
            self.unsubscribed.cancel();
        }
    }
}

/// Notifies subscribers of output and findings of a running operation, as long as there are subscribers.
pub(super) async fn watch(server: &Arc<Server>, caller: &Caller, uri: String) {
    let Some(ResourceAddress::Operation(id) | ResourceAddress::Output(id)) = parse(&uri) else {
        return;
    };
    let Some(operation) = server.operation_of(&caller.principal, id).await else {
        return;
    };
    if operation.ended().is_some() || !server.subscriptions.begin_watch(&uri) {
        return;
    }
    let unsubscribed = CancellationToken::new();
    let sink = ResourceSink {
        server: server.clone(),
        client: caller.client.clone(),
        uri: uri.clone(),
        unsubscribed: unsubscribed.clone(),
    };
    let mut watcher = Watcher::new(std::slice::from_ref(&operation)).with(Some(Sink::Resource(sink)));
    let watching = server.clone();
    server.spawn(async move {
        let ended = watcher
            .during(unsubscribed.run_until_cancelled(operation.outcome()))
            .await;
        // `notify_operation` announces the end itself.
        if ended.is_some() {
            watching.subscriptions.end_watch(&uri);
        }
    });
}

/// Notifies subscribers that an operation is new, begins, ends or is forgotten.
pub(super) async fn notify_operation(server: &Arc<Server>, OperationChange { id, client }: &OperationChange) {
    let of_operation = format!("{OPERATIONS}/{id}");
    let of_output = format!("{OPERATIONS}/{id}/output");
    for uri in [OPERATIONS, STATUS, &of_operation, &of_output] {
        if server.subscriptions.wants(uri) {
            server.subscriptions.notify(Change::Operation(client, uri)).await;
        }
    }
}

/// Notifies subscribers that any resource may have changed.
pub(super) async fn notify_all(server: &Arc<Server>) {
    for uri in server.subscriptions.uris() {
        server.subscriptions.notify(Change::Resource(&uri)).await;
    }
}

/// Notifies subscribers that the state of the tools has changed.
pub(super) async fn notify_status(server: &Arc<Server>) {
    if server.subscriptions.wants(STATUS) {
        server.subscriptions.notify(Change::Resource(STATUS)).await;
    }
}

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_exactly() {
        for (uri, expected) in [
            ("ahma://operations", Some(ResourceAddress::Operations)),
            ("ahma://operations/op_1", Some(ResourceAddress::Operation("op_1"))),
            (
                "ahma://operations/op_1/output",
                Some(ResourceAddress::Output("op_1")),
            ),
            ("ahma://status", Some(ResourceAddress::Status)),
            ("ahma://operations/op_1/output/more", None),
            ("ahma://nothing", None),
            ("file:///etc/passwd", None),
        ] {
            assert_eq!(parse(uri), expected, "{uri}");
        }
    }
}
