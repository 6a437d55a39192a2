//! `status`: how operations and remote servers stand, and what is wrong with the tools or missing for them.

use std::sync::Arc;

use rmcp::model::{CallToolResult, JsonObject, Tool};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Inner, MOST_IDS, OPERATION_IDS, arguments::Arguments, chosen, is_zero, reads_only, tool};
use crate::{
    mcp::{convert, report::OperationReport},
    operation::{Operation, Owner, Snapshot, State},
    toolbox::Toolbox,
};

const NAME: &str = "status";

/// Enough to see what goes on; older ones are asked for by id.
const MOST_ROWS: usize = 50;

/// Mistakes shown; whoever mends them has better tools than this one.
const MOST_PROBLEMS: usize = 20;

const DESCRIPTION: &str = "Shows in short how operations stand: those that run or wait first, then the newest that ended. \
    Also shows the sandbox, tools that are not available and how to install them, tool files with mistakes, and remote \
    servers with the link to log in where one is needed. \
    To wait for results use await, not repeated calls of this.";

pub(super) fn definition() -> Tool {
    let properties = json!({
        OPERATION_IDS: {
            "type": "array",
            "items": { "type": "string" },
            "maxItems": MOST_IDS,
            "description": "Only these operations, and nothing else; the most recent ones when left out.",
        },
    });
    tool(NAME, DESCRIPTION, properties, &[])
        .with_raw_output_schema(convert::output_schema::<StatusReport>())
        .with_annotations(reads_only("Status"))
}

/// What `status` answers, and the resource of that name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatusReport {
    running: usize,
    queued: usize,
    operations: Vec<OperationReport>,
    /// How many operations would come after these, and are not shown.
    #[serde(skip_serializing_if = "is_zero")]
    operations_left_out: usize,
    #[schemars(with = "serde_json::Map<String, Value>")]
    sandbox: Value,
    /// Left out when operations are asked for by their ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<ToolsReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remote_servers: Vec<RemoteReport>,
    /// What is wrong with the file that names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remote_problems: Vec<String>,
}

/// Another MCP server whose tools are offered here.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct RemoteReport {
    pub(crate) name: String,
    /// One of `connecting`, `ready`, `login_required`, `failed`.
    pub(crate) state: &'static str,
    /// How many tools it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The page to open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) login_link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transport: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
    /// Its tools that are not offered, because a local tool or another server's has their name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) hidden_tools: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ToolsReport {
    directory: String,
    /// How many can be called, besides the built-in ones.
    offered: usize,
    /// Why there are no tool files.
    #[serde(skip_serializing_if = "Option::is_none")]
    directory_problem: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unavailable: Vec<UnavailableReport>,
    /// What is wrong with tool files, as `file:line:column: …`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
    /// Files that were edited into something broken; their last good version is in use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    last_good_version_in_use: Vec<String>,
}

/// Tools that lack the same thing.
#[derive(Debug, Serialize, JsonSchema)]
struct UnavailableReport {
    tools: Vec<String>,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    install_instructions: Option<String>,
}

pub(super) fn call(server: &Arc<Inner>, arguments: JsonObject, owner: &Owner) -> CallToolResult {
    let mut arguments = Arguments::new(arguments);
    let chosen = chosen(server, owner, &mut arguments);
    if let Err(problems) = arguments.finish() {
        return server.results.invalid_arguments(NAME, &problems);
    }
    let report = report(server, owner, chosen);
    server.results.success(report.text(), &report)
}

/// How the chosen operations stand, or the client's most recent ones.
pub(crate) fn report(server: &Inner, owner: &Owner, chosen: Option<Vec<Operation>>) -> StatusReport {
    let all = server.engine.operations_of(owner);
    let snapshots: Vec<_> = all.iter().map(Operation::snapshot).collect();
    let in_state = |state: State| {
        snapshots
            .iter()
            .filter(|snapshot| snapshot.state == state)
            .count()
    };
    let (running, queued) = (in_state(State::Running), in_state(State::Queued));
    let is_choice = chosen.is_some();
    let wanted = match chosen {
        Some(chosen) => chosen.iter().map(Operation::snapshot).collect(),
        None => {
            let (ended, mut rows): (Vec<_>, Vec<_>) = snapshots
                .into_iter()
                .partition(|snapshot| snapshot.state.is_final());
            rows.extend(ended.into_iter().rev());
            rows
        }
    };
    let most = if is_choice { usize::MAX } else { MOST_ROWS };
    let operations = fitting_rows(&wanted, most, server.engine.settings().result_bytes);
    let mut report = StatusReport {
        running,
        queued,
        operations_left_out: wanted.len() - operations.len(),
        operations,
        sandbox: convert::sandbox_value(&server.settings.sandbox),
        tools: None,
        remote_servers: Vec::new(),
        remote_problems: Vec::new(),
    };
    // Who asks for some operations has asked for nothing else.
    if !is_choice {
        let toolbox = server.toolbox.current();
        report.tools = Some(ToolsReport::new(&toolbox));
        if let Some(remotes) = &server.remotes {
            report.remote_servers = remotes.report(&toolbox);
            report.remote_problems = remotes.problems();
        }
    }
    report
}

