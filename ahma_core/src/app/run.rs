//! From the command line to the exit code.

use std::{io::Write as _, process::ExitCode, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{
    args::Args,
    confine::{Wall, confine},
    exit::{Exit, Failure},
    http, list_tools, logging, sandbox_report,
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
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Success
            }
            .into();
        }
    };
    match start(args) {
        Ok(()) => Exit::Success,
        Err(failure) => failure.report(),
    }
    .into()
}

/// Settings, confinement, log, runtime, in this order: until the wall stands there may be no thread.
fn start(args: Args) -> Result<(), Failure> {
    let settings = Settings::resolve(args, &Surroundings::read()?)?;
    let wall = confine(&settings)?;
    let _log = logging::start(&settings.log);
    warn(&settings, &wall);
    if settings.mode == Mode::Http {
        return http::serve(settings, wall);
    }
    runtime()?.block_on(run(settings, wall))
}

/// One thread: a call is a chain of short steps, and handing it from thread to thread costs more than the steps.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal("the runtime could not be started", &error))
}

async fn run(settings: Settings, wall: Wall) -> Result<(), Failure> {
    let shutdown = CancellationToken::new();
    signals::watch(shutdown.clone())
        .map_err(|error| Failure::internal("signals cannot be listened to", &error))?;
    let done = match settings.mode {
        Mode::Stdio => serve_stdio(&settings, &wall, shutdown).await,
        Mode::Http => Err(Failure::user("--mode http has a start of its own")),
        Mode::ListTools(format) => {
            list_tools::run(&open_toolbox(&settings, &wall, &shutdown, Follow::Never), format).await;
            Ok(())
        }
        Mode::SandboxReport(format) => sandbox_report::run(&wall, format).await,
    };
    wall.take_down().await;
    done
}

async fn serve_stdio(settings: &Settings, wall: &Wall, shutdown: CancellationToken) -> Result<(), Failure> {
    let warmer = tokio::spawn(wall.launcher.clone().keep_warm());
    let toolbox = open_toolbox(settings, wall, &shutdown, Follow::Changes);
    // Tool files are read meanwhile. A server without a scope runs nothing, so there is nothing to prove.
    if !settings.sandbox.deferred {
        wall.prove().await?;
    }
    let engine = Engine::new(wall.launcher.clone(), engine_settings(settings, wall));
    let streams = (Input::open(), Output::open());
    let served = mcp::serve(
        streams,
        server_settings(settings, wall),
        engine.clone(),
        toolbox,
        shutdown,
    )
    .await;
    engine.shutdown().await;
    warmer.abort();
    served.map_err(|error| Failure::internal("the client could not be served", &error))
}

/// Whether the tools directory is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follow {
    Changes,
    Never,
}

fn open_toolbox(
    settings: &Settings,
    wall: &Wall,
    shutdown: &CancellationToken,
    follow: Follow,
) -> ToolboxHandle {
    let toolbox = ToolboxSettings {
        directory: settings.tools_dir.clone(),
        scope: settings.sandbox.scope.clone(),
        catalog: CatalogSettings {
            force_sync: settings.execution.force_sync,
        },
        probes: !settings.sandbox.deferred,
        reload: follow == Follow::Changes,
    };
    toolbox::open(toolbox, wall.launcher.clone(), shutdown.clone())
}

fn engine_settings(settings: &Settings, wall: &Wall) -> EngineSettings {
    EngineSettings {
        max_operations: settings.execution.max_operations.get(),
        result_bytes: settings.execution.max_result_bytes,
        ..EngineSettings::new(wall.state_dir.join("spool"))
    }
}

fn server_settings(settings: &Settings, wall: &Wall) -> ServerSettings {
    let plan = PlanSettings {
        scope: settings.sandbox.scope.clone(),
        scope_aliases: settings.sandbox.scope_aliases.clone(),
        also_allowed: std::iter::once(wall.launcher.policy().visible_temp(wall.launcher.tier()))
            .chain(settings.sandbox.allow_read.iter().cloned())
            .chain(settings.sandbox.allow_write.iter().cloned())
            .collect(),
        default_timeout: settings.execution.timeout,
        force_sync: settings.execution.force_sync,
    };
    ServerSettings {
        plan,
        sync_wait: settings.execution.sync_wait,
        deferred: settings.sandbox.deferred,
        sandbox: wall.note.clone(),
    }
}

/// What the user should not overlook, on stderr as well as in the log.
fn warn(settings: &Settings, wall: &Wall) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        tier = wall.note.tier,
        scope = %wall.note.scope.display(),
        network = wall.note.network,
        "started"
    );
    for warning in settings.sandbox.warnings.iter().chain(&wall.note.warning) {
        tracing::warn!("{warning}");
        if !settings.log.to_stderr {
            let _ = writeln!(std::io::stderr().lock(), "warning: {warning}");
        }
    }
}

/// How long `--mode list-tools` waits for probes; they end by themselves before that.
pub(super) const PROBE_PATIENCE: Duration = Duration::from_secs(15);
