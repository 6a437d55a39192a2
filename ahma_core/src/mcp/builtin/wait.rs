//! `await`: waits for operations and collects their results.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use futures::future::{join_all, select_all};
use regex::Regex;
use rmcp::{
    RoleServer,
    model::{CallToolResult, JsonObject, Tool},
    service::RequestContext,
};
use serde::Serialize;
use serde_json::json;

use super::{
    lookup::{OPERATION_IDS, chosen, finish},
    registry::{is_zero, reads_only, tool},
};
use crate::{
    call::NamedArguments,
    mcp::{
        client::{self, MAX_AWAIT},
        convert,
        error::{self, CallRefusal},
        handler::is_modern,
        log_messages::LogSink,
        progress::ProgressSink,
        report::OperationReport,
        server::Server,
        watcher::{StartAt, Watcher},
    },
    operation::Operation,
};

const NAME: &str = "await";

const DESCRIPTION: &str = "Waits for operations; returns what is new: without operation_ids when any has ended, with until_line when a line matches.";

pub(super) fn definition() -> Tool {
    let properties = json!({
        OPERATION_IDS: { "type": "array", "items": { "type": "string" } },
        "until": { "type": "string", "enum": ["all", "any"] },
        "until_line": { "type": "string" },
        "timeout_seconds": { "type": "integer" },
    });
    tool(NAME, DESCRIPTION, properties, &[]).with_annotations(reads_only())
}

/// The answer of `await`.
#[derive(Debug, Serialize)]
struct AwaitReport {
    /// Reason for the return.
    reason: AwaitReason,
    /// Those that have ended come first.
    operations: Vec<OperationReport>,
    /// Number of others that would not fit into one answer; the next call begins with them.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum AwaitReason {
    AllEnded,
    OneEnded,
    LineFound,
    TimeIsUp,
    NothingToWaitFor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    All,
    Any,
}

pub(super) async fn call(
    server: &Arc<Server>,
    arguments: JsonObject,
    ctx: &RequestContext<RoleServer>,
) -> Result<CallToolResult, CallRefusal> {
    let mut arguments = NamedArguments::new(arguments);
    let caller = client::caller(server, &ctx.meta);
    let named = chosen(server, &caller, &mut arguments).await;
    let until = arguments.choice("until", &[("all", Until::All), ("any", Until::Any)]);
    let until_line = arguments.text("until_line").filter(|pattern| !pattern.is_empty());
    if let Some(Err(error)) = until_line.as_deref().map(Regex::new) {
        arguments.problem("until_line", format!("is not a regular expression: {error}"));
    }
    let seconds = arguments.integer("timeout_seconds", 0..=MAX_AWAIT.as_secs());
    finish(server, arguments, definition)?;
    let until = until.unwrap_or(match named {
        Some(_) => Until::All,
        None => Until::Any,
    });
    let operations = match named {
        Some(named) => named,
        None => {
            let mut uncollected = server.operations_of(&caller).await;
            uncollected.retain(|operation| !operation.is_seen());
            // An operation that keeps running is waited for only by its id, or by its output.
            if until_line.is_none() {
                uncollected.retain(|operation| operation.ended().is_some() || !operation.keeps_running());
            }
            uncollected
        }
    };

    let wait = client::await_wait(seconds.map(Duration::from_secs), &server.settings, ctx);
    let waiting = async {
        tokio::select! {
            biased;
            returned = ended(&operations, until) => Some(returned),
            reason = line_found(&operations, until_line.as_deref()) => Some(reason),
            () = ctx.ct.cancelled() => None,
            () = tokio::time::sleep(wait) => Some(AwaitReason::TimeIsUp),
        }
    };
    let mut watcher =
        Watcher::new(&operations).with(ProgressSink::for_request(ctx, &operations, StartAt::Now));
    // A client of the legacy era gets the log of operations from their start, whether it waits or not.
    if is_modern(ctx) {
        watcher = watcher.with(LogSink::for_request(server, ctx, &operations, StartAt::Now));
    }
    match watcher.during(waiting).await {
        Some(reason) => Ok(answer(server, reason, operations)),
        // Only the waiting ends; the operations go on and can be waited for again.
        None => Err(error::shutting_down().into()),
    }
}

async fn ended(operations: &[Operation], until: Until) -> AwaitReason {
    if operations.is_empty() {
        return AwaitReason::NothingToWaitFor;
    }
    let outcomes = operations.iter().map(|operation| Box::pin(operation.outcome()));
    match until {
        Until::All => {
            join_all(outcomes).await;
            AwaitReason::AllEnded
        }
        Until::Any => {
            select_all(outcomes).await;
            if operations.iter().all(|operation| operation.ended().is_some()) {
                AwaitReason::AllEnded
            } else {
                AwaitReason::OneEnded
            }
        }
    }
}

/// Waits for a line that matches, printed already or later; for ever without a pattern.
async fn line_found(operations: &[Operation], pattern: Option<&str>) -> AwaitReason {
    let Some(pattern) = pattern.filter(|_| !operations.is_empty()) else {
        return std::future::pending().await;
    };
    let found = operations
        .iter()
        .map(|operation| Box::pin(operation.line_matching(pattern)));
    select_all(found).await;
    AwaitReason::LineFound
}

/// As many reports as fit into one answer: ended ones first, and of those the ones not delivered yet. What does
/// not fit stays uncollected, so that the next call begins with it.
fn answer(server: &Server, reason: AwaitReason, mut operations: Vec<Operation>) -> CallToolResult {
    operations.sort_by_key(|operation| (operation.ended().is_none(), operation.is_seen()));
    let mut room = server.engine.settings().result_bytes;
    let mut text = String::new();
    if reason == AwaitReason::NothingToWaitFor {
        text.push_str("nothing to wait for: no operation has a result to collect or is about to end (status lists those that keep running)");
    }
    let mut reports = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        // If one has ended, others are only listed.
        let mut report = match reason {
            AwaitReason::OneEnded if operation.ended().is_none() => {
                OperationReport::row(&operation.snapshot())
            }
            _ => OperationReport::news(operation),
        };
        // A single report is the same as the answer of its own call.
        if operations.len() > 1 {
            report.shorten(operation.output(), room / (operations.len() - index));
            let size = report.size();
            if size > room && !reports.is_empty() {
                break;
            }
            room = room.saturating_sub(size);
        }
        if operations.len() > 1 {
            text.push_str(&report.told_among_others());
        } else {
            text.push_str(&report.told());
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        // The report may have been made just before the end.
        if report.has_ended() {
            operation.mark_seen();
        }
        if report.output.is_some() {
            operation.mark_read(report.output_bytes.unwrap_or(0));
        }
        reports.push(report);
    }
    let left_out = operations.len() - reports.len();
    if left_out > 0 {
        let _ = writeln!(text, "[{left_out} more would not fit; call await again for them]");
    }
    let report = AwaitReport {
        reason,
        operations: reports,
        left_out,
    };
    let result = server.results.success(text, &report);
    convert::with_operations(result, &report.operations)
}
