//! `output`: reads what an operation printed or found, while it runs or afterwards.

use std::sync::Arc;

use rmcp::{
    RoleServer,
    model::{CallToolResult, JsonObject, Tool},
    service::RequestContext,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    lookup::{finish, required, required_id},
    output_findings::{FindingArguments, FindingsReport},
    output_lines::{LineArguments, LinesReport},
    registry::{reads_only, tool},
};
use crate::{
    call::{ArgumentProblem, NamedArguments},
    mcp::{
        error::{self, CallRefusal},
        server::Server,
    },
    observe::displayed,
    operation::PageError,
};

const NAME: &str = "output";

const DESCRIPTION: &str = "Reads what an operation printed: the tail, from from_line on, or lines matching grep; with `what`, its findings.";

/// Arguments for documents of findings. The documentation and refusals name them. They are not worth their place in every
/// list of tools: a model that wants a document writes it to a file, with `file_write`.
const UNLISTED: [&str; 3] = ["format", "max_findings", "whole"];

/// The tool as it is listed.
pub(super) fn definition() -> Tool {
    let mut properties = properties();
    if let Value::Object(properties) = &mut properties {
        properties.retain(|name, _| !UNLISTED.contains(&name.as_str()));
    }
    defined(properties)
}

/// The tool with all its arguments, for a refusal.
fn whole_definition() -> Tool {
    defined(properties())
}

/// The arguments of [`LineArguments`] and [`FindingArguments`].
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
) -> Result<CallToolResult, CallRefusal> {
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
    finish(server, arguments, whole_definition)?;
    let operation = required(server, ctx, &operation_id).await?;

    let is_raw = lines.raw;
    let mut report = OutputReport {
        operation_id,
        running: operation.ended().is_none(),
        text: String::new(),
        lines: None,
        findings: None,
    };
    let shown = match what {
        What::Findings => {
            let read = findings.read(&operation);
            let (findings, text) = read.map_err(|too_long| server.results.refusal(too_long))?;
            report.findings = Some(findings);
            report.text.clone_from(&text);
            text
        }
        What::Output => {
            let page = tokio::select! {
                biased;
                page = operation.output().read(lines.query()) => page,
                // A search may take long, and ends with its future.
                () = ctx.ct.cancelled() => return Err(error::cancelled().into()),
            };
            let page = page.map_err(|error| match error {
                PageError::Pattern(error) => {
                    let problem = format!("is not a regular expression: {error}");
                    let problems = vec![ArgumentProblem::new("grep", problem)];
                    server
                        .results
                        .invalid_arguments(&whole_definition(), problems)
                        .into()
                }
                error => CallRefusal::Error(error::unreadable("the output", &error)),
            })?;
            let lines = LinesReport::of(&page);
            report.text = match is_raw {
                true => page.text,
                false => displayed(&page.text).into_owned(),
            };
            let shown = shown(&report.text, &lines, report.running);
            report.lines = Some(lines);
            shown
        }
    };
    Ok(server.results.success(shown, &report))
}

/// The lines, with their numbers below.
fn shown(text: &str, lines: &LinesReport, running: bool) -> String {
    let mut shown = text.to_owned();
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    let running = if running { "; still running" } else { "" };
    shown.push_str(&format!("[{}{running}]", lines.place()));
    shown
}
