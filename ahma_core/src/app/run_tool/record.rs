//! `ahma_mcp record TOOL …` and `ahma_mcp record -- COMMAND`: a run whose output is written down with its streams and times.

use std::{ops::ControlFlow, pin::pin, process::ExitCode, sync::Arc};

use super::{
    display::Display,
    follow,
    recording::Recording,
    run::{prepare, unless_stopped},
};
use crate::{
    app::{
        active_sandbox::ActiveSandbox,
        exit::{Exit, Failure},
        run::{engine_settings, with_sandbox},
        settings::Settings,
        signals,
        subcommands::RecordArgs,
    },
    call::{Command, CommandPlan, ExecutionMode, Lifetime, Program, Work},
    operation::{Engine, EngineSettings},
};

/// The recording goes to stdout and contains the end of the command; the exit code is that of the recording.
pub(in crate::app) fn record(args: RecordArgs, settings: Settings) -> Result<ExitCode, Failure> {
    if !args.is_command() {
        settings.require_tools_dir()?;
    }
    with_sandbox(&settings, async |sandbox| {
        record_words(&args, &settings, sandbox).await
    })
}

async fn record_words(
    args: &RecordArgs,
    settings: &Settings,
    sandbox: &ActiveSandbox,
) -> Result<ExitCode, Failure> {
    let mut signal = pin!(signals::first()?);
    let planning = plan(args, settings, sandbox);
    let plan = match unless_stopped(signal.as_mut(), planning).await? {
        ControlFlow::Continue(plan) => plan,
        ControlFlow::Break(code) => return Ok(code),
    };
    let recording = Arc::new(Recording::begin(std::io::stdout(), &plan.in_short()));
    let engine = Engine::new(
        sandbox.launcher.clone(),
        EngineSettings {
            tap: Some(Arc::clone(&recording) as _),
            ..engine_settings(settings, sandbox, None)
        },
    );
    let mut display = Display::open(&plan.tool, settings.log.colour);
    let operation = engine.start(plan);
    let nowhere = tokio::io::sink();
    let followed = follow::to_the_end(&operation, &mut display, None, nowhere, signal.as_mut()).await;
    engine.shutdown().await;
    match recording.end(&followed.outcome) {
        Ok(()) => Ok(Exit::Success.into()),
        Err(error) => Err(Failure::internal("the recording cannot be written", &error)),
    }
}

async fn plan(
    args: &RecordArgs,
    settings: &Settings,
    sandbox: &ActiveSandbox,
) -> Result<ControlFlow<Exit, CommandPlan>, Failure> {
    if !args.is_command() {
        let prepared = prepare(&args.words, settings, sandbox).await?;
        return Ok(prepared.map_continue(|prepared| prepared.plan));
    }
    sandbox.prove().await?;
    Ok(ControlFlow::Continue(CommandPlan {
        tool: args.words.first().cloned().unwrap_or_default(),
        work: Work::Command(Command::new(Program::Argv(args.words.clone()))),
        mode: ExecutionMode::Synchronous,
        timeout: settings.execution.timeout,
        lifetime: Lifetime::Finite,
        directory: settings.sandbox.scope.clone(),
    }))
}
