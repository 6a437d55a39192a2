//! `ahma_mcp worker`: from the flags to a worker that claims operations.

use std::{path::Path, process::ExitCode};

use ahma_cluster::{RequestKeys, check_log, new_name};
use tokio_util::sync::CancellationToken;

use super::{
    args::WorkerArgs,
    choice::{ClusterChoice, no_cluster},
};
use crate::{
    app::{
        active_sandbox::ActiveSandbox,
        exit::{Exit, Failure, notice},
        run::{ToolboxUse, engine_settings, open_toolbox, plan_settings, with_sandbox},
        settings::Settings,
        signals,
    },
    cluster::{WorkerSettings, work},
    mcp::SandboxNote,
    operation::Engine,
    sandbox::Tier,
    shell::TierChoice,
};

pub(in crate::app) fn worker(args: &WorkerArgs, settings: Settings) -> Result<ExitCode, Failure> {
    settings.require_tools_dir()?;
    with_sandbox(&settings, async |sandbox| {
        run(args, &settings, sandbox).await.map(|()| Exit::Success.into())
    })
}

async fn run(args: &WorkerArgs, settings: &Settings, sandbox: &ActiveSandbox) -> Result<(), Failure> {
    let choice = settings.cluster.as_ref().ok_or_else(no_cluster)?;
    let keys = match &args.request_keys {
        Some(file) => read_keys(file)?,
        None => RequestKeys::default(),
    };
    let shutdown = CancellationToken::new();
    signals::watch(shutdown.clone())?;
    sandbox.prove().await?;
    let link = choice.connect("worker").await?;
    check_log(&link).await.map_err(|error| choice.unusable(&error))?;
    let warmer = tokio::spawn(sandbox.launcher.clone().keep_pools_filled());
    let engine = Engine::new(sandbox.launcher.clone(), engine_settings(settings, sandbox, None));
    let end_of_tools = CancellationToken::new();
    let toolbox = open_toolbox(settings, &sandbox.prober, &end_of_tools, ToolboxUse::Announce);
    let host = host_name();
    let name = new_name(&format!("{host}-"));
    let worker = WorkerSettings {
        name: name.clone(),
        host,
        labels: args.labels.clone(),
        slots: settings.execution.max_operations.get(),
        lease: choice.lease,
        keys,
        warning: sandbox.note.warning.clone(),
        drain: args.drain_time,
        plan: plan_settings(settings, sandbox),
        mapped_from: args.mapped_from.clone(),
        file_tools: settings.execution.files,
        read_only_shell: settings.sandbox.tier != TierChoice::Only(Tier::Off),
    };
    notice(format_args!("{}", introduction(&worker, choice, sandbox)));
    let worked = work(link, engine.clone(), toolbox, worker, shutdown).await;
    engine.shutdown().await;
    end_of_tools.cancel();
    warmer.abort();
    worked.map_err(|error| choice.unusable(&error))
}

/// Facts for the person who starts a worker.
fn introduction(worker: &WorkerSettings, choice: &ClusterChoice, sandbox: &ActiveSandbox) -> String {
    let SandboxNote {
        tier, scope, network, ..
    } = &sandbox.note;
    let mut text = format!(
        "worker {} serves pool {}\n  sandbox   {tier}, scope {}, network {network}\n  limits    {} operations at once",
        worker.name,
        choice.pool,
        scope.display(),
        worker.slots
    );
    if worker.keys.is_empty() && choice.credentials.key_file.is_none() {
        text.push_str(
            "\nnote: there is no key, so this worker runs its tools for everything that reaches NATS, also for commands in a \
             sandbox with network\nhint: ahma_mcp cluster keys makes keys",
        );
    }
    text
}

fn read_keys(file: &Path) -> Result<RequestKeys, Failure> {
    let unusable = |problem: String| {
        Failure::user(format!("--request-keys {} {problem}", file.display()))
            .with_hint("give a file with the public keys of front ends, one on each line")
    };
    let read = std::fs::read_to_string(file);
    let text = read.map_err(|error| unusable(format!("cannot be read: {error}")))?;
    let keys: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if keys.is_empty() {
        // Without a key no signature would be needed.
        return Err(unusable("has no key".to_owned()));
    }
    Ok(RequestKeys::new(keys))
}

/// The name of this machine, reduced to characters that are allowed in a subject.
fn host_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    let allowed = name
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || *character == '-');
    let name: String = allowed.take(32).collect();
    if name.is_empty() { "host".to_owned() } else { name }
}
