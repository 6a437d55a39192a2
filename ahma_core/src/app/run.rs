//! From the command line to the exit code.

use std::{
    future::Future,
    io::{IsTerminal as _, Write as _},
    process::ExitCode,
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{
    args::Args,
    confine::{Wall, confine},
    exit::{Exit, Failure},
    http, list_tools, logging, perform, remote, sandbox_report,
    settings::{Mode, Settings, Surroundings},
    signals,
    streams::{Input, Output},
};
use crate::{
    call::PlanSettings,
    catalog::CatalogSettings,
    mcp::{self, ServerSettings},
    operation::{Engine, EngineSettings},
    toolbox::{self, ToolboxHandle, ToolboxSettings},
};

/// The whole program, apart from the role it plays for itself.
pub fn main() -> ExitCode {
    let args = match Args::read() {
        Ok(args) => args,
        Err(exit) => return exit.into(),
    };
    start(args).unwrap_or_else(|failure| failure.report().into())
}

fn start(mut args: Args) -> Result<ExitCode, Failure> {
    for warning in args.doubts.warnings() {
        let _ = writeln!(std::io::stderr().lock(), "warning: {warning}");
    }
    if let Some(task) = args.task.take() {
        return perform::perform(task, args);
    }
    #[cfg(feature = "client")]
    if let Some(url) = &args.remote.server_url {
        return remote::front(url, &args).map(|()| Exit::Success.into());
    }
    serve(args)
}

/// Settings, confinement, log, runtime, in this order: until the wall stands there may be no thread.
fn serve(args: Args) -> Result<ExitCode, Failure> {
    http::check(&args)?;
    let settings = Settings::resolve(args, &Surroundings::read()?)?;
    settings.require_tools_dir()?;
    let wall = confine(&settings)?;
    let _log = logging::start(&settings.log);
    warn(&settings, &wall);
    match settings.mode {
        Mode::Stdio => behind(wall, async |wall| serve_stdio(&settings, wall).await),
        Mode::Http => http::serve(settings, wall).map(|()| Exit::Success.into()),
        Mode::ListTools(format) => behind(wall, async |wall| {
            let shutdown = CancellationToken::new();
            let _end = shutdown.clone().drop_guard();
            let toolbox = open_toolbox(&settings, wall, &shutdown, ToolboxUse::Look);
            unless_broken_off(list_tools::run(&toolbox, format)).await
        }),
        Mode::SandboxReport(format) => behind(wall, async |wall| {
            unless_broken_off(sandbox_report::run(wall, format)).await
        }),
    }
}

/// Does `work` on a runtime, then takes the wall down.
pub(super) fn behind(
    wall: Wall,
    work: impl AsyncFnOnce(&Wall) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let done = work(&wall).await;
        wall.take_down().await;
        done
    });
    // A terminal or another user's pipe is read and written by a thread that cannot be told to stop; the rest has ended
    // by now.
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

async fn serve_stdio(settings: &Settings, wall: &Wall) -> Result<ExitCode, Failure> {
    let shutdown = CancellationToken::new();
    // Nobody waits for checks of tools any more when this is over.
    let _end = shutdown.clone().drop_guard();
    signals::watch(shutdown.clone())?;
    // A server without a scope runs nothing: there is nothing to warm for, and nothing to prove. What the listening
    // process has proven holds for its children: same program, same kernel, same flags.
    let deferred = settings.sandbox.deferred;
    let warmer = (!deferred).then(|| tokio::spawn(wall.launcher.clone().keep_warm()));
    let toolbox = open_toolbox(settings, wall, &shutdown, ToolboxUse::Serve);
    // Tool files are read meanwhile.
    if !deferred && settings.sandbox.proven != Some(wall.launcher.tier()) {
        let Some(proven) = shutdown.run_until_cancelled(wall.prove()).await else {
            return Ok(Exit::Success.into());
        };
        proven?;
    }
    let engine = Engine::new(wall.launcher.clone(), engine_settings(settings, wall));
    let mount = remote::mount(settings, wall).await;
    if std::io::stdin().is_terminal() {
        tell_person();
    }
    let streams = (Input::open(), Output::open());
    let served = mcp::serve(
        streams,
        server_settings(settings, wall),
        engine.clone(),
        (toolbox, mount.remotes()),
        shutdown,
    )
    .await;
    tokio::join!(engine.shutdown(), mount.end());
    if let Some(warmer) = warmer {
        warmer.abort();
    }
    served
        .map(|()| Exit::Success.into())
        .map_err(|error| Failure::internal("the client could not be served", &error))
}

