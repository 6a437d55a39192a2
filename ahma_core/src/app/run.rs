//! From the command line to the exit code.

use std::{future::Future, path::PathBuf, process::ExitCode, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{
    active_sandbox::{ActiveSandbox, begin_sandbox, start_sandbox},
    args::Args,
    dispatch,
    exit::{Exit, Failure, notice},
    http, list_tools, logging, sandbox_report,
    settings::{Environment, Mode, Settings},
    signals, stdio,
};
use crate::{
    call::PlanSettings,
    catalog::CatalogSettings,
    history::{History, HistorySettings},
    operation::EngineSettings,
    sandbox::Tier,
    shell::TierChoice,
    toolbox::{self, AvailabilityChecker, ToolboxHandle, ToolboxSettings},
};

/// The whole program, except in the role of the jail.
pub fn main() -> ExitCode {
    let args = match Args::read() {
        Ok(args) => args,
        Err(exit) => return exit.into(),
    };
    start(args).unwrap_or_else(|failure| failure.report().into())
}

fn start(mut args: Args) -> Result<ExitCode, Failure> {
    for warning in args.ignored.warnings() {
        notice(format_args!("warning: {warning}"));
    }
    if let Some(subcommand) = args.subcommand.take() {
        return dispatch::dispatch(subcommand, args);
    }
    #[cfg(feature = "client")]
    if let Some(url) = &args.remote.server_url {
        return super::remote::front(url, &args).map(|()| Exit::Success.into());
    }
    serve(args)
}

/// Settings, confinement, log, runtime, in this order: there may be no thread before the jail is started.
fn serve(args: Args) -> Result<ExitCode, Failure> {
    http::check(&args)?;
    let settings = Settings::resolve(args, &Environment::read()?)?;
    settings.require_tools_dir()?;
    match settings.mode {
        Mode::Stdio => {
            let pending = begin_sandbox(&settings)?;
            let _log = logging::start(&settings.log);
            stdio::serve(settings, pending)
        }
        Mode::Http => {
            let (sandbox, _log) = sandbox_and_log(&settings)?;
            http::serve(settings, sandbox).map(|()| Exit::Success.into())
        }
        Mode::ListTools(format) => with_sandbox(&settings, async |sandbox| {
            let shutdown = CancellationToken::new();
            let _end = shutdown.clone().drop_guard();
            let toolbox = open_toolbox(&settings, &sandbox.prober, &shutdown, ToolboxUse::Look);
            unless_broken_off(list_tools::run(&toolbox, format)).await
        }),
        Mode::SandboxReport(format) => with_sandbox(&settings, async |sandbox| {
            unless_broken_off(sandbox_report::run(sandbox, format)).await
        }),
    }
}

/// The sandbox is started before the log, which has a thread.
fn sandbox_and_log(settings: &Settings) -> Result<(ActiveSandbox, logging::LogGuard), Failure> {
    let sandbox = start_sandbox(settings)?;
    let log = logging::start(&settings.log);
    warn(settings, &sandbox);
    Ok((sandbox, log))
}

/// Sets up a sandbox, does `work` on a runtime, then shuts the sandbox down.
pub(super) fn with_sandbox(
    settings: &Settings,
    work: impl AsyncFnOnce(&ActiveSandbox) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    let (sandbox, _log) = sandbox_and_log(settings)?;
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let done = work(&sandbox).await;
        sandbox.shut_down().await;
        done
    });
    // A terminal or another user's pipe is read and written by a thread that cannot be stopped; the rest has ended.
    runtime.shutdown_background();
    done
}

/// Does `work`, unless a signal asks the program to end before it is done.
async fn unless_broken_off(work: impl Future<Output = Result<(), Failure>>) -> Result<ExitCode, Failure> {
    let signal = signals::first()?;
    tokio::select! {
        biased;
        kind = signal => Ok(signals::broken_off_by(kind)),
        done = work => done.map(|()| Exit::Success.into()),
    }
}

/// One thread: a call is a chain of short steps, and handing it from thread to thread costs more than the steps.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal("the runtime could not be started", &error))
}

