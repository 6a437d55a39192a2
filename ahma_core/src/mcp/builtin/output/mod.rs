//! `output`: reads what an operation printed or found, while it runs or afterwards.

mod findings;
mod lines;

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, JsonObject, Tool},
    service::RequestContext,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use self::{
    findings::{FindingArguments, Findings},
    lines::{LineArguments, Lines},
};
use super::{Inner, arguments::Arguments, find, reads_only, tool};
use crate::{
    mcp::{convert, error, owner},
    operation::PageError,
};

const NAME: &str = "output";

const DESCRIPTION: &str = "Reads the output of an operation, running or ended: its end (tail), a range of lines \
    (from_line, max_lines), or the lines that match a regular expression (grep, context, max_lines), numbered as `grep -n` does it; \
    or, with what: findings, what the tool found (from_finding, max_findings, format). \
    Long answers are cut and say where to go on.";

pub(super) fn definition() -> Tool {
    let mut properties = json!({
        "operation_id": { "type": "string", "description": "Which operation." },
        "what": {
            "type": "string", "enum": ["output", "findings"], "default": "output",
            "description": "What it printed, or what the tool found.",
        },
    });
    for more in [LineArguments::properties(), FindingArguments::properties()] {
        if let (Value::Object(properties), Value::Object(more)) = (&mut properties, more) {
            properties.extend(more);
        }
    }
    tool(NAME, DESCRIPTION, properties, &["operation_id"])
        .with_raw_output_schema(convert::output_schema::<OutputReport>())
        .with_annotations(reads_only("Read output"))
}

/// What `output` answers.
#[derive(Debug, Serialize, JsonSchema)]
struct OutputReport {
    operation_id: String,
    /// Whether there may be more later.
    running: bool,
    /// The lines, or the findings in the format asked for.
    text: String,
    #[serde(flatten)]
    lines: Option<Lines>,
    #[serde(flatten)]
    findings: Option<Findings>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Output,
    Findings,
}

pub(super) async fn call(
    server: &Arc<Inner>,
    arguments: JsonObject,
    ctx: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let mut arguments = Arguments::new(arguments);
    let operation_id = arguments.required_text("operation_id");
    let what = arguments
        .choice("what", &[("output", What::Output), ("findings", What::Findings)])
        .unwrap_or(What::Output);
    let lines = LineArguments::take(&mut arguments);
    let findings = FindingArguments::take(&mut arguments);
    match what {
        What::Output => findings.given().for_each(|name| {
            arguments.problem(format!("{name}: has a meaning only with what: findings"));
        }),
        What::Findings => lines.given().for_each(|name| {
            arguments.problem(format!("{name}: has no meaning with what: findings"));
        }),
    }
    if let Err(problems) = arguments.finish() {
        return Ok(server.results.invalid_arguments(NAME, &problems));
    }
    let operation = match find(server, &owner::of(&ctx.meta), &operation_id) {
        Ok(operation) => operation,
        Err(problem) => return Ok(server.results.refusal(problem)),
    };

    let mut report = OutputReport {
        operation_id,
        running: operation.ended().is_none(),
        text: String::new(),
        lines: None,
        findings: None,
    };
    let shown = match what {
        What::Findings => match findings.read(&operation) {
            Ok((findings, text)) => {
                report.findings = Some(findings);
                report.text.clone_from(&text);
                text
            }
            Err(too_long) => return Ok(server.results.refusal(too_long)),
        },
        What::Output => match tokio::select! {
            biased;
            page = operation.output().read(lines.query()) => page,
            // A search may take long, and ends with its future.
            () = ctx.ct.cancelled() => return Err(error::cancelled()),
        } {
            Ok(page) => {
                let lines = Lines::of(&page);
                let shown = shown(&page.text, &lines, report.running);
                report.lines = Some(lines);
                report.text = page.text;
                shown
            }
            Err(problem @ PageError::Pattern(_)) => {
                return Ok(server.results.invalid_arguments(NAME, &[problem]));
            }
            Err(error) => return Err(error::unreadable("the output", &error)),
        },
    };
    Ok(server.results.success(shown, &report))
}

/// Lines, and under them which they are.
fn shown(text: &str, lines: &Lines, running: bool) -> String {
    let mut shown = text.to_owned();
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    let running = if running { "; still running" } else { "" };
    shown.push_str(&format!("[{}{running}]", lines.place()));
    shown
}
