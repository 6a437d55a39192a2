//! One operation of a pool, on a page of any of its front ends: what it prints and finds, and a button to stop it.

use std::time::Duration;

use ahma_common::{contract::OutputPlace, words::counted};
use ahma_http_bridge::{Operator, ServerAccess};
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    layout::{self, bytes, field, span, text},
    live::{PageChange, PageView},
    operation::{cancel_form, finding_table},
    output::LINES,
    pool::PooledOperation,
    routes::{Console, Visit},
    source::{PAGE_BYTES, SourceError},
    terminal::Terminal,
};
use crate::observe::{Finding, SeverityCounts};

/// Lines of an output as the admin API tells them.
#[derive(Debug, Deserialize)]
struct PooledOutput {
    text: String,
    first_line: Option<u64>,
    lines: u64,
    next_byte: u64,
    total_lines: u64,
    total_bytes: u64,
}

#[derive(Debug, Deserialize)]
struct PooledFindings {
    findings: Vec<Finding>,
    /// There are more from there on.
    next: Option<usize>,
    counts: SeverityCounts,
}

pub(super) async fn page(visit: &Visit, server: &ServerAccess, id: &str) -> Result<Markup, SourceError> {
    let Visit { operator, query, .. } = visit;
    let known = find(server, id).await?;
    let path = layout::operation_path(id);
    let from = query.number("line").map(|line| line.max(1));
    let place = OutputPlace {
        from_line: from,
        lines: Some(LINES),
        ..OutputPlace::default()
    };
    let read = output(server, id, place).await;
    let next = read.as_ref().map_or(1, PooledOutput::next_line);
    let is_open = !known.status.is_final();
    let is_tail = from.is_none();
    let events = (is_open && is_tail).then(|| format!("{path}/events?from_line={next}"));
    let content = html! {
        div data-live=[events] {
            @if is_open { (layout::stands_still()) }
            div id="summary" { (summary(&known)) }
            @if is_open { (cancel_form(operator, &path)) }
            section {
                h2 { "Findings" }
                div id="findings" { (findings(server, id).await) }
            }
            section {
                h2 { "Output" }
                @match &read {
                    Ok(output) => (shown(output, &path, is_tail)),
                    Err(why) => p.hint { (text(why)) },
                }
            }
        }
    };
    let title = format!("{} {}", known.tool, known.id);
    Ok(layout::page(operator, "", &title, &content))
}

/// The page of an operation that has not ended, while it is open.
#[derive(Debug)]
pub(super) struct PooledView {
    console: Console,
    server: ServerAccess,
    id: String,
    terminal: Terminal,
    /// Of what was not printed yet.
    next: OutputPlace,
}

impl PooledView {
    pub(super) async fn open(visit: &Visit, server: &ServerAccess, id: &str) -> Result<Self, SourceError> {
        find(server, id).await?;
        let line = visit.query.number("from_line").unwrap_or(1).max(1);
        Ok(Self {
            console: visit.console.clone(),
            server: server.clone(),
            id: id.to_owned(),
            terminal: Terminal::new(line),
            next: OutputPlace {
                from_line: Some(line),
                ..OutputPlace::default()
            },
        })
    }

    /// Rows that are new or other than before, and whether those are all.
    async fn changed_rows(&mut self) -> (Vec<Markup>, bool) {
        let mut rows = Vec::new();
        let mut printed = 0;
        while printed < PAGE_BYTES {
            let Ok(output) = output(&self.server, &self.id, self.next).await else {
                return (rows, true);
            };
            rows.extend(self.terminal.print_rows(output.text.as_bytes()));
            printed += output.text.len();
            self.next = OutputPlace {
                from_byte: Some(output.next_byte),
                ..OutputPlace::default()
            };
            // What could not be kept never comes.
            if output.next_byte >= output.total_bytes || output.text.is_empty() {
                return (rows, true);
            }
        }
        (rows, false)
    }
}

impl PageView for PooledView {
    fn console(&self) -> &Console {
        &self.console
    }