/// As many of the first as fit into one answer, but at least one.
fn fitting_rows(wanted: &[Snapshot], most: usize, mut room: usize) -> Vec<OperationReport> {
    let mut rows = Vec::new();
    for snapshot in wanted.iter().take(most) {
        let row = OperationReport::row(snapshot);
        let size = row.size();
        if size > room && !rows.is_empty() {
            break;
        }
        room = room.saturating_sub(size);
        rows.push(row);
    }
    rows
}

impl StatusReport {
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.operations.iter().map(OperationReport::row_text).collect();
        if lines.is_empty() {
            lines.push("no operations".to_owned());
        }
        match (self.operations_left_out, &self.tools) {
            (0, _) => {}
            (left_out, Some(_)) => lines.push(format!("and {left_out} more")),
            (left_out, None) => lines.push(format!(
                "[{left_out} more would not fit; ask for them in another call]"
            )),
        }
        if let Some(warning) = self.sandbox["warning"].as_str() {
            lines.push(format!("warning: {warning}"));
        }
        if let Some(tools) = &self.tools {
            lines.extend(tools.lines());
        }
        lines.extend(self.remote_servers.iter().filter_map(RemoteReport::line));
        lines.extend(self.remote_problems.iter().cloned());
        lines.join("\n")
    }
}

impl ToolsReport {
    /// What there is to say about them; nothing if all is well.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(problem) = &self.directory_problem {
            lines.push(format!("no tool files in {}: {problem}", self.directory));
        }
        for missing in &self.unavailable {
            let (names, verb) = match missing.tools.as_slice() {
                [first, _, _, .., last] => (
                    format!("{} tools from {first} to {last}", missing.tools.len()),
                    "are",
                ),
                [only] => (only.clone(), "is"),
                few => (few.join(" and "), "are"),
            };
            let install = missing
                .install_instructions
                .as_ref()
                .map(|how| format!("; hint: {how}"));
            lines.push(format!(
                "{names} {verb} not available: {}{}",
                missing.reason,
                install.unwrap_or_default()
            ));
        }
        lines.extend(self.problems.iter().cloned());
        for file in &self.last_good_version_in_use {
            lines.push(format!("{file}: the last good version stays in use"));
        }
        lines
    }
}

impl RemoteReport {
    /// What there is to say about it; nothing if all is well.
    fn line(&self) -> Option<String> {
        let mut line = match (&self.login_link, &self.reason) {
            (Some(link), _) => format!("wants a login: open {link}"),
            (None, Some(reason)) if self.state == "login_required" => format!("wants a login: {reason}"),
            (None, Some(reason)) if self.state == "failed" => format!("cannot be used: {reason}"),
            (None, Some(reason)) => format!("is {}: {reason}", self.state),
            (None, None) if self.state == "ready" && self.hidden_tools.is_empty() => return None,
            (None, None) => format!("is {}", self.state),
        };
        if !self.hidden_tools.is_empty() {
            let hidden = self.hidden_tools.join(", ");
            line.push_str(&format!("; not offered, because their names are taken: {hidden}"));
        }
        Some(format!("remote server {} {line}", self.name))
    }
}

impl ToolsReport {
    fn new(toolbox: &Toolbox) -> Self {
        let mut unavailable: Vec<UnavailableReport> = Vec::new();
        for missing in &toolbox.unavailable {
            let same = |known: &&mut UnavailableReport| {
                known.reason == missing.reason && known.install_instructions == missing.install_instructions
            };
            match unavailable.iter_mut().find(same) {
                Some(known) => known.tools.push(missing.tool.clone()),
                None => unavailable.push(UnavailableReport {
                    tools: vec![missing.tool.clone()],
                    reason: missing.reason.clone(),
                    install_instructions: missing.install_instructions.clone(),
                }),
            }
        }
        let mut problems: Vec<String> = toolbox.problems.iter().map(ToString::to_string).collect();
        let left_out = problems.len().saturating_sub(MOST_PROBLEMS);
        problems.truncate(MOST_PROBLEMS);
        if left_out > 0 {
            problems.push(format!("and {left_out} more; ahma_mcp doctor shows all of them"));
        }
        Self {
            directory: toolbox.directory.display().to_string(),
            offered: toolbox.offered.len(),
            directory_problem: toolbox.directory_problem.clone(),
            unavailable,
            problems,
            last_good_version_in_use: toolbox.stale.clone(),
        }
    }
}
