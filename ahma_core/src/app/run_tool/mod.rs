//! `ahma_mcp run TOOL …`: one tool from the terminal, with the engine and the wall that clients get.
//!
//! stdout carries what the command prints, byte for byte, and nothing else; of a line that a tool with stream rules draws
//! again and again only the last state. The exit code is the command's.

mod ending;
mod follow;
mod help;
mod screen;
mod states;
mod unknown;
mod words;

use std::{pin::pin, process::ExitCode, sync::Arc};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{
    args::Args,
    confine::{Wall, confine},
    exit::{Exit, Failure, print},
    logging,
    run::{ToolboxUse, behind, engine_settings, open_toolbox, plan_settings, warn},
    settings::Settings,
    signals,
    streams::Output,
    tasks::RunArgs,
};
use crate::{
    call::{ArgumentProblem, CallError, CommandPlan, ToolCall, Work, plan},
    catalog::Tool,
    operation::{Engine, EngineSettings, directory_problem},
    toolbox::{Toolbox, look_for},
};
use screen::Screen;
use states::LastStates;

pub(super) fn run(wishes: RunArgs, settings: Settings) -> Result<ExitCode, Failure> {
    settings.require_tools_dir()?;
    let wall = confine(&settings)?;
    let _log = logging::start(&settings.log);
    warn(&settings, &wall);
    behind(wall, async |wall| perform(&wishes.words, &settings, wall).await)
}

async fn perform(words: &[String], settings: &Settings, wall: &Wall) -> Result<ExitCode, Failure> {
    let mut signal = pin!(signals::first()?);
    let prepared = tokio::select! {
        biased;
        kind = &mut signal => return Ok(signals::broken_off_by(kind)),
        prepared = prepare(words, settings, wall) => prepared?,
    };
    let Some((tool, plan)) = prepared else {
        return Ok(Exit::Success.into());
    };
    let engine = Engine::new(
        wall.launcher.clone(),
        EngineSettings {
            // All of it passes through to stdout, so none of it may be dropped.
            quota_bytes: u64::MAX,
            ..engine_settings(settings, wall)
        },
    );
    let states = draws_bars(&plan).then(LastStates::default);
    let operation = engine.start(plan);
    let mut screen = Screen::open(&tool.name, settings.log.colour);
    let followed = follow::to_the_end(&operation, &mut screen, states, Output::open(), signal.as_mut()).await;
    engine.shutdown().await;
    if !followed.has_failed() {
        return Ok(ending::tell(&tool, &followed, None, &mut screen));
    }
    tokio::select! {
        biased;
        kind = signal => {
            let code = signals::broken_off_by(kind);
            ending::tell(&tool, &followed, None, &mut screen);
            Ok(code)
        }
        missing = look_for(&tool, &wall.prober, &settings.sandbox.scope) => {
            Ok(ending::tell(&tool, &followed, missing.as_ref(), &mut screen))
        }
    }
}

/// The tool and the plan for it, when the wall is known to hold; nothing if only help was asked for.
async fn prepare(
    words: &[String],
    settings: &Settings,
    wall: &Wall,
) -> Result<Option<(Arc<Tool>, CommandPlan)>, Failure> {
    let toolbox = open_toolbox(settings, wall, &CancellationToken::new(), ToolboxUse::RunOne)
        .loaded()
        .await;
    let Some((name, words)) = words.split_first() else {
        return Err(Failure::new(Exit::Usage, "no tool is named"));
    };
    let Some(tool) = toolbox.catalog.get(name) else {
        return Err(unknown::tool(&toolbox, settings.enclosing.as_ref(), name, words));
    };
    if words
        .iter()
        .take_while(|word| *word != "--")
        .any(|word| word == "--help" || word == "-h")
    {
        print(help::text(tool))?;
        return Ok(None);
    }
    let (arguments, problems) = words::read(tool, words);
    let plan = checked_plan(&toolbox, settings, wall, tool, arguments, problems).await?;
    wall.prove().await?;
    Ok(Some((tool.clone(), plan)))
}

/// Whether its tool file may make a program draw, for its rules to read. What all others print is passed on as it is.
fn draws_bars(plan: &CommandPlan) -> bool {
    match &plan.work {
        Work::Command(command) => command.stream.is_some(),
        Work::Sequence(sequence) => sequence.steps.iter().any(|step| step.command.stream.is_some()),
    }
}

/// The plan, or every problem of the words and of the values they stand for.
async fn checked_plan(
    toolbox: &Toolbox,
    settings: &Settings,
    wall: &Wall,
    tool: &Tool,
    arguments: Map<String, Value>,
    mut problems: Vec<ArgumentProblem>,
) -> Result<CommandPlan, Failure> {
    let call = ToolCall {
        tool: tool.name.clone(),
        arguments,
    };
    let plan_settings = plan_settings(settings, wall);
    match plan(&toolbox.catalog, &plan_settings, call) {
        Ok(plan) => {
            if let Some(problem) = directory_problem(&plan_settings, &plan.directory).await {
                problems.push(ArgumentProblem::new("working_directory", problem));
            }
            if problems.is_empty() {
                return Ok(plan);
            }
        }
        Err(CallError::Invalid { problems: more, .. }) => {
            // A value that could not be read is not missing as well.
            let said: Vec<String> = problems.iter().map(|problem| problem.argument.clone()).collect();
            problems.extend(
                more.into_iter()
                    .filter(|problem| !said.contains(&problem.argument)),
            );
        }
        Err(error) => {
            return Err(Failure::user(error.to_string())
                .with_hint("ahma_mcp doctor says which tools are not available, and why"));
        }
    }
    let is_own = |name: &str| words::properties(tool).any(|(own, _)| own == name);
    let of_the_server = (problems.iter().map(|problem| problem.argument.as_str()))
        .find(|name| !is_own(name) && Args::has_flag(name));
    let hint = match of_the_server {
        Some(flag) => format!(
            "--{flag} is a flag of the server, and stands before the tool: ahma_mcp run --{flag} ... {}",
            tool.name
        ),
        None => format!("ahma_mcp run {} --help describes the arguments", tool.name),
    };
    let invalid = CallError::Invalid {
        tool: tool.name.clone(),
        problems,
    };
    Err(Failure::new(Exit::Usage, invalid.to_string()).with_hint(hint))
}
