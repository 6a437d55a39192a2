//! One operation: what it prints and finds as it comes, what it uses, why it ended.

use ahma_common::words::counted;
use ahma_http_bridge::Operator;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::{
    layout::{
        self,
        Head::{Number, Text},
        SEVERITIES, bytes, field, form_token, moment, number, span, table, text,
    },
    live::{PageChange, PageView},
    now::progress,
    output::{self, OutputTail},
    plot::plot,
    query::Query,
    routes::{Console, Visit},
    source::{ShownOperation, SourceError},
};
use crate::{
    history::{OperationRow, UsageSample},
    jail::ExitStatus,
    observe::{Finding, FindingBudget, Severity},
};

/// Findings on the page; the export has all of them.
const MAX_FINDINGS: usize = 500;

pub(super) async fn page(visit: &Visit, id: &str) -> Result<Markup, SourceError> {
    let Visit {
        console,
        operator,
        query,
    } = visit;
    let known = console.source.operation(operator, id).await?;
    let shown = output::shown(&known, query).await?;
    let is_open = !known.row.state.is_final();
    let path = layout::operation_path(id);
    let least = least_of(query).as_str();
    let events = is_open.then(|| {
        let (from_byte, from_line) = shown.next;
        format!("{path}/events?from_byte={from_byte}&from_line={from_line}&least={least}")
    });
    let content = html! {
        div data-live=[events] {
            @if is_open { (layout::stands_still()) }
            div id="summary" { (summary(&known)) }
            (arguments(&known.row))
            @if is_open {
                (cancel_form(operator, &path))
            }
            div id="usage" { (usage(&known.usage)) }
            section {
                h2 { "Findings" }
                div id="findings" { (findings(&known, &path, least_of(query))) }
            }
            section id="printed" {
                h2 { "Output" }
                (shown.markup)
            }
        }
    };
    let title = format!("{} {}", known.row.tool, known.row.id);
    Ok(layout::page(operator, "", &title, &content))
}

/// The page of an operation that runs, while it is open.
#[derive(Debug)]
pub(super) struct OperationView {
    console: Console,
    known: ShownOperation,
    least: Severity,
    tail: OutputTail,
}

impl OperationView {
    pub(super) async fn open(visit: &Visit, id: &str) -> Result<Self, SourceError> {
        let Visit {
            console,
            operator,
            query,
        } = visit;
        Ok(Self {
            known: console.source.operation(operator, id).await?,
            console: console.clone(),
            least: least_of(query),
            tail: OutputTail::new(
                query.number("from_byte").unwrap_or(0),
                query.number("from_line").unwrap_or(1),
            ),
        })
    }
}

impl PageView for OperationView {
    fn console(&self) -> &Console {
        &self.console
    }

    async fn changes(&mut self) -> Result<Vec<PageChange>, SourceError> {
        self.known.refresh().await?;
        let known = &self.known;
        let path = layout::operation_path(known.row.id.as_str());
        let mut changes = vec![
            PageChange::Content("summary", summary(known)),
            PageChange::Content("usage", usage(&known.usage)),
            PageChange::Content("findings", findings(known, &path, self.least)),
            PageChange::Rows("output", self.tail.read(&known.operation).await?),
        ];
        if known.row.state.is_final() {
            changes.push(PageChange::Reload);
        }
        Ok(changes)
    }
}

fn least_of(query: &Query) -> Severity {
    let named = query.text("least");
    named
        .and_then(|name| Severity::parse(&name))
        .unwrap_or(Severity::Info)
}

pub(super) fn cancel_form(operator: &Operator, path: &str) -> Markup {
    html! {
        form.cancel method="post" action={ (path) "/cancel" } {
            (form_token(operator))
            label { "Reason" input name="reason" maxlength="200" placeholder="told to the agent" autocomplete="off"; }
            button.danger { "Cancel" }
        }
    }
}

