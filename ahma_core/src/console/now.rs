//! The page Now: running work, its clients, and the load of the machine.

use std::time::{Duration, SystemTime};

use ahma_common::words::counted;
use ahma_http_bridge::Operator;
use maud::{Markup, html};
use serde_json::Value;

use super::{
    buckets::buckets,
    layout::{
        self,
        Head::{Number, Text},
        bytes, form_token, labelled, moment, nothing, number, since, span, table, text, written_moment,
    },
    live::{PageChange, PageView},
    machine::{INTERVAL, SAMPLES},
    plot::plot,
    pool::PoolParts,
    routes::Console,
    source::{SourceError, facts, sees_only_named},
};
use crate::{
    history::{OperationFilter, OperationRow, ServerRow, Span, UsageSample},
    operation::OperationState,
};

/// Limit of operations on the page. A longer list is not read.
const MAX_SHOWN: usize = 500;

pub(super) async fn page(console: &Console, operator: &Operator) -> Result<Markup, SourceError> {
    let parts = Parts::read(console, operator).await?;
    let content = html! {
        div data-live="/console/now/events" {
            (layout::stands_still())
            section { h2.time { "The last 10 minutes" } div id="plots" { (parts.plots()) } }
            section { h2 { "Operations" } div id="operations" { (parts.operations()) } }
            @if operator.server.is_some() {
                section { h2 { "Sessions" } div id="sessions" { (parts.sessions(operator)) } }
            }
            section { h2 { (parts.servers_heading()) } div id="servers" { (parts.servers()) } }
        }
    };
    Ok(layout::page(operator, "/", "Now", &content))
}

/// The page while it is open.
#[derive(Debug)]
pub(super) struct NowView {
    console: Console,
    operator: Operator,
}

impl NowView {
    pub(super) fn new(console: Console, operator: Operator) -> Self {
        Self { console, operator }
    }
}

impl PageView for NowView {
    fn console(&self) -> &Console {
        &self.console
    }

    async fn changes(&mut self) -> Result<Vec<PageChange>, SourceError> {
        let parts = Parts::read(&self.console, &self.operator).await?;
        let mut changes = vec![
            PageChange::Content("plots", parts.plots()),
            PageChange::Content("operations", parts.operations()),
            PageChange::Content("servers", parts.servers()),
        ];
        if self.operator.server.is_some() {
            changes.push(PageChange::Content("sessions", parts.sessions(&self.operator)));
        }
        Ok(changes)
    }
}

/// Contents of the page.
struct Parts {
    /// On a front end, in place of what runs on this machine.
    pool: Option<PoolParts>,
    open: Vec<(OperationRow, Vec<UsageSample>)>,
    servers: Vec<ServerRow>,
    sessions: Vec<Value>,
    /// Load and share of memory.
    machine: Vec<(f64, f64)>,
    spans: Vec<Span>,
    now: SystemTime,
}

impl Parts {
    async fn read(console: &Console, operator: &Operator) -> Result<Self, SourceError> {
        let now = SystemTime::now();
        let only_named = sees_only_named(operator);
        let filter = OperationFilter {
            only_open: true,
            only_named,
            limit: MAX_SHOWN,
            ..OperationFilter::default()
        };
        let begin = now.checked_sub(INTERVAL * SAMPLES as u32).unwrap_or(now);
        let read = console.source.read(move |reader| {
            let rows = reader.operations(&filter)?;
            let with_usage = |row: OperationRow| reader.usage(&row).map(|usage| (row, usage));
            let open = rows.into_iter().map(with_usage).collect::<Result<Vec<_>, _>>()?;
            Ok((open, reader.spans(begin, only_named)?))
        });
        let (open, spans): (Vec<_>, Vec<_>) = read.await?.into_iter().unzip();
        Ok(Self {
            pool: PoolParts::read(console, operator).await,
            open: open.concat(),
            spans: spans.concat(),
            servers: console.source.servers(operator).await?,
            sessions: operator
                .server
                .as_ref()
                .map(|server| server.sessions())
                .unwrap_or_default(),
            machine: console
                .machine
                .samples()
                .iter()
                .map(|sample| (sample.load, sample.memory))
                .collect(),
            now,
        })
    }

    fn plots(&self) -> Markup {
        let of_machine = |value: fn(&(f64, f64)) -> f64| -> Vec<Option<f64>> {
            let missing = SAMPLES.saturating_sub(self.machine.len());
            let known = self.machine.iter().map(|sample| Some(value(sample)));
            std::iter::repeat_n(None, missing).chain(known).collect()
        };
        let (running, latency) = buckets(&self.spans, self.now);
        html! {
            (plot("Load", &of_machine(|sample| sample.0), 1.0, |load| format!("{load:.1}")))
            (plot("Memory", &of_machine(|sample| sample.1), 1.0, |share| format!("{:.0} %", share * 100.0)))
            @if self.pool.is_none() {
                (plot("Operations", &running, 1.0, |count| format!("{count:.0}")))
                (plot("Median duration", &latency, 1.0, |seconds| span(Duration::from_secs_f64(seconds))))
            }
        }
    }