    async fn changes(&mut self) -> Result<Vec<PageChange>, SourceError> {
        let known = find(&self.server, &self.id).await?;
        let (rows, are_all) = self.changed_rows().await;
        let mut changes = vec![
            PageChange::Content("summary", summary(&known)),
            PageChange::Content("findings", findings(&self.server, &self.id).await),
            PageChange::Rows("output", rows),
        ];
        // A reader who has paused stays on the page, and gets nothing after this.
        if known.status.is_final() && are_all {
            changes.push(PageChange::Reload);
        }
        Ok(changes)
    }
}

impl PooledOutput {
    /// The line after the last one that is complete.
    fn next_line(&self) -> u64 {
        let complete = self.text.matches('\n').count() as u64;
        match self.first_line {
            Some(first) => first + complete,
            None => self.total_lines + 1,
        }
    }
}

/// Stops an operation, as the admin API does.
pub(super) async fn cancel(
    operator: &Operator,
    server: &ServerAccess,
    id: &str,
    reason: Option<&str>,
) -> Result<(), SourceError> {
    let is_known = server.cancel(operator, id, reason).await;
    match is_known.map_err(SourceError::Refused)? {
        true => Ok(()),
        false => Err(unknown(id)),
    }
}

async fn find(server: &ServerAccess, id: &str) -> Result<PooledOperation, SourceError> {
    let found = server.operation(id).await;
    found
        .and_then(|found| serde_json::from_value(found).ok())
        .ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> SourceError {
    SourceError::UnknownOperation(id.to_owned())
}

async fn output(server: &ServerAccess, id: &str, place: OutputPlace) -> Result<PooledOutput, String> {
    let read = server.output(id, place).await?;
    serde_json::from_value(read).map_err(|error| error.to_string())
}

fn summary(known: &PooledOperation) -> Markup {
    html! {
        p.command { code { (text(&known.command)) } }
        p.state-line { (layout::state(known.status.as_str())) " " (known.progress()) }
        @if let Some(reason) = &known.reason { p.reason { (text(reason)) } }
        dl {
            (field("Client", &known.principal()))
            (field("Worker", &known.worker()))
            @if let Some(directory) = &known.directory { (field("Directory", &text(directory))) }
            (field(layout::time_heading(known.status), &known.took()))
            @if let Some(code) = known.exit_code { (field("Exit", &html! { "code " (code) })) }
            @if let Some(cpu) = known.cpu_ms { (field("Processor time", &html! { (span(Duration::from_millis(cpu))) })) }
            @if let Some(memory) = known.max_rss_bytes { (field("Peak memory", &html! { (bytes(memory)) })) }
            (field("Output", &html! { (counted(known.output_lines.unwrap_or(0), "line")) ", " (bytes(known.output_bytes.unwrap_or(0))) }))
        }
    }
}

async fn findings(server: &ServerAccess, id: &str) -> Markup {
    let read = server.findings(id).await;
    let page: PooledFindings =
        match read.and_then(|read| serde_json::from_value(read).map_err(|error| error.to_string())) {
            Ok(page) => page,
            Err(why) => return html! { p.hint { (text(&why)) } },
        };
    html! {
        @if page.counts.total() == 0 { p.count { "None." } } @else {
            p.counts { (layout::counts(&page.counts)) }
            (finding_table(page.findings.iter()))
            @if page.next.is_some() { p { code { "ahma_mcp admin findings " (id) } " has more." } }
        }
    }
}

fn shown(output: &PooledOutput, path: &str, is_tail: bool) -> Markup {
    let first = output.first_line.unwrap_or(1);
    let later = first + output.lines;
    let mut terminal = Terminal::new(first);
    terminal.print(output.text.as_bytes());
    html! {
        @if !is_tail { p { a href=(path) { "Back to the end" } } }
        @if first > 1 { p { a href={ (path) "?line=" (first.saturating_sub(LINES).max(1)) } { "Earlier lines" } } }
        div.output tabindex="0" role="log" aria-label="Output" aria-live="off" id=[is_tail.then_some("output")] {
            @for row in terminal.rows() { (row) }
        }
        @if !is_tail && later <= output.total_lines { p { a href={ (path) "?line=" (later) } { "Later lines" } } }
    }
}
