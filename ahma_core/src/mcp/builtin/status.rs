//! `status`: the state of operations and remote servers, mistakes in tool files, and tools that are not available.

use std::{collections::HashSet, sync::Arc, time::SystemTime};

use ahma_common::{error_chain, value};
use rmcp::model::{CallToolResult, JsonObject, Tool};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    lookup::{OPERATION_IDS, chosen, finish},
    registry::{is_zero, reads_only, tool},
};
use crate::{
    call::NamedArguments,
    history::{History, OperationFilter, OperationRow},
    mcp::{client::Caller, convert, error::CallRefusal, report::OperationReport, server::Server},
    operation::{Cluster, Operation, OperationState, PoolFilter, Snapshot, Whose},
    toolbox::{LackingTools, Toolbox},
};

const NAME: &str = "status";
const TOOLS: &str = "tools";
const SINCE: &str = "since";
const TOOL: &str = "tool";
const TEXT: &str = "text";

/// Enough for an overview; older ones are found by id.
const MAX_ROWS: usize = 50;

/// Number of mistakes shown; `ahma_mcp doctor` shows all.
const MAX_PROBLEMS: usize = 20;

/// Ended operations named in the text, besides those whose results were not collected.
const RECENT_ROWS: usize = 5;

const DESCRIPTION: &str = "Lists operations: running, uncollected, the last five; earlier ones by since (2h), tool or text; `tools`: faults of tools.";

pub(super) fn definition() -> Tool {
    let properties = json!({
        OPERATION_IDS: { "type": "array", "items": { "type": "string" } },
        SINCE: { "type": "string" },
        TOOL: { "type": "string" },
        TEXT: { "type": "string" },
        TOOLS: { "type": "boolean" },
    });
    tool(NAME, DESCRIPTION, properties, &[]).with_annotations(reads_only())
}

/// The answer of `status`, and the resource of that name.
#[derive(Debug, Serialize)]
pub(crate) struct StatusReport {
    running: usize,
    queued: usize,
    operations: Vec<OperationReport>,
    /// For each of them, true if the text names it.
    #[serde(skip)]
    in_text: Vec<bool>,
    /// Number of operations that would come after these, and are not shown.
    #[serde(skip_serializing_if = "is_zero")]
    operations_left_out: usize,
    sandbox: Value,
    /// Reason why operations are not written down at present.
    #[serde(skip_serializing_if = "Option::is_none")]
    history_trouble: Option<String>,
    /// Left out when operations are asked for by their ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<ToolsReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remote_servers: Vec<RemoteReport>,
    /// Mistakes in the file that names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remote_problems: Vec<String>,
}

