//! The audit trail: its newest lines, and whether it is as it was written.

use std::path::Path;

use ahma_http_bridge::{newest_lines, verify_audit};
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::{
    layout::{self, Head::Text, operation_link, table, text, written_moment},
    routes::Visit,
    source::SourceError,
};

/// Lines on the page.
const LINES: usize = 200;

pub(super) async fn page(
    Visit {
        console, operator, ..
    }: &Visit,
) -> Result<Markup, SourceError> {
    let of_server = operator.server.as_ref().and_then(|server| server.audit_file());
    let content = match of_server.or_else(|| console.audit_file.clone()) {
        None => html! {
            p { "No audit trail is known here. A server over HTTP writes one with " code { "--audit-file FILE" } "; "
                code { "ahma_mcp --audit-file FILE console" } " shows it." }
        },
        Some(file) => tokio::task::spawn_blocking(move || trail(&file))
            .await
            .unwrap_or_else(|_| html! { p { "It cannot be read." } }),
    };
    Ok(layout::page(operator, "/console/audit", "Audit", &content))
}

fn trail(file: &Path) -> Markup {
    let verdict = match verify_audit(file) {
        Ok(lines) => {
            html! { p { span.state.completed { "intact" } " The chain of " (lines) " lines holds." } }
        }
        Err(error) => html! { p { span.state.failed { "broken" } " " (text(&error.to_string())) } },
    };
    let lines = match newest_lines(file, LINES) {
        Ok(lines) => lines,
        Err(error) => return html! { (verdict) p { "It cannot be read: " (error.to_string()) } },
    };
    html! {
        (verdict)
        (table("Newest lines", &[Text("Time (UTC)"), Text("Event"), Text("Client"), Text("Details")], &html! {
            @for line in lines.iter().rev() { (row(line)) }
        }))
    }
}

fn row(line: &str) -> Markup {
    let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(line) else {
        return html! { tr { td colspan="4" { (text(line)) } } };
    };
    let mut take = |name: &str| {
        fields
            .remove(name)
            .and_then(|value| value.as_str().map(str::to_owned))
    };
    let (time, event, client) = (take("time"), take("event"), take("principal"));
    let operation = take("operation");
    take("previous");
    html! {
        tr {
            td { (time.as_deref().map_or_else(|| text("–"), written_moment)) }
            td { (text(event.as_deref().unwrap_or("–"))) }
            td { (text(client.as_deref().unwrap_or("–"))) }
            td.main { @if let Some(id) = &operation { (operation_link(id, id)) " " } (details(&fields)) }
        }
    }
}

/// No value, or no findings.
fn is_nothing(name: &str, value: &Value) -> bool {
    match value {
        Value::Object(counts) if name == "findings" => counts.values().all(|count| *count == 0),
        other => other.is_null(),
    }
}

fn details(fields: &Map<String, Value>) -> Markup {
    let known = fields.iter().filter(|(name, value)| !is_nothing(name, value));
    html! {
        @for (name, value) in known {
            span.field { span.name { (text(name)) } " " @match value { Value::String(value) => (text(value)), other => (text(&other.to_string())) } } " "
        }
    }
}
