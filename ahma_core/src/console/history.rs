//! What ran: a search over everything that is kept.

use std::time::{Duration, SystemTime};

use ahma_common::value;
use ahma_http_bridge::Operator;
use maud::{Markup, html};

use super::{
    layout::{self, Query, SEVERITIES, bytes, moment, table, text},
    routes::Console,
    source::SourceError,
};
use crate::{
    history::{OperationFilter, OperationRow},
    observe::Severity,
    operation::OperationState,
};

/// Operations on a page.
const ROWS: usize = 200;

/// Stretches of time to choose from.
const TIMES: [(&str, &str); 5] = [
    ("", "any time"),
    ("1h", "the last hour"),
    ("1d", "the last day"),
    ("7d", "the last week"),
    ("30d", "the last month"),
];

pub(super) async fn page(
    console: &Console,
    operator: &Operator,
    query: &Query,
) -> Result<Markup, SourceError> {
    let rows = console.source.operations(operator, filter(query)).await?;
    let head = [
        "Started", "Status", "Tool", "Command", "Client", "Took", "Findings", "Output",
    ];
    let older = rows.last().filter(|_| rows.len() == ROWS);
    let content = html! {
        (search(query))
        @if rows.is_empty() { p { "Nothing was found." } } @else {
            (table("Operations", &head, &html! { @for row in &rows { (operation(row)) } }))
        }
        @if let Some(last) = older {
            p { a href={ "/console/history?" (query.with("until", &millis(last.created_at).to_string())) } { "Older" } }
        }
    };
    Ok(layout::page(operator, "/console/history", "History", &content))
}

fn filter(query: &Query) -> OperationFilter {
    let since = query
        .text("since")
        .and_then(|since| value::positive_duration(&since).ok());
    let ago = |age: Duration| SystemTime::now().checked_sub(age);
    OperationFilter {
        text: query.text("text"),
        tool: query.text("tool"),
        client: query.text("client"),
        state: query
            .text("status")
            .and_then(|status| OperationState::named(&status)),
        least: query
            .text("severity")
            .and_then(|severity| Severity::parse(&severity)),
        since: since.and_then(ago),
        until: query.number("until").and_then(at_millis),
        limit: ROWS,
        ..OperationFilter::default()
    }
}

/// Moments in addresses. Numbers of operations would not do: each place of the history has its own.
fn millis(at: SystemTime) -> u128 {
    at.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis()
}

fn at_millis(millis: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}

fn search(query: &Query) -> Markup {
    let field = |label: &str, name: &str| {
        html! { label { (label) " " input name=(name) value=[query.text(name)] autocomplete="off"; } }
    };
    let choice = |label: &str, name: &str, choices: &[(&str, &str)]| {
        let chosen = query.text(name).unwrap_or_default();
        html! {
            label { (label) " " select name=(name) {
                @for (value, shown) in choices { option value=(value) selected[*value == chosen] { (shown) } }
            } }
        }
    };
    let states = OperationState::ALL
        .iter()
        .map(|state| (state.as_str(), state.as_str()));
    let states: Vec<_> = std::iter::once(("", "any")).chain(states).collect();
    let severities = SEVERITIES
        .iter()
        .map(|severity| (severity.as_str(), severity.as_str()));
    let severities: Vec<_> = std::iter::once(("", "any")).chain(severities).collect();
    html! {
        form.filter method="get" role="search" {
            (field("Text", "text"))
            (field("Tool", "tool"))
            (field("Client", "client"))
            (choice("Status", "status", &states))
            (choice("Severity", "severity", &severities))
            (choice("Time", "since", &TIMES))
            button { "Search" }
        }
    }
}

fn operation(row: &OperationRow) -> Markup {
    html! {
        tr {
            td { (moment(row.created_at)) }
            td { (layout::state(row.state)) }
            td { (text(&row.tool)) }
            td.command { (layout::operation_link(row)) }
            td { (layout::client(row)) }
            td { (layout::took(row)) }
            td { (layout::counts(&row.finding_counts)) }
            td.number { (bytes(row.output_bytes)) }
        }
    }
}
