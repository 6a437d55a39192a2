//! `output`: reads what an operation printed or found, while it runs or afterwards.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, JsonObject, Tool},
    service::RequestContext,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    lookup::{find, required_id},
    output_findings::{FindingArguments, FindingsReport},
    output_lines::{LineArguments, LinesReport},
    registry::{reads_only, tool},
};
use crate::{
    call::{ArgumentProblem, NamedArguments},
    mcp::{client, error, server::Server},
    observe::displayed,
    operation::PageError,
};

const NAME: &str = "output";

const DESCRIPTION: &str = "Reads what an operation printed: the tail, from from_line on, or lines matching grep; with `what`, its findings.";

/// Arguments for documents of findings. They are known to those who read the documentation or a refusal, and not worth
/// their place in every list of tools: a model that wants a document writes it to a file, with `file_write`.
const UNLISTED: [&str; 3] = ["format", "max_findings", "whole"];

/// As it is listed.
pub(super) fn definition() -> Tool {
    let mut properties = properties();
    if let Value::Object(properties) = &mut properties {
        properties.retain(|name, _| !UNLISTED.contains(&name.as_str()));
    }
    defined(properties)
}

/// With the arguments that [`LineArguments`] and [`FindingArguments`] take.
fn properties() -> Value {
    json!({
        "operation_id": { "type": "string" },
        "what": { "type": "string", "enum": ["output", "findings"] },
        "tail": { "type": "integer" },
        "from_line": { "type": "integer" },
        "from_byte": { "type": "integer" },
        "max_lines": { "type": "integer" },
        "grep": { "type": "string" },
        "context": { "type": "integer" },
        "raw": { "type": "boolean" },
        "format": { "type": "string", "enum": ["json", "sarif", "junit"] },
        "from_finding": { "type": "integer" },
        "max_findings": { "type": "integer" },
        "whole": { "type": "boolean" },
    })
}

fn defined(properties: Value) -> Tool {
    tool(NAME, DESCRIPTION, properties, &["operation_id"]).with_annotations(reads_only())
}

/// The answer of `output`.
#[derive(Debug, Serialize)]
struct OutputReport {
    operation_id: String,
    /// There may be more later.
    running: bool,
    /// The lines, or the findings in the format asked for.
    text: String,
    #[serde(flatten)]
    lines: Option<LinesReport>,
    #[serde(flatten)]
    findings: Option<FindingsReport>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Output,
    Findings,
}

pub(super) async fn call(
    server: &Arc<Server>,
    arguments: JsonObject,
    ctx: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let mut arguments = NamedArguments::new(arguments);
    let operation_id = required_id(&mut arguments);
    let what = arguments
        .choice("what", &[("output", What::Output), ("findings", What::Findings)])
        .unwrap_or(What::Output);
    let lines = LineArguments::take(&mut arguments);
    let findings = FindingArguments::take(&mut arguments);
    match what {
        What::Output => findings.given().for_each(|name| {
            arguments.problem(name, "has a meaning only with `what: findings`");
        }),
        What::Findings => lines.given().for_each(|name| {
            arguments.problem(name, "has no meaning with `what: findings`");
        }),
    }
    if let Err(problems) = arguments.finish() {
        return Ok(server.results.invalid_arguments(&defined(properties()), problems));
    }
    let operation = match find(server, &client::caller(server, &ctx.meta), &operation_id).await {
        Ok(operation) => operation,
        Err(problem) => return Ok(server.results.refusal(problem)),
    };

    let is_raw = lines.raw;
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
                let lines = LinesReport::of(&page);
                let text = match is_raw {
                    true => page.text,
                    false => displayed(&page.text).into_owned(),
                };
                let shown = shown(&text, &lines, report.running);
                report.lines = Some(lines);
                report.text = text;
                shown
            }
            Err(PageError::Pattern(error)) => {
                let problem = ArgumentProblem::new("grep", format!("is not a regular expression: {error}"));
                return Ok(server
                    .results
                    .invalid_arguments(&defined(properties()), vec![problem]));
            }
            Err(error) => return Err(error::unreadable("the output", &error)),
        },
    };
    Ok(server.results.success(shown, &report))
}

/// Lines, and under them which they are.
fn shown(text: &str, lines: &LinesReport, running: bool) -> String {
    let mut shown = text.to_owned();
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    let running = if running { "; still running" } else { "" };
    shown.push_str(&format!("[{}{running}]", lines.place()));
    shown
}
