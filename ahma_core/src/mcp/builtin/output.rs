//! `output`: reads what an operation printed, while it runs or afterwards.

use std::sync::Arc;

use rmcp::{
    ErrorData,
    model::{CallToolResult, JsonObject, Tool},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Inner, arguments::Arguments, find, reads_only, tool};
use crate::{
    mcp::{convert, error},
    operation::{OutputPage, OutputQuery, PageError, PageStart},
};

const NAME: &str = "output";

/// More would not fit into an answer anyway.
const MOST_LINES: u64 = 10_000;
const DEFAULT_LINES: u64 = 1_000;
const MOST_CONTEXT: u64 = 100;

const DESCRIPTION: &str = "Reads the output of an operation, running or ended: its end (tail), a range of lines \
    (from_line, max_lines), or the lines that match a regular expression (grep, context), numbered as `grep -n` does it. \
    Long answers are cut and say where to go on.";

pub(super) fn definition() -> Tool {
    let properties = json!({
        "operation_id": { "type": "string", "description": "Which operation." },
        "tail": { "type": "integer", "minimum": 1, "maximum": MOST_LINES, "description": "Show this many lines at the end." },
        "from_line": { "type": "integer", "minimum": 1, "description": "Begin with this line; the first is 1." },
        "from_byte": { "type": "integer", "minimum": 0, "description": "Begin at this byte; to go on inside a very long line." },
        "max_lines": {
            "type": "integer", "minimum": 1, "maximum": MOST_LINES, "default": DEFAULT_LINES,
            "description": "Show at most this many lines.",
        },
        "grep": { "type": "string", "description": "Show only lines that match this regular expression." },
        "context": { "type": "integer", "minimum": 0, "maximum": MOST_CONTEXT, "description": "Lines around each match." },
    });
    tool(NAME, DESCRIPTION, properties, &["operation_id"])
        .with_raw_output_schema(convert::output_schema::<OutputReport>())
        .with_annotations(reads_only("Read output"))
}

/// What `output` answers.
#[derive(Debug, Serialize, JsonSchema)]
struct OutputReport {
    operation_id: String,
    /// Whether the operation may still print more.
    running: bool,
    text: String,
    /// The number of the first line shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_line: Option<u64>,
    /// How many lines are shown.
    lines: u64,
    /// Where to go on, as `from_line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<u64>,
    /// Where to go on, as `from_byte`, inside a line that is longer than an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_byte: Option<u64>,
    /// How many lines match `grep`.
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<u64>,
    total_lines: u64,
    total_bytes: u64,
    /// Bytes that were printed but could not be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_bytes: Option<u64>,
}

pub(super) async fn call(server: &Arc<Inner>, arguments: JsonObject) -> Result<CallToolResult, ErrorData> {
    let mut arguments = Arguments::new(arguments);
    let id = arguments.required_text("operation_id");
    let tail = arguments.integer("tail", 1..=MOST_LINES);
    let from_line = arguments.integer("from_line", 1..=u64::MAX);
    let from_byte = arguments.integer("from_byte", 0..=u64::MAX);
    let max_lines = arguments.integer("max_lines", 1..=MOST_LINES);
    let grep = arguments.text("grep");
    let context = arguments.integer("context", 0..=MOST_CONTEXT);
    let given = [
        ("tail", tail.is_some()),
        ("from_line", from_line.is_some()),
        ("from_byte", from_byte.is_some()),
        ("max_lines", max_lines.is_some()),
        ("grep", grep.is_some()),
        ("context", context.is_some()),
    ];
    for (one, other) in CONTRADICTIONS {
        let is_given = |name| given.iter().any(|(known, given)| *known == name && *given);
        if is_given(*one) && is_given(*other) {
            arguments.problem(format!("{one}: cannot be combined with {other}"));
        }
    }
    if context.is_some() && grep.is_none() {
        arguments.problem("context: has a meaning only beside grep".to_owned());
    }
    if let Err(problems) = arguments.finish() {
        return Ok(server.results.invalid_arguments(NAME, &problems));
    }
    let operation = match find(server, &id) {
        Ok(operation) => operation,
        Err(problem) => return Ok(server.results.refusal(problem)),
    };

    let query = match (grep, tail) {
        (Some(pattern), _) => OutputQuery::Grep {
            pattern,
            context: usize::try_from(context.unwrap_or(0)).unwrap_or(usize::MAX),
            from_line: from_line.unwrap_or(1),
        },
        (None, Some(lines)) => OutputQuery::Tail { lines },
        (None, None) => OutputQuery::Range {
            from: from_byte.map_or(PageStart::Line(from_line.unwrap_or(1)), PageStart::Byte),
            max_lines: max_lines.unwrap_or(DEFAULT_LINES),
        },
    };
    let running = operation.ended().is_none();
    match operation.output().read(query).await {
        Ok(page) => {
            let report = OutputReport::new(id, running, page);
            Ok(server.results.success(report.shown(), &report))
        }
        Err(problem @ PageError::Pattern(_)) => Ok(server.results.invalid_arguments(NAME, &[problem])),
        Err(error) => Err(error::unreadable("the output", &error)),
    }
}

const CONTRADICTIONS: &[(&str, &str)] = &[
    ("tail", "from_line"),
    ("tail", "from_byte"),
    ("tail", "max_lines"),
    ("tail", "grep"),
    ("from_line", "from_byte"),
    ("grep", "from_byte"),
    ("grep", "max_lines"),
];

impl OutputReport {
    fn new(operation_id: String, running: bool, page: OutputPage) -> Self {
        let (next_line, next_byte) = match page.next {
            Some(PageStart::Line(line)) => (Some(line), None),
            Some(PageStart::Byte(byte)) => (None, Some(byte)),
            None => (None, None),
        };
        Self {
            operation_id,
            running,
            text: page.text,
            first_line: page.first_line,
            lines: page.lines,
            next_line,
            next_byte,
            matches: page.matches,
            total_lines: page.total_lines,
            total_bytes: page.total_bytes,
            lost_bytes: page.lost.map(|loss| loss.bytes),
        }
    }

    fn shown(&self) -> String {
        let mut shown = self.text.clone();
        if !shown.is_empty() && !shown.ends_with('\n') {
            shown.push('\n');
        }
        let place = match (self.first_line, self.matches) {
            (_, Some(matches)) => format!("{matches} lines of {} match", self.total_lines),
            (Some(first), None) => {
                format!(
                    "lines {first} to {} of {}",
                    first + self.lines.saturating_sub(1),
                    self.total_lines
                )
            }
            (None, None) => format!("no lines; there are {}", self.total_lines),
        };
        let more = match (self.next_line, self.next_byte) {
            (Some(line), _) => format!("; go on with from_line {line}"),
            (None, Some(byte)) => format!("; go on with from_byte {byte}"),
            (None, None) => String::new(),
        };
        let running = if self.running { "; still running" } else { "" };
        shown.push_str(&format!("[{place}{more}{running}]"));
        shown
    }
}
