//! The output of an operation: its end as it grows, any other part of it, lines that match, and files of it to take away.

use ahma_common::words::counted;
use ahma_http_bridge::Operator;
use axum::{http::header, response::IntoResponse as _};
use maud::{Markup, html};

use super::{
    layout,
    query::Query,
    routes::PageResult,
    source::{HistorySource, PAGE_BYTES, ShownOperation, SourceError},
    terminal::Terminal,
};
use crate::{
    history::export,
    operation::{Operation, OutputPage, OutputQuery, PageError, PageStart},
};

/// Lines on a page.
pub(super) const LINES: u64 = 1_000;

/// Lines that a search shows.
const MATCHES: u64 = 500;

/// Lines above a match, on the page that shows what is around it.
const LINES_BEFORE: u64 = 20;

/// A part of an output, and where what comes after it begins.
#[derive(Debug)]
pub(super) struct OutputPart {
    pub(super) markup: Markup,
    /// Byte and line.
    pub(super) next: (u64, u64),
}

pub(super) async fn shown(known: &ShownOperation, query: &Query) -> Result<OutputPart, SourceError> {
    let log = known.operation.output();
    let path = layout::operation_path(known.row.id.as_str());
    let grep = query.text("grep");
    let from = query.number("line").map(|line| line.max(1));
    let asked = match (&grep, from) {
        (Some(pattern), _) => OutputQuery::Grep {
            pattern: pattern.clone(),
            context: 0,
            from_line: from.unwrap_or(1),
            max_lines: MATCHES,
        },
        (None, Some(line)) => OutputQuery::Range {
            from: PageStart::Line(line),
            max_lines: LINES,
        },
        (None, None) => OutputQuery::Tail { lines: LINES },
    };
    let page = match log.read(asked).await {
        Err(error @ PageError::Pattern(_)) => return Err(SourceError::Malformed(error.to_string())),
        read => read?,
    };
    let mut terminal = Terminal::new(page.first_line.unwrap_or(1));
    terminal.print(page.text.as_bytes());
    // A line that is not finished comes again as a whole.
    let ends_in_line = u64::from(page.unfinished_bytes > 0);
    let next = (
        page.next_byte - page.unfinished_bytes,
        (page.total_lines + 1).saturating_sub(ends_in_line).max(1),
    );
    let is_tail = grep.is_none() && from.is_none();
    let grows = is_tail && !known.row.state.is_final();
    let markup = html! {
        div.bar {
            (search(&path, grep.as_deref(), grows))
            p.export {
                @if !is_tail { a href={ (path) "#printed" } { "Back to the end" } " " }
                a href={ (path) "/export/text" } download { "Download" }
            }
        }
        @if let Some(loss) = log.loss() { p.hint { (loss.bytes) " bytes were printed but could not be kept." } }
        @if let Some(matches) = page.matches {
            p { (counted(matches, "matching line")) @if let Some(line) = from { " from line " (line) " on" } }
        }
        (earlier(&path, &page, is_tail))
        div.output tabindex="0" role="log" aria-label="Output" aria-live="off" id=[is_tail.then_some("output")] {
            @if grep.is_some() { (matching(&path, &page.text)) } @else { @for row in terminal.rows() { (row) } }
        }
        @if let Some(PageStart::Line(line)) = page.next {
            p { a href={ (path) "?" (query.with("line", &line.to_string())) "#printed" } { @if grep.is_some() { "Later matches" } @else { "Later lines" } } }
        }
    };
    Ok(OutputPart { markup, next })
}

fn search(path: &str, grep: Option<&str>, grows: bool) -> Markup {
    html! {
        form.filter method="get" action={ (path) "#printed" } {
            label { "Search" input type="search" name="grep" value=[grep] placeholder="regular expression"; }
            button { "Search" }
            @if grows { button type="button" id="follow" aria-pressed="true" hidden { "Follow" } }
        }
    }
}

