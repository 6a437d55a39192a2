//! A call of a tool: preflight, start, and wait or not.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleServer,
    model::{CallToolResponse, CallToolResult},
    service::RequestContext,
};

use super::{
    builtin, client, convert,
    error::{self, CallRefusal},
    handler::is_modern,
    log_messages::LogSink,
    progress::{self, ProgressSink},
    report::OperationReport,
    server::Server,
    standstill, tasks,
    watcher::{StartAt, Watcher},
};
use crate::{
    call::{CallError, CommandPlan, ExecutionMode, ToolCall, plan},
    catalog::{Catalog, Tool},
    history::redacted_arguments,
    operation::{CallOrigin, Operation, Outcome, preflight},
    sandbox::{self, HintContext},
    toolbox::{Toolbox, Unavailable},
};

/// Runs a tool of the catalog. Only a tool that does not exist is a protocol error.
pub(super) async fn run(
    server: &Arc<Server>,
    call: ToolCall,
    ctx: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, CallRefusal> {
    let toolbox = available(server, &call.tool, ctx).await?;
    let has_history = server.settings.history.is_some();
    let arguments = has_history.then(|| redacted_arguments(&call.arguments)).flatten();
    let (plan, call) = planned(server, &toolbox.offered, call, ctx).await?;
    // The client would never learn of what is started now: a cancelled request has no answer.
    if ctx.ct.is_cancelled() {
        return Err(error::cancelled().into());
    }
    let (mode, timeout) = (plan.mode, plan.timeout);
    let origin = CallOrigin {
        client: client::of(&ctx.meta),
        principal: client::principal(server, &ctx.meta),
        program: client::program(&ctx.meta).or_else(|| ctx.client_info().map(|client| client.name)),
        arguments,
    };
    let operation = match (&server.settings.cluster, call) {
        (Some(cluster), Some(call)) => {
            let tool = toolbox.offered.get(&call.tool);
            let may_rerun = tool.is_some_and(|tool| may_rerun(tool));
            let submitted = cluster.submit(origin, call, &plan, may_rerun).await;
            submitted.map_err(|reason| server.results.refusal(reason))?
        }
        _ => server.engine.start_for(origin, plan),
    };
    // It was refused, so there is nothing to wait for.
    if let Some(outcome) = operation.ended() {
        operation.mark_seen();
        return Ok(server.results.operation(&OperationReport::ended(&outcome)).into());
    }
    // A client that supports tasks follows one itself, without a turn of its model, so there is nothing to wait for.
    if mode != ExecutionMode::Synchronous && tasks::are_offered(ctx) {
        let form = convert::wanted_form(server.settings.results, &ctx.meta);
        if let Some(task) = tasks::create(server, &operation, timeout, form).await {
            recorded(server).await;
            return Ok(task.into());
        }
    }
    let wait = match mode {
        // It reports when it is ready; its end is not waited for.
        _ if operation.tells_when_ready() => client::sync_wait(&server.settings, ctx),
        _ if operation.keeps_running() => server.settings.inline_wait,
        ExecutionMode::Synchronous => client::sync_wait(&server.settings, ctx),
        ExecutionMode::Inline => server.settings.inline_wait,
        ExecutionMode::Asynchronous => Duration::ZERO,
    };
    match waited(server, operation, wait, ctx).await? {
        WaitedCall::Ended(result) => Ok(result.into()),
        WaitedCall::GoesOn(operation, watcher) => {
            Ok(in_background(server, operation, watcher, wait, ctx).await.into())
        }
    }
}

/// The toolbox, with the tool of the call. Checks again what a tool lacks, and refuses it if that is still missing.
async fn available(
    server: &Server,
    tool: &str,
    ctx: &RequestContext<RoleServer>,
) -> Result<Arc<Toolbox>, CallRefusal> {
    let mut toolbox = server.toolbox.loaded().await;
    if toolbox.unavailable(tool).is_some() {
        let rechecked = ctx.ct.run_until_cancelled(server.toolbox.recheck(tool)).await;
        toolbox = rechecked.ok_or_else(error::cancelled)?;
    }
    match toolbox.unavailable(tool) {
        None => Ok(toolbox),
        Some(unavailable) => {
            let reason = why_unavailable(unavailable, server.engine.hint_context());
            Err(server.results.refusal(reason).into())
        }
    }
}

/// The plan of a call and, on a cluster, the call itself, which a worker plans anew.
async fn planned(
    server: &Arc<Server>,
    offered: &Catalog,
    call: ToolCall,
    ctx: &RequestContext<RoleServer>,
) -> Result<(CommandPlan, Option<ToolCall>), CallRefusal> {
    let settings = &server.settings;
    let call = match call.tool == builtin::FILE_WRITE {
        true => builtin::with_content(server, call, ctx).await,
        false => Ok(call),
    };
    let mut handed_over = None;
    let planned = match call {
        // The worker checks the directory: it may be another one than here.
        Ok(call) if settings.deferred || settings.cluster.is_some() => {
            handed_over = Some(call.clone());
            plan(offered, &settings.plan, call)
        }
        Ok(call) => preflight(offered, &settings.plan, call).await,
        Err(error) => Err(error),
    };
    match planned {
        Ok(_) if settings.deferred => {
            let reason = "nothing can be run yet: the client has not said which directory to work in";
            Err(server.results.refusal(reason).into())
        }
        Ok(plan) => Ok((plan, handed_over)),
        Err(CallError::UnknownTool { name, nearest }) => Err(error::unknown_tool(&name, &nearest).into()),
        Err(error) => Err(refused(server, offered, error).into()),
    }
}

/// The answer to a call whose operation goes on, which is reported on until its end.
async fn in_background(
    server: &Arc<Server>,
    operation: Operation,
    watcher: Watcher,
    wait: Duration,
    ctx: &RequestContext<RoleServer>,
) -> CallToolResult {
    recorded(server).await;
    let mut report = if wait.is_zero() {
        OperationReport::started(&operation)
    } else {
        OperationReport::full(&operation)
    };
    if report.has_ended() {
        operation.mark_seen();
        return server.results.operation(&report);
    }
    let is_ready = operation.is_ready();
    report.hint = if operation.tells_when_ready() && !is_ready {
        Some("it is not ready yet; await with its id and until_line waits on".to_owned())
    } else if wait.is_zero() {
        // It has only just begun, and the kernel takes ten milliseconds or more to list the locks of all processes.
        None
    } else {
        standstill::hint(&operation).await
    };
    // Output of a call that was answered at once has not been shown.
    if report.output.is_some() {
        operation.mark_read(report.output_bytes.unwrap_or(0));
    }
    watch_in_background(server, operation, watcher, ctx);
    server.results.about(&report, goes_on(&report, is_ready))
}

/// A second run of the tool does no harm.
fn may_rerun(tool: &Tool) -> bool {
    tool.annotations.read_only == Some(true) || tool.annotations.idempotent == Some(true)
}

/// Waits until the operation is recorded: its client is about to learn of it, and may ask for it after the end of this
/// server.
async fn recorded(server: &Server) {
    if let Some(history) = &server.settings.history {
        history.recorded().await;
    }
}

fn refused(server: &Server, catalog: &Catalog, error: CallError) -> CallToolResult {
    let offered = match &error {
        CallError::Invalid { tool, .. } => catalog.get(tool),
        CallError::UnknownTool { .. } | CallError::MissingStep { .. } => None,
    };
    match (error, offered) {
        (CallError::Invalid { problems, .. }, Some(offered)) => server
            .results
            .invalid_arguments(&convert::tool(offered), problems),
        (error, _) => server.results.refusal(error.to_string()),
    }
}

/// A call whose wait is over.
enum WaitedCall {
    Ended(CallToolResult),
    /// The client would give up soon, or does not want to wait; the command goes on.
    GoesOn(Operation, Watcher),
}

/// End of a wait.
enum Waited {
    Ended(Arc<Outcome>),
    TooLong,
    RequestGone,
}

async fn waited(
    server: &Arc<Server>,
    operation: Operation,
    wait: Duration,
    ctx: &RequestContext<RoleServer>,
) -> Result<WaitedCall, CallRefusal> {
    let operations = std::slice::from_ref(&operation);
    let mut watcher = Watcher::new(operations);
    // Progress of a call that is answered at once would come after its answer.
    if !wait.is_zero() {
        watcher = watcher.with(ProgressSink::for_request(ctx, operations, StartAt::Beginning));
    }
    watcher = watcher.with(LogSink::for_request(server, ctx, operations, StartAt::Beginning));
    if wait.is_zero() {
        return Ok(WaitedCall::GoesOn(operation, watcher));
    }
    let waiting = async {
        tokio::select! {
            biased;
            outcome = operation.outcome() => Waited::Ended(outcome),
            () = ctx.ct.cancelled() => Waited::RequestGone,
            () = operation.ready() => Waited::TooLong,
            // The client is answered at once: it may be able to help.
            () = standstill::begun(&operation) => Waited::TooLong,
            () = tokio::time::sleep(wait) => Waited::TooLong,
        }
    };
    let outcome = match watcher.during(waiting).await {
        Waited::Ended(outcome) => {
            operation.mark_seen();
            outcome
        }
        Waited::TooLong => return Ok(WaitedCall::GoesOn(operation, watcher)),
        // The engine ends everything when the server does; this answer is not waited for.
        Waited::RequestGone if server.shutdown.is_cancelled() => return Err(error::shutting_down().into()),
        // The client does not know the operation, so no other request can end it.
        Waited::RequestGone => {
            operation
                .cancel(Some("the client cancelled the request".to_owned()))
                .await
        }
    };
    let result = server.results.operation(&OperationReport::ended(&outcome));
    Ok(WaitedCall::Ended(result))
}

/// The text about an operation that goes on in the background.
fn goes_on(report: &OperationReport, is_ready: bool) -> String {
    let text = report.told();
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let separator = if rest.is_empty() { "" } else { "\n" };
    let advice = match (report.keeps_running, is_ready) {
        (true, true) => "ready; keeps running until it is cancelled",
        (true, false) => "keeps running until it is cancelled",
        (false, _) => "await collects its result",
    };
    format!("{first} ({advice}){separator}{rest}")
}

/// Keeps reporting an operation whose call has been answered, and its end. The modern era forbids messages about a
/// request after its answer.
fn watch_in_background(
    server: &Arc<Server>,
    operation: Operation,
    watcher: Watcher,
    ctx: &RequestContext<RoleServer>,
) {
    if is_modern(ctx) {
        return;
    }
    let mut watcher = watcher.without_request();
    let peer = ctx.peer.clone();
    let (request, token) = (ctx.id.clone(), ctx.meta.get_progress_token());
    server.spawn(async move {
        let outcome = watcher.during(operation.outcome()).await;
        progress::announce_end(&peer, &request, token, &OperationReport::ended(&outcome)).await;
    });
}

/// Reason why a tool that exists cannot work here, and the way to change that.
fn why_unavailable(unavailable: &Unavailable, around: HintContext<'_>) -> String {
    let Unavailable { tool, reason, .. } = unavailable;
    let mut text = format!("`{tool}` is not available: {reason}");
    // Instructions do not help a program that is installed and cannot reach its files.
    if let Some(hint) = sandbox::hint_about_check(reason, around) {
        text.push_str("\nhint: ");
        text.push_str(&hint);
    } else if let Some(instructions) = &unavailable.install_instructions {
        text.push_str("\nhint: ");
        text.push_str(instructions);
        text.push_str("\nThen call it again.");
    }
    text
}
