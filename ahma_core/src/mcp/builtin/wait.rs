//! `await`: waits for operations and collects their results.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use futures::future::{join_all, select_all};
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, JsonObject, Tool},
    service::RequestContext,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Inner, MOST_IDS, OPERATION_IDS, arguments::Arguments, chosen, is_zero, reads_only, tool};
use crate::{
    mcp::{
        convert, error,
        feed::{Feed, Start},
        is_modern, owner,
        progress::Reporter,
        report::OperationReport,
    },
    operation::Operation,
};

const NAME: &str = "await";

/// Clients give up on a request after a minute.
pub(crate) const LONGEST_WAIT_SECONDS: u64 = 50;
const DEFAULT_WAIT_SECONDS: u64 = 45;

const DESCRIPTION: &str = "Waits for operations that run in the background and returns their results. \
    Without operation_ids it waits for every operation whose result was not collected yet. \
    Returns when all of them (or any, with until) have ended or the time is up; what still runs then goes on, so call it again.";

pub(super) fn definition() -> Tool {
    let properties = json!({
        OPERATION_IDS: {
            "type": "array",
            "items": { "type": "string" },
            "maxItems": MOST_IDS,
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
    /// How many more there are that would not fit into one answer; the next call begins with them.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
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
    let owner = owner::of(&ctx.meta);
    let operations = chosen(server, &owner, &mut arguments).unwrap_or_else(|| {
        let mut uncollected = server.engine.operations_of(&owner);
        uncollected.retain(|operation| !operation.is_seen());
        uncollected
    });
    let until = arguments
        .choice("until", &[("all", Until::All), ("any", Until::Any)])
        .unwrap_or(Until::All);
    let seconds = arguments
        .integer("timeout_seconds", 0..=LONGEST_WAIT_SECONDS)
        .unwrap_or(DEFAULT_WAIT_SECONDS);
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
    let reported = Reporter::while_doing(Reporter::new(ctx), &operations, Start::Now, waiting);
    // A client of the older era is told of operations from their start, whether it waits or not.
    let mut feed = Feed::new(server, ctx, &operations, Start::Now).filter(|_| is_modern(ctx));
    match Feed::while_doing(feed.as_mut(), reported).await {
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

/// As many reports as fit into one answer: ended ones first, and of those the ones that nobody was given yet. What does
/// not fit stays uncollected, so that the next call begins with it.
fn answer(server: &Inner, reason: Returned, mut operations: Vec<Operation>) -> CallToolResult {
    operations.sort_by_key(|operation| (operation.ended().is_none(), operation.is_seen()));
    let mut room = server.engine.settings().result_bytes;
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
    let mut reports = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        let mut report = OperationReport::full(operation);
        // One alone says what its own call would have said.
        if operations.len() > 1 {
            report.shorten(operation.output(), room / (operations.len() - index));
            let size = report.size();
            if size > room && !reports.is_empty() {
                break;
            }
            room = room.saturating_sub(size);
        }
        text.push_str(&report.told());
        if !text.ends_with('\n') {
            text.push('\n');
        }
        // The report is what the client is given; it may have been made just before the end.
        if report.has_ended() {
            operation.mark_seen();
        }
        reports.push(report);
    }
    let left_out = operations.len() - reports.len();
    if left_out > 0 {
        let _ = writeln!(text, "[{left_out} more would not fit; call await again for them]");
    }
    server.results.success(
        text,
        &AwaitReport {
            reason,
            operations: reports,
            left_out,
        },
    )
}
