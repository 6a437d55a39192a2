//! A call of a tool: plan, start, and wait or not.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResponse, CallToolResult},
    service::RequestContext,
};

use super::{
    Inner, error,
    feed::{Feed, Start},
    is_modern, owner,
    progress::{self, Reporter},
    report::{OperationReport, Status},
    tasks,
};
use crate::{
    call::{ArgumentProblem, CallError, ExecutionMode, ToolCall, plan, working_directory},
    operation::{Operation, Outcome, directory_problem},
    toolbox::Unavailable,
};

/// Runs a tool of the catalogue. Only a tool that does not exist is a protocol error.
pub(super) async fn run(
    server: &Arc<Inner>,
    call: ToolCall,
    ctx: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let mut toolbox = server.toolbox.loaded().await;
    let tool = call.tool.clone();
    if toolbox.lacks(&tool).is_some() {
        toolbox = ctx
            .ct
            .run_until_cancelled(server.toolbox.look_again(&tool))
            .await
            .ok_or_else(error::cancelled)?;
    }
    if let Some(unavailable) = toolbox.lacks(&tool) {
        return Ok(server.results.refusal(why_unavailable(unavailable)).into());
    }
    let settings = &server.settings.plan;
    let directory = working_directory(settings, &call);
    let plan = match plan(&toolbox.offered, settings, call) {
        Ok(plan) => plan,
        Err(CallError::UnknownTool { name, nearest }) => return Err(error::unknown_tool(&name, &nearest)),
        Err(CallError::Invalid { mut problems, .. }) => {
            // Everything that is wrong is said at once, also what only a look at the directory tells.
            if let Some(directory) = directory.filter(|_| !server.settings.deferred)
                && let Some(problem) = directory_problem(settings, &directory).await
            {
                problems.push(ArgumentProblem::new("working_directory", problem));
            }
            return Ok(server.results.invalid_arguments(&tool, &problems).into());
        }
        Err(error @ CallError::MissingStep { .. }) => {
            return Ok(server.results.refusal(error.to_string()).into());
        }
    };
    if server.settings.deferred {
        return Ok(server
            .results
            .refusal("nothing can be run yet: the client has not said which directory to work in")
            .into());
    }
    if let Some(problem) = directory_problem(settings, &plan.directory).await {
        let problem = ArgumentProblem::new("working_directory", problem);
        return Ok(server.results.invalid_arguments(&tool, &[problem]).into());
    }
    // The client would never hear of what is started now: a cancelled request has no answer.
    if ctx.ct.is_cancelled() {
        return Err(error::cancelled());
    }
    let (mode, timeout) = (plan.mode, plan.timeout);
    let operation = server.engine.start_for(owner::of(&ctx.meta), plan);
    // It could not be taken in, and is not to be waited for.
    if let Some(outcome) = operation.ended() {
        operation.mark_seen();
        return Ok(server.results.operation(&OperationReport::ended(&outcome)).into());
    }
    match mode {
        ExecutionMode::Synchronous => synchronous(server, operation, ctx).await.map(Into::into),
        ExecutionMode::Asynchronous => {
            let task = tasks::are_offered(ctx).then(|| tasks::create(server, &operation, timeout));
            Ok(match task.flatten() {
                Some(task) => task.into(),
                None => asynchronous(server, operation, ctx).into(),
            })
        }
    }
}

/// How waiting for a synchronous command came to its end.
enum Waited {
    Ended(Arc<Outcome>),
    TooLong,
    RequestGone,
}

async fn synchronous(
    server: &Arc<Inner>,
    operation: Operation,
    ctx: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let waiting = async {
        tokio::select! {
            biased;
            outcome = operation.outcome() => Waited::Ended(outcome),
            () = ctx.ct.cancelled() => Waited::RequestGone,
            () = tokio::time::sleep(server.settings.sync_wait) => Waited::TooLong,
        }
    };
    let operations = std::slice::from_ref(&operation);
    let mut feed = Feed::new(server, ctx, operations, Start::Beginning);
    let reported = Reporter::while_doing(Reporter::new(ctx), operations, Start::Beginning, waiting);
    match Feed::while_doing(feed.as_mut(), reported).await {
        Waited::Ended(outcome) => {
            operation.mark_seen();
            Ok(server.results.operation(&OperationReport::ended(&outcome)))
        }
        Waited::TooLong => {
            let answer = still_running(server, &operation);
            tell_in_background(server, operation, feed, ctx);
            Ok(answer)
        }
        // The engine ends everything when the server does; nobody waits for this answer.
        Waited::RequestGone if server.shutdown.is_cancelled() => Err(error::shutting_down()),
        Waited::RequestGone => {
            let outcome = operation
                .cancel(Some("the client cancelled the request".to_owned()))
                .await;
            Ok(server.results.operation(&OperationReport::ended(&outcome)))
        }
    }
}

/// The client would give up soon, so it gets what there is; the command goes on.
fn still_running(server: &Arc<Inner>, operation: &Operation) -> CallToolResult {
    let mut report = OperationReport::full(operation);
    let stands = match report.status {
        Status::Queued => "it has not begun and keeps its place in the queue; await",
        _ => "it goes on in the background; await",
    };
    report.hint = Some(format!(
        "{stands} {{\"operation_ids\": [\"{}\"]}} collects its result",
        operation.id()
    ));
    server.results.operation(&report)
}

fn asynchronous(
    server: &Arc<Inner>,
    operation: Operation,
    ctx: &RequestContext<RoleServer>,
) -> CallToolResult {
    let report = OperationReport::started(&operation);
    let text = format!(
        "{}; go on with other work, and collect the result with await {{\"operation_ids\": [\"{}\"]}}",
        report.beginning(),
        operation.id()
    );
    let feed = Feed::new(server, ctx, std::slice::from_ref(&operation), Start::Beginning);
    tell_in_background(server, operation, feed, ctx);
    server.results.success(text, &report)
}

/// Tells on of an operation whose call is answered, and of its end. The newer era forbids messages about a request after
/// its answer.
fn tell_in_background(
    server: &Arc<Inner>,
    operation: Operation,
    feed: Option<Feed>,
    ctx: &RequestContext<RoleServer>,
) {
    if is_modern(ctx) {
        return;
    }
    if let Some(feed) = feed {
        server.spawn(feed.follow(operation.clone()));
    }
    let peer = ctx.peer.clone();
    let (request, token) = (ctx.id.clone(), ctx.meta.get_progress_token());
    server.spawn(async move {
        let outcome = operation.outcome().await;
        progress::announce_end(&peer, &request, token, &OperationReport::ended(&outcome)).await;
    });
}

/// For a tool that exists and cannot work here: why, and how to change that.
fn why_unavailable(unavailable: &Unavailable) -> String {
    let Unavailable { tool, reason, .. } = unavailable;
    let mut text = format!("`{tool}` is not available: {reason}");
    if let Some(instructions) = &unavailable.install_instructions {
        text.push_str("\nhint: ");
        text.push_str(instructions);
        text.push_str("\nThen call it again.");
    }
    text
}
