//! The page History: a search over everything that is kept.

use std::time::{Duration, SystemTime};

use ahma_common::value;
use maud::{Markup, html};

use super::{
    layout::{
        self,
        Head::{Number, Text},
        SEVERITIES, bytes, moment, nothing, number, table, text,
    },
    pool::missing_here,
    query::Query,
    routes::Visit,
    source::SourceError,
};
use crate::{
    history::{OperationFilter, OperationRow},
    observe::Severity,
    operation::OperationState,
};

/// Operations on a page.
pub(super) const ROWS: usize = 200;

/// Stretches of time to choose from.
const TIMES: [(&str, &str); 5] = [
    ("", "any time"),
    ("1h", "the last hour"),
    ("1d", "the last day"),
    ("7d", "the last week"),
    ("30d", "the last month"),
];

pub(super) async fn page(visit: &Visit) -> Result<Markup, SourceError> {
    let Visit {
        console,
        operator,
        query,
    } = visit;
    let filter = filter(query)?;
    let rows = console.source.operations(operator, filter).await?;
    let head = [
        Text("Started (UTC)"),
        Text("Status"),
        Text("Command"),
        Text("Tool"),
        Text("Client"),
        Text("Findings"),
        Number("Took"),
        Number("Output"),
    ];
    let older = rows.last().filter(|_| rows.len() == ROWS);
    let content = html! {
        (missing_here(console))
        (search(query))
        @if rows.is_empty() { (nothing("Nothing was found.")) } @else {
            (table("Operations", &head, &html! { @for row in &rows { (operation(row)) } }))
        }
        @if let Some(last) = older {
            p.more { a href={ "/console/history?" (query.with("until", &millis(last.created_at).to_string())) } { "Older" } }
        }
    };
    Ok(layout::page(operator, "/console/history", "History", &content))
}

/// The search that a form or an address asks for.
pub(super) fn filter(query: &Query) -> Result<OperationFilter, SourceError> {
    let ago = |age: Duration| {
        SystemTime::now()
            .checked_sub(age)
            .unwrap_or(SystemTime::UNIX_EPOCH)
    };
    Ok(OperationFilter {
        text: query.text("text"),
        tool: query.text("tool"),
        client: query.text("client"),
        state: query.read_as("status", OperationState::named)?,
        least: query.read_as("severity", Severity::parse)?,
        since: query
            .read_as("since", |since| value::positive_duration(since).ok())?
            .map(ago),
        until: query.read_as("until", at_millis)?,
        limit: ROWS,
        ..OperationFilter::default()
    })
}

/// Moments in addresses. Numbers of operations would not do: each place of the history has its own.
fn millis(at: SystemTime) -> u128 {
    at.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis()
}

fn at_millis(millis: &str) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis.parse().ok()?))
}

fn search(query: &Query) -> Markup {
    let field = |label: &str, name: &str| {
        html! { label { (label) input name=(name) value=[query.text(name)] autocomplete="off"; } }
    };
    let choice = |label: &str, name: &str, choices: &[(&str, &str)]| {
        let chosen = query.text(name).unwrap_or_default();
        html! {
            label { (label) select name=(name) {
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
            td { (layout::state(row.state.as_str())) }
            td.main { (layout::operation_link(row.id.as_str(), &row.command)) }
            td { (text(&row.tool)) }
            td { (layout::client(row)) }
            td.counts { (layout::counts(&row.finding_counts)) }
            (number("Took", &layout::took(row)))
            (number("Output", &html! { (bytes(row.output_bytes)) }))
        }
    }
}
