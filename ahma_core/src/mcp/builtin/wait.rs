//! `await`: waits for operations and collects their results.

use std::{sync::Arc, time::Duration};

use futures::future::{join_all, select_all};
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, JsonObject, Tool},
    service::RequestContext,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Inner, arguments::Arguments, find, reads_only, tool};
use crate::{
    mcp::{convert, error, progress::Reporter, report::OperationReport},
    operation::Operation,
};

const NAME: &str = "await";

/// Clients give up on a request after a minute.
const LONGEST_WAIT_SECONDS: u64 = 50;
const DEFAULT_WAIT_SECONDS: u64 = 45;

const DESCRIPTION: &str = "Waits for operations that run in the background and returns their results. \
    Without operation_ids it waits for every operation whose result was not collected yet. \
    Returns when all of them (or any, with until) have ended or the time is up; what still runs then goes on, so call it again.";

pub(super) fn definition() -> Tool {
    let properties = json!({
        "operation_ids": {
            "type": "array",
            "items": { "type": "string" },
            "description": "Which operations; all whose results were not collected yet when left out.",
        },
        "until": {
            "type": "string",
            "enum": ["all", "any"],
            "default": "all",
            "description": "Whether to wait for all of them or for the first one to end.",
        },
        "timeout_seconds": {
            "type": "integer",
            "minimum": 0,
            "maximum": LONGEST_WAIT_SECONDS,
            "default": DEFAULT_WAIT_SECONDS,
            "description": "How long to wait at most.",
        },
    });
    tool(NAME, DESCRIPTION, properties, &[])
        .with_raw_output_schema(convert::output_schema::<AwaitReport>())
        .with_annotations(reads_only("Await operations"))
}

/// What `await` answers.
#[derive(Debug, Serialize, JsonSchema)]
struct AwaitReport {
    /// Why it returned.
    reason: Returned,
    /// Those that have ended come first.
    operations: Vec<OperationReport>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Returned {
    AllEnded,
    OneEnded,
    TimeIsUp,
    NothingToWaitFor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    All,
    Any,
}

pub(super) async fn call(
    server: &Arc<Inner>,
    arguments: JsonObject,
    ctx: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let mut arguments = Arguments::new(arguments);
    let ids = arguments.texts("operation_ids");
    let until = arguments
        .choice("until", &[("all", Until::All), ("any", Until::Any)])
        .unwrap_or(Until::All);
    let seconds = arguments
        .integer("timeout_seconds", 0..=LONGEST_WAIT_SECONDS)
        .unwrap_or(DEFAULT_WAIT_SECONDS);
    let mut operations = Vec::new();
    match ids {
        Some(ids) => {
            for id in ids {
                match find(server, &id) {
                    Ok(operation) => operations.push(operation),
                    Err(problem) => arguments.problem(format!("operation_ids: {problem}")),
                }
            }
        }
        None => operations.extend(
            server
                .engine
                .operations()
                .into_iter()
                .filter(|operation| !operation.is_seen()),
        ),
    }
    if let Err(problems) = arguments.finish() {
        return Ok(server.results.invalid_arguments(NAME, &problems));
    }

    let waiting = async {
        tokio::select! {
            biased;
            returned = ended(&operations, until) => Some(returned),
            () = ctx.ct.cancelled() => None,
            () = tokio::time::sleep(Duration::from_secs(seconds)) => Some(Returned::TimeIsUp),
        }
    };
    match Reporter::while_doing(Reporter::new(ctx), &operations, waiting).await {
        Some(reason) => Ok(answer(server, reason, operations)),
        // Only the waiting ends; the operations go on and can be waited for again.
        None => Err(error::shutting_down()),
    }
}

async fn ended(operations: &[Operation], until: Until) -> Returned {
    if operations.is_empty() {
        return Returned::NothingToWaitFor;
    }
    let outcomes = operations.iter().map(|operation| Box::pin(operation.outcome()));
    match until {
        Until::All => {
            join_all(outcomes).await;
            Returned::AllEnded
        }
        Until::Any => {
            select_all(outcomes).await;
            if operations.iter().all(|operation| operation.ended().is_some()) {
                Returned::AllEnded
            } else {
                Returned::OneEnded
            }
        }
    }
}

fn answer(server: &Inner, reason: Returned, mut operations: Vec<Operation>) -> CallToolResult {
    operations.sort_by_key(|operation| operation.ended().is_none());
    let room = server.engine.settings().result_bytes / operations.len().max(1);
    let reports: Vec<OperationReport> = operations
        .iter()
        .map(|operation| {
            let mut report = OperationReport::full(operation);
            report.shorten_output(room.max(SMALLEST_SHARE_BYTES));
            if operation.ended().is_some() {
                operation.mark_seen();
            }
            report
        })
        .collect();
    let mut text = match reason {
        Returned::AllEnded => String::new(),
        Returned::OneEnded => "others are still running\n".to_owned(),
        Returned::TimeIsUp => {
            "the time is up; what still runs goes on, call await again to wait on\n".to_owned()
        }
        Returned::NothingToWaitFor => {
            "nothing to wait for: no operation is running or has a result to collect".to_owned()
        }
    };
    for report in &reports {
        text.push_str(&report.headline());
        text.push('\n');
        if let Some(output) = &report.output {
            text.push_str(output);
            if !output.is_empty() && !output.ends_with('\n') {
                text.push('\n');
            }
        }
    }
    server.results.success(
        text,
        &AwaitReport {
            reason,
            operations: reports,
        },
    )
}

/// Below this a piece of output says nothing.
const SMALLEST_SHARE_BYTES: usize = 256;
