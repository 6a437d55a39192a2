//! From the words of the command line to the exit code of the command.

use std::{ops::ControlFlow, pin::pin, process::ExitCode, sync::Arc};

use serde_json::{Map, Value};
use tokio::signal::unix::SignalKind;
use tokio_util::sync::CancellationToken;

use super::{arguments, display::Display, follow, redrawn_lines::RedrawnLines, report, unknown_tool};
use crate::{
    app::{
        active_sandbox::ActiveSandbox,
        args::report_clap_error,
        exit::{Exit, Failure, print},
        run::{ToolboxUse, engine_settings, open_history, open_toolbox, plan_settings, with_sandbox},
        settings::Settings,
        signals,
        streams::StandardOutput,
        subcommands::RunArgs,
    },
    call::{CallError, CommandPlan, ToolCall, Work},
    catalog::Tool,
    history::redacted_arguments,
    operation::{CallOrigin, ClientId, Engine, EngineSettings, preflight},
    toolbox::{Toolbox, check_availability},
};

/// Name of the client in the history.
const PROGRAM: &str = "ahma_mcp run";

pub(in crate::app) fn run(args: RunArgs, settings: Settings) -> Result<ExitCode, Failure> {
    settings.require_tools_dir()?;
    with_sandbox(&settings, async |sandbox| {
        run_words(&args.words, &settings, sandbox).await
    })
}

async fn run_words(
    words: &[String],
    settings: &Settings,
    sandbox: &ActiveSandbox,
) -> Result<ExitCode, Failure> {
    let mut signal = pin!(signals::first()?);
    let preparing = prepare(words, settings, sandbox);
    let prepared = match unless_stopped(signal.as_mut(), preparing).await? {
        ControlFlow::Continue(prepared) => prepared,
        ControlFlow::Break(code) => return Ok(code),
    };
    let PreparedRun {
        tool,
        plan,
        arguments,
    } = prepared;
    let history = open_history(settings, sandbox);
    let engine = Engine::new(
        sandbox.launcher.clone(),
        EngineSettings {
            // All of it passes through to stdout, so none of it may be dropped.
            quota_bytes: u64::MAX,
            ..engine_settings(settings, sandbox, history.as_ref())
        },
    );
    let redrawn = has_stream_rules(&plan).then(RedrawnLines::default);
    let origin = CallOrigin {
        client: ClientId::default(),
        principal: settings.principal.clone(),
        program: Some(PROGRAM.to_owned()),
        arguments,
    };
    let operation = engine.start_for(origin, plan);
    let mut display = Display::open(&tool.name, settings.log.colour);
    let stdout = StandardOutput::open();
    let followed = follow::to_the_end(&operation, &mut display, redrawn, stdout, signal.as_mut()).await;
    operation.mark_seen();
    engine.shutdown().await;
    if let Some(history) = history {
        history.close().await;
    }
    if !followed.has_failed() {
        return Ok(report::report(&tool, &followed, None, &mut display));
    }
    tokio::select! {
        biased;
        kind = signal => {
            let code = signals::broken_off_by(kind);
            report::report(&tool, &followed, None, &mut display);
            Ok(code)
        }
        missing = check_availability(&tool, &sandbox.prober, &settings.sandbox.scope) => {
            Ok(report::report(&tool, &followed, missing.as_ref(), &mut display))
        }
    }
}

/// Prepares a run. Breaks with the exit code if that ends the program, or if a signal comes first.
pub(super) async fn unless_stopped<T>(
    signal: impl Future<Output = SignalKind>,
    preparing: impl Future<Output = Result<ControlFlow<Exit, T>, Failure>>,
) -> Result<ControlFlow<ExitCode, T>, Failure> {
    let prepared = tokio::select! {
        biased;
        kind = signal => return Ok(ControlFlow::Break(signals::broken_off_by(kind))),
        prepared = preparing => prepared?,
    };
    Ok(prepared.map_break(ExitCode::from))
}

/// The call to run.
pub(super) struct PreparedRun {
    tool: Arc<Tool>,
    pub(super) plan: CommandPlan,
    /// The arguments for the history.
    arguments: Option<String>,
}

/// Plans the call, and runs the self-test of the sandbox. Breaks with the exit code of a message that clap has printed.
pub(super) async fn prepare(
    words: &[String],
    settings: &Settings,
    sandbox: &ActiveSandbox,
) -> Result<ControlFlow<Exit, PreparedRun>, Failure> {
    let shutdown = CancellationToken::new();
    let toolbox = open_toolbox(settings, &sandbox.prober, &shutdown, ToolboxUse::RunOne);
    let toolbox = toolbox.loaded().await;
    let Some((name, words)) = words.split_first() else {
        return Err(Failure::new(Exit::Usage, "no tool is named"));
    };
    let Some(tool) = toolbox.catalog.get(name) else {
        let enclosing = settings.enclosing.as_ref();
        return Err(unknown_tool::failure(&toolbox, enclosing, name, words));
    };
    let arguments = match arguments::read(tool, words) {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => return Ok(ControlFlow::Break(report_clap_error(&error))),
        Err(help) => {
            print(help.render().to_string())?;
            return Ok(ControlFlow::Break(Exit::Success));
        }
    };
    let written_down = redacted_arguments(&arguments);
    let plan = checked_plan(&toolbox, settings, sandbox, tool, arguments).await?;
    sandbox.prove().await?;
    Ok(ControlFlow::Continue(PreparedRun {
        tool: tool.clone(),
        plan,
        arguments: written_down,
    }))
}

/// Only a tool with stream rules may draw progress bars; the output of all others is passed on unchanged.
fn has_stream_rules(plan: &CommandPlan) -> bool {
    match &plan.work {
        Work::Command(command) => command.stream.is_some(),
        Work::Sequence(sequence) => sequence.steps.iter().any(|step| step.command.stream.is_some()),
    }
}

async fn checked_plan(
    toolbox: &Toolbox,
    settings: &Settings,
    sandbox: &ActiveSandbox,
    tool: &Tool,
    arguments: Map<String, Value>,
) -> Result<CommandPlan, Failure> {
    let call = ToolCall {
        tool: tool.name.clone(),
        arguments,
    };
    let plan_settings = plan_settings(settings, sandbox);
    preflight(&toolbox.catalog, &plan_settings, call)
        .await
        .map_err(|error| match error {
            CallError::Invalid { .. } => Failure::new(Exit::Usage, error.to_string()).with_hint(format!(
                "ahma_mcp run {} --help describes the arguments",
                tool.name
            )),
            error => Failure::user(error.to_string())
                .with_hint("ahma_mcp doctor lists unavailable tools and the reasons"),
        })
}
