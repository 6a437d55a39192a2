//! Operations and the state of the server as resources, under `ahma://`.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ErrorData,
    model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate},
};
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::{
    Inner,
    audience::Change,
    builtin::{StatusReport, status_report},
    changes::Changes,
    error,
    report::OperationReport,
};
use crate::operation::{Operation, OperationChange, OutputQuery, Owner, PageStart};

const OPERATIONS: &str = "ahma://operations";
const STATUS: &str = "ahma://status";
/// A resource that changes all the time is told of this often.
const PACE: Duration = Duration::from_millis(100);

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

/// What a URI of ours means.
#[derive(Debug, PartialEq, Eq)]
enum Address<'a> {
    Operations,
    Operation(&'a str),
    Output(&'a str),
    Status,
}

fn parse(uri: &str) -> Option<Address<'_>> {
    match uri
        .strip_prefix("ahma://")?
        .split('/')
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["operations"] => Some(Address::Operations),
        ["operations", id] => Some(Address::Operation(id)),
        ["operations", id, "output"] => Some(Address::Output(id)),
        ["status"] => Some(Address::Status),
        _ => None,
    }
}

pub(super) async fn read(server: &Inner, owner: &Owner, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let unknown = || error::unknown_resource(uri);
    let operation = |id: &str| operation_of(server, owner, id).ok_or_else(unknown);
    let (text, kind) = match parse(uri).ok_or_else(unknown)? {
        Address::Operations => {
            let operations = server.engine.operations_of(owner);
            let rows: Vec<_> = operations
                .iter()
                .map(|operation| OperationReport::row(&operation.snapshot()))
                .collect();
            (pretty(&json!({ "operations": rows })), JSON)
        }
        Address::Operation(id) => (pretty(&OperationReport::full(&operation(id)?)), JSON),
        Address::Output(id) => {
            let everything = OutputQuery::Range {
                from: PageStart::Line(1),
                max_lines: u64::MAX,
            };
            let read = operation(id)?.output().read(everything).await;
            (
                read.map_err(|error| error::unreadable("the output", &error))?
                    .text,
                TEXT,
            )
        }
        Address::Status => {
            let report: StatusReport = status_report(server, owner, None);
            (pretty(&report), JSON)
        }
    };
    Ok(ReadResourceResult::new(vec![
        ResourceContents::text(text, uri).with_mime_type(kind),
    ]))
}

fn operation_of(server: &Inner, owner: &Owner, id: &str) -> Option<Operation> {
    server
        .engine
        .get(id)
        .filter(|operation| operation.owner() == owner)
}

/// Whether this may be a resource of some client.
pub(super) fn is_address(uri: &str) -> bool {
    parse(uri).is_some()
}

/// Whether the client has this resource now.
pub(super) fn exists(server: &Inner, owner: &Owner, uri: &str) -> bool {
    match parse(uri) {
        Some(Address::Operations | Address::Status) => true,
        Some(Address::Operation(id) | Address::Output(id)) => operation_of(server, owner, id).is_some(),
        None => false,
    }
}

/// Tells of what an operation prints and finds while it runs, for as long as someone is subscribed to it.
pub(super) fn watch(server: &Arc<Inner>, owner: &Owner, uri: String) {
    let Some(Address::Operation(id) | Address::Output(id)) = parse(&uri) else {
        return;
    };
    let Some(operation) = operation_of(server, owner, id) else {
        return;
    };
    if operation.ended().is_some() || !server.audience.begin_watch(&uri) {
        return;
    }
    let watching = server.clone();
    server.spawn(async move {
        let mut changes = Changes::of(std::slice::from_ref(&operation));
        let mut pace_ends = Instant::now();
        loop {
            tokio::select! {
                // The end is told to everyone, in `tell_of`.
                _ = operation.outcome() => break watching.audience.end_watch(&uri),
                () = changes.next(|| pace_ends) => {}
            }
            if !watching.audience.goes_on_watching(&uri) {
                break;
            }
            let change = Change::Operation(operation.owner(), &uri);
            watching.audience.tell(change).await;
            pace_ends = Instant::now() + PACE;
        }
    });
}

/// Tells those who subscribed that an operation is new, begins, ends or is forgotten.
pub(super) async fn tell_of(server: &Arc<Inner>, OperationChange { id, owner }: &OperationChange) {
    let of_operation = format!("{OPERATIONS}/{id}");
    let of_output = format!("{OPERATIONS}/{id}/output");
    for uri in [OPERATIONS, STATUS, &of_operation, &of_output] {
        if server.audience.wants(uri) {
            server.audience.tell(Change::Operation(owner, uri)).await;
        }
    }
}

/// Tells those who subscribed to anything that it may have changed.
pub(super) async fn tell_of_all(server: &Arc<Inner>) {
    for uri in server.audience.subscriptions() {
        server.audience.tell(Change::Resource(&uri)).await;
    }
}

/// Tells those who subscribed that the state of the tools changed.
pub(super) async fn tell_of_tools(server: &Arc<Inner>) {
    if server.audience.wants(STATUS) {
        server.audience.tell(Change::Resource(STATUS)).await;
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
            ("ahma://operations", Some(Address::Operations)),
            ("ahma://operations/op_1", Some(Address::Operation("op_1"))),
            ("ahma://operations/op_1/output", Some(Address::Output("op_1"))),
            ("ahma://status", Some(Address::Status)),
            ("ahma://operations/op_1/output/more", None),
            ("ahma://nothing", None),
            ("file:///etc/passwd", None),
        ] {
            assert_eq!(parse(uri), expected, "{uri}");
        }
    }
}