    fn operations(&self) -> Markup {
        if let Some(pool) = &self.pool {
            return pool.operations();
        }
        let (running, queued): (Vec<_>, Vec<_>) = self
            .open
            .iter()
            .partition(|(row, _)| row.state == OperationState::Running);
        let head = [
            Text("Status"),
            Text("Command"),
            Text("Tool"),
            Text("Client"),
            Text("Progress"),
            Number("For"),
            Number("Processor"),
            Number("Memory"),
        ];
        html! {
            @if self.open.is_empty() { (nothing("Nothing runs. What a client starts appears here by itself.")) } @else {
                p.count { (counted(running.len() as u64, "running operation")) ", " (queued.len()) " queued" }
                (table("Operations", &head, &html! { @for (row, usage) in running.into_iter().chain(queued) { (operation(row, usage)) } }))
            }
        }
    }

    fn sessions(&self, operator: &Operator) -> Markup {
        let head = [
            Text("Client"),
            Text("Principal"),
            Text("Scope"),
            Text("Address"),
            Text("Since (UTC)"),
            Number("Operations"),
            Text("Action"),
        ];
        let field = |session: &Value, name: &str| text(session[name].as_str().unwrap_or("–"));
        html! {
            @if self.sessions.is_empty() { (nothing("No client is connected.")) } @else {
                (table("Sessions", &head, &html! {
                    @for session in &self.sessions {
                        @let client = &session["client"];
                        tr id={ "session-" (session["id"].as_str().unwrap_or_default()) } {
                            td.main { (text(client["name"].as_str().unwrap_or("–"))) " " (text(client["version"].as_str().unwrap_or_default())) }
                            td { (field(session, "principal")) }
                            td { (field(session, "scope")) }
                            td { (field(session, "address")) }
                            td { (written_moment(session["since"].as_str().unwrap_or_default())) }
                            (number("Operations", &html! { (session["operations"]) }))
                            td {
                                form method="post" action={ "/console/sessions/" (session["id"].as_str().unwrap_or_default()) "/end" } {
                                    (form_token(operator))
                                    button { "End session" }
                                }
                            }
                        }
                    }
                }))
            }
        }
    }

    fn servers_heading(&self) -> &'static str {
        match self.pool {
            Some(_) => "Workers",
            None => "Servers",
        }
    }

    fn servers(&self) -> Markup {
        if let Some(pool) = &self.pool {
            return pool.workers();
        }
        let head = [
            Text("Client"),
            Text("Scope"),
            Text("Sandbox"),
            Text("Network"),
            Number("Tools"),
            Number("Process"),
            Text("Version"),
            Text("Since (UTC)"),
        ];
        html! {
            @if self.servers.is_empty() { (nothing("No server is running.")) } @else {
                (table("Servers", &head, &html! {
                    @for server in &self.servers {
                        @let facts = facts(server);
                        tr id={ "server-" (server.server) } {
                            td { (text(&server_client(&facts))) }
                            td.main { (text(&server.scope.to_string_lossy())) }
                            (labelled("Sandbox", &text(facts["tier"].as_str().unwrap_or("–"))))
                            (labelled("Network", &text(facts["network"].as_str().unwrap_or("–"))))
                            (number("Tools", &html! { a href={ "/console/tools?server=" (server.server) } { (facts["tools"].as_array().map_or(0, Vec::len)) } }))
                            (number("Process", &html! { (server.pid) }))
                            td { (text(&server.version)) }
                            td { (moment(server.started_at)) }
                        }
                    }
                }))
            }
        }
    }
}

/// The client that a server works for.
pub(super) fn server_client(facts: &Value) -> String {
    match &facts["client"] {
        Value::Object(client) => {
            let part = |name: &str| client.get(name).and_then(Value::as_str).unwrap_or_default();
            format!("{} {}", part("name"), part("version"))
        }
        _ if facts["has_bridge"] == true => "clients over HTTP".to_owned(),
        _ => "–".to_owned(),
    }
}

fn operation(row: &OperationRow, usage: &[UsageSample]) -> Markup {
    let (before, last) = match usage {
        [.., before, last] => (Some(*before), Some(*last)),
        [last] => (None, Some(*last)),
        [] => (None, None),
    };
    let processors = last
        .zip(before)
        .map(|(last, before)| last.processors_since(before));
    html! {
        tr id={ "row-" (row.id) } {
            td { (layout::state(row.state.as_str())) }
            td.main { (layout::operation_link(row.id.as_str(), &row.command)) }
            td { (text(&row.tool)) }
            td { (layout::client(row)) }
            td { (progress(row.reached.percent, row.reached.phase.as_deref())) }
            (number("For", &html! { @match row.started_at { Some(at) => (since(at)), None => "–" } }))
            (number("Processor", &html! { @match processors { Some(busy) => { (format!("{:.0} %", busy * 100.0)) }, None => "–" } }))
            (number("Memory", &html! { @match last { Some(last) => (bytes(last.memory_bytes)), None => "–" } }))
        }
    }
}

pub(super) fn progress(percent: Option<f64>, phase: Option<&str>) -> Markup {
    html! {
        @if let Some(percent) = percent {
            progress max="100" value=(percent) aria-label="Progress" {} " " (format!("{percent:.0} %")) " "
        }
        @if let Some(phase) = phase { (text(phase)) }
    }
}