fn summary(known: &ShownOperation) -> Markup {
    let row = &known.row;
    let outcome = known.operation.ended();
    let exit = row.exit.map(|exit| match exit {
        ExitStatus::Code(code) => format!("code {code}"),
        ExitStatus::Signal(signal) => format!("signal {signal}"),
    });
    html! {
        p.command { code { (text(&row.command)) } }
        p.state-line { (layout::state(row.state.as_str())) " " (progress(row.reached.percent, row.reached.phase.as_deref())) }
        @if let Some(reason) = &row.reason { p.reason { (text(reason)) } }
        @for hint in known.hints() { p.hint { (text(&hint)) } }
        dl {
            (field("Client", &layout::client(row)))
            (field("Directory", &text(&row.directory.to_string_lossy())))
            (field("Created", &moment(row.created_at)))
            @if let Some(at) = row.started_at { (field("Started", &moment(at))) }
            @if let Some(at) = row.ended_at { (field("Ended", &moment(at))) }
            (field(layout::time_heading(row.state), &layout::took(row)))
            @if let Some(exit) = &exit { (field("Exit", &html! { (exit) })) }
            @if let Some(cpu) = row.cpu { (field("Processor time", &html! { (span(cpu)) })) }
            @if let Some(memory) = row.peak_memory_bytes { (field("Peak memory", &html! { (bytes(memory)) })) }
            (field("Output", &html! { (counted(row.output_lines, "line")) ", " (bytes(row.output_bytes)) }))
        }
        @if let Some(outcome) = &outcome && !outcome.steps.is_empty() {
            (table("Steps", &[Text("Step"), Text("Status"), Number("Took")], &html! {
                @for step in &outcome.steps {
                    tr { td.main { (text(&step.label)) } td { (layout::state(step.state.as_str())) } (number("Took", &html! { (span(step.duration)) })) }
                }
            }))
        }
    }
}

/// The arguments in full, since the command of the summary is short.
fn arguments(row: &OperationRow) -> Markup {
    let Some(written) = &row.arguments else {
        return html! {};
    };
    // Long ones are cut and no JSON any more.
    let arguments = serde_json::from_str::<Map<String, Value>>(written);
    let shown = |value: &Value| match value {
        Value::String(text) => layout::lines(text),
        other => text(&other.to_string()),
    };
    html! {
        details.arguments {
            summary { "Arguments" }
            @match &arguments {
                Ok(arguments) => dl { @for (name, value) in arguments { div { dt { (text(name)) } dd { pre tabindex="0" { (shown(value)) } } } } },
                Err(_) => pre tabindex="0" { (text(written)) },
            }
        }
    }
}

/// Usage over time.
fn usage(samples: &[UsageSample]) -> Markup {
    if samples.len() < 2 {
        return html! {};
    }
    let busy = samples
        .windows(2)
        .map(|pair| Some(pair[1].processors_since(pair[0])));
    let memory = samples.iter().map(|sample| Some(sample.memory_bytes as f64));
    html! {
        div.plots {
            (plot("Processor", &busy.collect::<Vec<_>>(), 1.0, |busy| format!("{:.0} %", busy * 100.0)))
            (plot("Memory", &memory.collect::<Vec<_>>(), 1.0, |memory| bytes(memory as u64)))
        }
    }
}

fn finding_filter(path: &str, least: Severity) -> Markup {
    html! {
        form.filter method="get" action=(path) {
            label { "At least" select name="least" {
                @for severity in SEVERITIES.iter().rev() {
                    option value=(severity.as_str()) selected[*severity == least] { (severity.as_str()) }
                }
            } }
            button { "Filter" }
        }
    }
}

fn findings(known: &ShownOperation, path: &str, least: Severity) -> Markup {
    let page = known.operation.findings(0, FindingBudget::ALL);
    let shown: Vec<_> = page
        .findings
        .iter()
        .filter(|finding| finding.severity >= least)
        .collect();
    html! {
        @if page.counts.total() == 0 { p.count { "None." } } @else {
            div.bar {
                (finding_filter(path, least))
                p.counts { (layout::counts(&page.counts)) }
                p.export { "Export "
                    @for (form, name) in [("sarif", "SARIF"), ("junit", "JUnit"), ("json", "JSON")] {
                        a href={ (path) "/export/" (form) } download { (name) } " "
                    }
                }
            }
            (finding_table(shown.iter().copied().take(MAX_FINDINGS)))
            @if shown.len() > MAX_FINDINGS { p { (shown.len() - MAX_FINDINGS) " more are in the export." } }
        }
    }
}

pub(super) fn finding_table<'a>(findings: impl Iterator<Item = &'a Finding>) -> Markup {
    table(
        "Findings",
        &[Text("Severity"), Text("Message"), Text("Id"), Text("Place")],
        &html! {
            @for finding in findings {
                tr {
                    td { (layout::severity(finding.severity)) }
                    td.main { (text(&finding.title)) }
                    td { (text(&finding.id)) }
                    td { (text(finding.location.as_deref().unwrap_or("–"))) }
                }
            }
        },
    )
}