/// Somebody started the server by hand, and would wonder why nothing happens.
fn tell_person() {
    let _ = writeln!(
        std::io::stderr().lock(),
        "serving MCP on stdin and stdout, where a client should be; Ctrl-D ends it\n\
         hint: ahma_mcp init adds the server to your client, ahma_mcp --help shows what else there is"
    );
}

/// What the tools directory is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolboxUse {
    /// Its changes are followed, and programs are looked for.
    Serve,
    /// Programs are looked for.
    Look,
    /// One tool is run; what it needs is looked for if it fails.
    RunOne,
}

pub(super) fn open_toolbox(
    settings: &Settings,
    wall: &Wall,
    shutdown: &CancellationToken,
    purpose: ToolboxUse,
) -> ToolboxHandle {
    let toolbox = ToolboxSettings {
        directory: settings.tools_dir.clone(),
        scope: settings.sandbox.scope.clone(),
        catalog: CatalogSettings {
            force_sync: settings.execution.force_sync,
        },
        probes: !settings.sandbox.deferred && purpose != ToolboxUse::RunOne,
        reload: purpose == ToolboxUse::Serve,
    };
    toolbox::open(toolbox, wall.prober.clone(), shutdown.clone())
}

pub(super) fn engine_settings(settings: &Settings, wall: &Wall) -> EngineSettings {
    EngineSettings {
        max_operations: settings.execution.max_operations.get(),
        result_bytes: settings.execution.max_result_bytes,
        ..EngineSettings::new(wall.state_dir.join("spool"))
    }
}

fn server_settings(settings: &Settings, wall: &Wall) -> ServerSettings {
    ServerSettings {
        plan: plan_settings(settings, wall),
        sync_wait: settings.execution.sync_wait,
        deferred: settings.sandbox.deferred,
        sandbox: wall.note.clone(),
    }
}

pub(super) fn plan_settings(settings: &Settings, wall: &Wall) -> PlanSettings {
    PlanSettings {
        scope: settings.sandbox.scope.clone(),
        scope_aliases: settings.sandbox.scope_aliases.clone(),
        also_allowed: std::iter::once(wall.launcher.policy().visible_temp(wall.launcher.tier()))
            .chain(settings.sandbox.allow_read.iter().cloned())
            .chain(settings.sandbox.allow_write.iter().cloned())
            .collect(),
        default_timeout: settings.execution.timeout,
        force_sync: settings.execution.force_sync,
    }
}

/// What the user should not overlook, on stderr as well as in the log.
pub(super) fn warn(settings: &Settings, wall: &Wall) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        tier = wall.note.tier,
        scope = %wall.note.scope.display(),
        network = wall.note.network,
        "started"
    );
    let of_the_wall = wall.launcher.warnings();
    let warnings = settings.sandbox.warnings.iter().chain(&wall.note.warning);
    for warning in warnings.chain(&of_the_wall) {
        tracing::warn!("{warning}");
        if !settings.log.to_stderr {
            let _ = writeln!(std::io::stderr().lock(), "warning: {warning}");
        }
    }
}

/// How long `--mode list-tools` waits for probes; they end by themselves before that.
pub(super) const PROBE_PATIENCE: Duration = Duration::from_secs(15);