/// Another MCP server whose tools are offered here.
#[derive(Debug, Default, Serialize)]
pub(crate) struct RemoteReport {
    pub(crate) name: String,
    /// One of `connecting`, `ready`, `login_required`, `failed`.
    pub(crate) state: &'static str,
    /// Number of its tools.
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

#[derive(Debug, Serialize)]
struct ToolsReport {
    directory: String,
    /// Number of those that can be called, besides the built-in ones.
    offered: usize,
    /// Reason why there are no tool files.
    #[serde(skip_serializing_if = "Option::is_none")]
    directory_problem: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unavailable: Vec<LackingTools>,
    /// Mistakes in tool files, as `file:line:column: …`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
    /// Files that were edited into something broken; their last good version is in use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    last_good_version_in_use: Vec<String>,
}

pub(super) async fn call(
    server: &Arc<Server>,
    arguments: JsonObject,
    caller: &Caller,
) -> Result<CallToolResult, CallRefusal> {
    let mut arguments = NamedArguments::new(arguments);
    let chosen = chosen(server, caller, &mut arguments).await;
    let search = search(&mut arguments);
    if chosen.is_some() && search.is_some() {
        arguments.problem(
            OPERATION_IDS,
            format!("cannot be combined with `{SINCE}`, `{TOOL}` and `{TEXT}`"),
        );
    }
    let wants_tools = arguments.flag(TOOLS).unwrap_or(false);
    finish(server, arguments, definition)?;
    let report = match search {
        Some(filter) => {
            let found = found(server, caller, filter).await;
            found.map_err(|problem| server.results.refusal(problem))?
        }
        None => report(server, server.operations_of(caller).await, chosen),
    };
    let mut text = report.text();
    match &report.tools {
        Some(tools) if wants_tools => tools.lines().iter().for_each(|line| {
            text.push('\n');
            text.push_str(line);
        }),
        Some(tools) if !tools.lines().is_empty() => {
            text.push_str(
                "\nsome tools are not available or have mistakes: status {\"tools\": true} names them",
            );
        }
        Some(_) | None => {}
    }
    let result = server.results.success(text, &report);
    Ok(convert::with_operations(result, &report.operations))
}

/// The search that the arguments ask for, if they do.
fn search(arguments: &mut NamedArguments) -> Option<OperationFilter> {
    let since = arguments.text(SINCE).filter(|since| !since.is_empty());
    let since = since.map(|text| match value::duration(&text) {
        Ok(age) => SystemTime::now().checked_sub(age),
        Err(problem) => {
            arguments.problem(SINCE, problem);
            None
        }
    });
    let tool = arguments.text(TOOL).filter(|tool| !tool.is_empty());
    let text = arguments.text(TEXT).filter(|text| !text.is_empty());
    if since.is_none() && tool.is_none() && text.is_none() {
        return None;
    }
    Some(OperationFilter {
        since: since.flatten(),
        tool,
        text,
        limit: MAX_ROWS,
        ..OperationFilter::default()
    })
}

/// Operations of the caller's principal in this scope that match, whichever session started them.
async fn found(server: &Server, caller: &Caller, filter: OperationFilter) -> Result<StatusReport, String> {
    let wanted = match (&server.settings.cluster, &server.settings.history) {
        (Some(cluster), _) => found_in_pool(cluster.as_ref(), caller, filter).await,
        (None, Some(history)) => found_in_history(server, history, caller, filter).await?,
        (None, None) => {
            return Err(
                "no history is kept (--no-history): only operations of this session are known".to_owned(),
            );
        }
    };
    let mut report = StatusReport::empty(server);
    report.running = count_in(&wanted, OperationState::Running);
    report.queued = count_in(&wanted, OperationState::Queued);
    report.operations = fitting_rows(&wanted, MAX_ROWS, server.engine.settings().result_bytes);
    report.operations_left_out = wanted.len() - report.operations.len();
    report.in_text = vec![true; report.operations.len()];
    Ok(report)
}

async fn found_in_history(
    server: &Server,
    history: &History,
    caller: &Caller,
    filter: OperationFilter,
) -> Result<Vec<Snapshot>, String> {
    history.recorded().await;
    let rows = history.list(&caller.principal, filter).await;
    let rows = rows.map_err(|error| format!("the history cannot be read: {}", error_chain(&error)))?;
    // Memory knows more of those that run.
    let current = |row: &OperationRow| match server.engine.get_for(&caller.principal, row.id.as_str()) {
        Some(operation) => operation.snapshot(),
        None => row.snapshot(),
    };
    Ok(rows.iter().map(current).collect())
}

async fn found_in_pool(cluster: &dyn Cluster, caller: &Caller, filter: OperationFilter) -> Vec<Snapshot> {
    let wanted = PoolFilter {
        tool: filter.tool,
        text: filter.text,
        since: filter.since,
        ..PoolFilter::new(Whose::One(&caller.principal), filter.limit)
    };
    let found = cluster.list(wanted).await;
    found.into_iter().map(|operation| operation.snapshot).collect()
}

fn count_in(snapshots: &[Snapshot], state: OperationState) -> usize {
    let in_state = snapshots.iter().filter(|snapshot| snapshot.state == state);
    in_state.count()
}

/// The state of the chosen operations, or of the client's most recent ones.
pub(crate) fn report(server: &Server, all: Vec<Operation>, chosen: Option<Vec<Operation>>) -> StatusReport {
    let snapshots: Vec<_> = all.iter().map(Operation::snapshot).collect();
    let running = count_in(&snapshots, OperationState::Running);
    let queued = count_in(&snapshots, OperationState::Queued);
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
    let most = if is_choice { usize::MAX } else { MAX_ROWS };
    let uncollected = all.iter().filter(|operation| !operation.is_seen());
    let uncollected: HashSet<_> = uncollected.map(Operation::id).collect();
    let mut recent = 0;
    let in_text = wanted
        .iter()
        .map(|snapshot| {
            if is_choice || !snapshot.state.is_final() || uncollected.contains(&snapshot.id) {
                return true;
            }
            recent += 1;
            recent <= RECENT_ROWS
        })
        .collect();
    let operations = fitting_rows(&wanted, most, server.engine.settings().result_bytes);
    let mut report = StatusReport {
        running,
        queued,
        operations_left_out: wanted.len() - operations.len(),
        operations,
        in_text,
        ..StatusReport::empty(server)
    };
    // A call that names operations asks for nothing else.
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
    fn empty(server: &Server) -> Self {
        Self {
            running: 0,
            queued: 0,
            operations: Vec::new(),
            in_text: Vec::new(),
            operations_left_out: 0,
            sandbox: convert::sandbox_value(&server.settings.sandbox),
            history_trouble: server.settings.history.as_ref().and_then(History::trouble),
            tools: None,
            remote_servers: Vec::new(),
            remote_problems: Vec::new(),
        }
    }

    fn text(&self) -> String {
        let named = self.operations.iter().zip(&self.in_text);
        let mut lines: Vec<String> = named
            .filter(|(_, in_text)| **in_text)
            .map(|(operation, _)| operation.row_text())
            .collect();
        let left_out = self.operations.len() - lines.len() + self.operations_left_out;
        if lines.is_empty() {
            lines.push("no operations".to_owned());
        }
        match (left_out, &self.tools) {
            (0, _) => {}
            (left_out, Some(_)) => lines.push(format!("and {left_out} more")),
            (left_out, None) => lines.push(format!(
                "[{left_out} more would not fit; ask for them in another call]"
            )),
        }
        if let Some(warning) = self.sandbox["warning"].as_str() {
            lines.push(format!("warning: {warning}"));
        }
        if let Some(trouble) = &self.history_trouble {
            lines.push(format!("warning: operations are not written down: {trouble}"));
        }
        lines.extend(self.remote_servers.iter().filter_map(RemoteReport::line));
        lines.extend(self.remote_problems.iter().cloned());
        lines.join("\n")
    }
}

impl ToolsReport {
    /// Lines about their problems.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(problem) = &self.directory_problem {
            lines.push(format!("no tool files in {}: {problem}", self.directory));
        }
        for missing in &self.unavailable {
            let verb = if missing.tools.len() == 1 { "is" } else { "are" };
            let (names, reason) = (missing.names(), &missing.reason);
            let install = missing.install_instructions.as_ref();
            let install = install.map_or_else(String::new, |how| format!("; hint: {how}"));
            lines.push(format!("{names} {verb} not available: {reason}{install}"));
        }
        lines.extend(self.problems.iter().cloned());
        for file in &self.last_good_version_in_use {
            lines.push(format!("{file}: the last good version stays in use"));
        }
        lines
    }
}

impl RemoteReport {
    /// A line about it, unless all is well.
    fn line(&self) -> Option<String> {
        let mut line = match (&self.login_link, &self.reason) {
            (Some(link), _) => format!("requires a login: open {link}"),
            (None, Some(reason)) if self.state == "login_required" => format!("requires a login: {reason}"),
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
        let mut problems: Vec<String> = toolbox.problems.iter().map(ToString::to_string).collect();
        let left_out = problems.len().saturating_sub(MAX_PROBLEMS);
        problems.truncate(MAX_PROBLEMS);
        if left_out > 0 {
            problems.push(format!("and {left_out} more; ahma_mcp doctor shows all of them"));
        }
        Self {
            directory: toolbox.directory.display().to_string(),
            offered: toolbox.offered.len(),
            directory_problem: toolbox.directory_problem.clone(),
            unavailable: toolbox.lacking(),
            problems,
            last_good_version_in_use: toolbox.stale.clone(),
        }
    }
}