/// Lines that match, each with a way to the lines around it.
fn matching(path: &str, numbered: &str) -> Markup {
    let found = numbered.lines().filter_map(|line| line.split_once(':'));
    html! {
        @for (number, line) in found {
            @let before = number.parse::<u64>().unwrap_or(1).saturating_sub(LINES_BEFORE).max(1);
            div { a.line href={ (path) "?line=" (before) "#L" (number) } { (number) } (layout::text(line)) }
        }
    }
}

fn earlier(path: &str, page: &OutputPage, is_tail: bool) -> Markup {
    let first = page.first_line.unwrap_or(1);
    html! {
        @if page.matches.is_none() && first > 1 {
            p { a href={ (path) "?line=" (first.saturating_sub(LINES).max(1)) "#printed" } { "Earlier lines" }
                @if is_tail { " · lines " (first) " to " (page.total_lines) " are shown" } }
        }
    }
}

/// The end of an output that grows.
#[derive(Debug)]
pub(super) struct OutputTail {
    offset: u64,
    terminal: Terminal,
}

impl OutputTail {
    /// From a byte on, which begins the line of that number.
    pub(super) fn new(offset: u64, line: u64) -> Self {
        Self {
            offset,
            terminal: Terminal::new(line),
        }
    }

    /// All rows that are new or other than before. A page that is far behind goes on near the end.
    pub(super) async fn read(&mut self, operation: &Operation) -> Result<Vec<Markup>, SourceError> {
        let log = operation.output();
        let mut rows = Vec::new();
        loop {
            let bytes = log.bytes(self.offset, PAGE_BYTES).await?;
            let read_to = self.offset + bytes.len() as u64;
            if bytes.len() < PAGE_BYTES {
                self.offset = read_to;
                rows.extend(self.terminal.print_rows(&bytes));
                return Ok(rows);
            }
            if log.bytes(read_to, PAGE_BYTES).await?.len() == PAGE_BYTES {
                return self.skip_to_end(operation).await;
            }
            self.offset = read_to;
            rows.extend(self.terminal.print_rows(&bytes));
        }
    }

    async fn skip_to_end(&mut self, operation: &Operation) -> Result<Vec<Markup>, SourceError> {
        let page = operation
            .output()
            .read(OutputQuery::Tail { lines: LINES })
            .await?;
        self.offset = page.next_byte;
        self.terminal = Terminal::new(page.first_line.unwrap_or(1));
        Ok(self.terminal.print_rows(page.text.as_bytes()))
    }
}

/// A file about an operation, to take away.
pub(super) async fn export(source: &HistorySource, operator: &Operator, id: &str, form: &str) -> PageResult {
    let file = file(source, operator, id, form).await?;
    let headers = [
        (header::CONTENT_TYPE, file.kind.to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{}\"", file.name),
        ),
    ];
    Ok((headers, file.body).into_response())
}

#[derive(Debug)]
pub(super) struct ExportedFile {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) body: Vec<u8>,
}

pub(super) async fn file(
    source: &HistorySource,
    operator: &Operator,
    id: &str,
    form: &str,
) -> Result<ExportedFile, SourceError> {
    let ShownOperation { row, operation, .. } = source.operation(operator, id).await?;
    let (kind, suffix, body) = match form {
        "sarif" => (
            "application/sarif+json",
            "sarif",
            export::sarif(&operation).into_bytes(),
        ),
        "junit" => ("application/xml", "xml", export::junit(&operation).into_bytes()),
        "json" => (
            "application/json",
            "json",
            export::json(&row, &operation).into_bytes(),
        ),
        "text" => ("application/octet-stream", "txt", whole(&operation).await?),
        _ => return Err(SourceError::Unknown(format!("the format {form}"))),
    };
    let name = format!("{}.{suffix}", row.id);
    Ok(ExportedFile { name, kind, body })
}

async fn whole(operation: &Operation) -> Result<Vec<u8>, SourceError> {
    let mut all = Vec::new();
    loop {
        let piece = operation.output().bytes(all.len() as u64, PAGE_BYTES).await?;
        if piece.is_empty() {
            return Ok(all);
        }
        all.extend(piece);
    }
}