/// Purpose for which the tools directory is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolboxUse {
    /// Its changes are followed, and programs are looked for.
    Serve,
    /// The same, and the tools are announced to other hosts.
    Announce,
    /// Programs are looked for.
    Look,
    /// One tool is run; its program is looked for if it fails.
    RunOne,
}

pub(super) fn open_toolbox(
    settings: &Settings,
    checker: &AvailabilityChecker,
    shutdown: &CancellationToken,
    purpose: ToolboxUse,
) -> ToolboxHandle {
    let toolbox = ToolboxSettings {
        directory: settings.tools_dir.clone(),
        scope: settings.sandbox.scope.clone(),
        catalog: CatalogSettings {
            files: settings.execution.files,
            expose: settings.execution.expose,
            read_only_shell: settings.sandbox.tier != TierChoice::Only(Tier::Off),
        },
        probes: !settings.sandbox.deferred && purpose != ToolboxUse::RunOne,
        reload: matches!(purpose, ToolboxUse::Serve | ToolboxUse::Announce),
        keep_sources: purpose == ToolboxUse::Announce,
    };
    toolbox::open(toolbox, checker.clone(), shutdown.clone())
}

/// The history, unless none is wanted. A server without a scope runs nothing that could be kept.
pub(super) fn open_history(settings: &Settings, sandbox: &ActiveSandbox) -> Option<History> {
    let limits = settings.execution.keep.filter(|_| !settings.sandbox.deferred)?;
    Some(History::start(HistorySettings {
        state_dir: sandbox.state_dir.clone(),
        scope: sandbox.note.scope.clone(),
        limits,
        result_bytes: settings.execution.max_result_bytes,
    }))
}

pub(super) fn engine_settings(
    settings: &Settings,
    sandbox: &ActiveSandbox,
    history: Option<&History>,
) -> EngineSettings {
    let spool = match history {
        // For what the history cannot keep, because its disk is full for instance.
        Some(_) => sandbox.own_temp().join("spool"),
        None => sandbox.state_dir.join("spool"),
    };
    EngineSettings {
        keep_output: history.map(History::output_dir),
        journal: history.map(History::journal),
        max_operations: settings.execution.max_operations.get(),
        result_bytes: settings.execution.max_result_bytes,
        ..EngineSettings::new(spool)
    }
}

pub(super) fn plan_settings(settings: &Settings, sandbox: &ActiveSandbox) -> PlanSettings {
    let policy = sandbox.launcher.policy();
    let readable = match sandbox.launcher.tier() {
        Tier::Off => vec![PathBuf::from("/")],
        Tier::Full | Tier::Core | Tier::Seatbelt => {
            let granted = policy.grants.iter().flat_map(|grant| [&grant.path, &grant.real]);
            granted
                .chain(&policy.overlays)
                .chain(&policy.worktree)
                .cloned()
                .collect()
        }
    };
    PlanSettings {
        readable,
        scope: settings.sandbox.scope.clone(),
        scope_aliases: settings.sandbox.scope_aliases.clone(),
        also_allowed: std::iter::once(policy.visible_temp(sandbox.launcher.tier()))
            .chain(settings.sandbox.allow_read.iter().cloned())
            .chain(settings.sandbox.allow_write.iter().cloned())
            .collect(),
        default_timeout: settings.execution.timeout,
        force_sync: settings.execution.force_sync,
    }
}

/// Prints warnings on stderr as well as in the log.
pub(super) fn warn(settings: &Settings, sandbox: &ActiveSandbox) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        tier = sandbox.note.tier,
        scope = %sandbox.note.scope.display(),
        network = sandbox.note.network,
        "started"
    );
    let of_launcher = sandbox.launcher.warnings();
    let warnings = settings.sandbox.warnings.iter().chain(&sandbox.note.warning);
    for warning in warnings.chain(&of_launcher) {
        tracing::warn!("{warning}");
        if !settings.log.to_stderr {
            notice(format_args!("warning: {warning}"));
        }
    }
}

/// Longest wait for availability checks, which have shorter timeouts of their own.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(15);
