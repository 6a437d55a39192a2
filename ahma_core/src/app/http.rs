//! `--mode http`: the bridge in front of children of this same program.
//!
//! Each child is `ahma_mcp` in stdio mode with the same flags, followed by its own scope. The process that listens runs no
//! command and keeps no sandbox; it tests one before the port is opened, once for all children.

use std::{ffi::OsString, io::Write as _, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use ahma_http_bridge::{ChildCommand, ChildFactory, ServeError, Shutdown, Spawn, TlsError};
use tokio::net::TcpListener;

#[cfg(feature = "cluster")]
use super::cluster;
use super::{
    active_sandbox::{ActiveSandbox, history_places, note_for_clients},
    args::{Args, ModeArg},
    exit::{Exit, Failure, chain},
    http_summary::summary,
    settings::Settings,
    signals,
};
#[cfg(feature = "cluster")]
use crate::operation::Workforce;
use crate::{
    console::{Console, ConsoleSettings},
    history::HistoryReader,
    mcp::{DEFAULT_SYNC_WAIT, MAX_QUIET_AWAIT},
    sandbox::Tier,
};

/// Refuses an open server that is probably a mistake, before anything is started.
pub(super) fn check(args: &Args) -> Result<(), Failure> {
    if args.mode == ModeArg::Http && !args.http.has_auth() {
        args.ignored.refuse_open_server()?;
    }
    Ok(())
}

pub(super) fn serve(settings: Settings, sandbox: ActiveSandbox) -> Result<(), Failure> {
    // A slow connection or child must not delay the others.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal("the runtime could not be started", &error))?;
    runtime.block_on(run(settings, sandbox))
}

async fn run(settings: Settings, sandbox: ActiveSandbox) -> Result<(), Failure> {
    // The children have sandboxes of their own, with the same flags: if this one holds, theirs do.
    sandbox.prove().await?;
    let proven = sandbox.launcher.tier();
    let note = note_for_clients(&settings, sandbox.note.clone());
    let mut state_dirs = history_places(&settings);
    if !state_dirs.contains(&sandbox.state_dir) {
        state_dirs.push(sandbox.state_dir.clone());
    }
    let history = sandbox.state_dir.clone();
    let private = sandbox.end_processes().await;
    let history = tokio::spawn(keep_open(history));
    let shutdown = Shutdown::default();
    signals::watch_twice(shutdown.leave.clone(), shutdown.at_once.clone())?;
    let address = settings.http.address();
    let listener = TcpListener::bind(address).await.map_err(|error| {
        Failure::user(format!("cannot listen on {address}: {error}"))
            .with_hint("choose another address with --http-host and --http-port; port 0 takes any free one")
    })?;
    let bound = listener
        .local_addr()
        .map_err(|error| Failure::internal("the listener has no address", &error))?;
    let factory = OwnBackends {
        program: std::env::current_exe()
            .map_err(|error| Failure::internal("the path of this program cannot be found", &error))?,
        flags: without_token(std::env::args_os().skip(1)),
        default_scope: settings.sandbox.scope.clone(),
        proven,
        bound,
        out_of_reach: settings.sandbox.out_of_reach.clone(),
        shared_checks: private.path().to_owned(),
        sync_wait_is_default: settings.execution.sync_wait.is_none(),
    };
    let mut bridge = settings
        .http
        .settings(settings.sandbox.scope.clone())
        .map_err(|error| {
            Failure::new(Exit::Usage, error.to_string()).with_hint("--help shows the flags under HTTP")
        })?;
    bridge.times.request = request_timeout(
        settings.http.request_timeout,
        settings
            .execution
            .sync_wait
            .unwrap_or(DEFAULT_SYNC_WAIT)
            .max(settings.execution.inline_wait),
        bridge.times.request,
    )?;
    bridge.debug_echo = settings.log.debug;
    let origin = format!("{}://{bound}", bridge.scheme());
    let summary = summary(&settings, &bridge, &note, &origin);
    let ready = |bound| {
        write!(std::io::stderr().lock(), "listening on {origin}/mcp\n{summary}").ok();
        tracing::info!(address = %bound, "listening");
    };
    #[cfg(feature = "cluster")]
    if let Some(sessions) = cluster::open_sessions(&settings).await? {
        bridge.session_store = Some(Arc::new(sessions));
    }
    #[cfg(feature = "cluster")]
    let pool = cluster::watch(&settings, &shutdown.leave).await?.map(|health| {
        bridge.dependency = Some(Arc::clone(&health) as _);
        health as Arc<dyn Workforce>
    });
    #[cfg(not(feature = "cluster"))]
    let pool = None;
    let console = Console::start(
        ConsoleSettings {
            state_dirs,
            audit_file: None,
            pool,
        },
        shutdown.leave.clone(),
    );
    let operators = Some(console.operator_side());
    let served =
        ahma_http_bridge::serve(listener, bridge, Arc::new(factory), operators, shutdown, ready).await;
    history.abort();
    drop(private);
    served.map_err(refused)
}

/// Interval at which a history that does not exist yet is looked for.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);

/// Keeps the history open. The first process that opens it reads its whole log, which is thereby saved for the servers of
/// sessions.
async fn keep_open(state_dir: PathBuf) {
    loop {
        let place = state_dir.clone();
        let opened = tokio::task::spawn_blocking(move || HistoryReader::open(&place)).await;
        if let Ok(Ok(Some(_open))) = opened {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Time for an answer to arrive once the wait for it is over.
const MARGIN: Duration = Duration::from_secs(10);

/// Timeout of a silent request. It must exceed the longest wait of a call, because the bridge cancels the command of a call
/// that times out.
fn request_timeout(
    asked: Option<Duration>,
    sync_wait: Duration,
    default: Duration,
) -> Result<Duration, Failure> {
    let longest = sync_wait.max(MAX_QUIET_AWAIT);
    let enough = longest.saturating_add(MARGIN);
    match asked {
        None => Ok(default.max(enough)),
        Some(asked) if asked > longest => Ok(asked),
        Some(asked) => Err(Failure::new(
            Exit::Usage,
            format!(
                "--request-timeout {asked:?} ends calls that still wait: synchronous ones wait up to {sync_wait:?} \
                 (--sync-wait), await up to {MAX_QUIET_AWAIT:?}"
            ),
        )
        .with_hint(format!("use --request-timeout {}s, or leave it out", enough.as_secs()))),
    }
}

/// Most failures here are for the user to fix.
fn refused(error: ServeError) -> Failure {
    let hint = match &error {
        ServeError::Exposed(_) => {
            "add --auth token --tokens-file FILE (ahma_mcp token new makes the file), or listen on 127.0.0.1"
        }
        ServeError::Tokens(_) => "ahma_mcp token new makes a tokens file in its right form",
        ServeError::Tls(TlsError::File { .. }) => "give a PEM file that you can read",
        ServeError::Tls(TlsError::Pair(_)) => "give a certificate and the key it was made for",
        ServeError::Audit { .. } => "give a file that you can write to, in a directory that exists",
        ServeError::Http(_) | ServeError::Listener(_) => {
            return Failure::internal("the bridge failed", &error);
        }
    };
    Failure::user(chain(&error)).with_hint(hint)
}

#[derive(Debug)]
struct OwnBackends {
    program: PathBuf,
    /// This process's own flags.
    flags: Vec<OsString>,
    default_scope: PathBuf,
    /// The tier that no child has to test again.
    proven: Tier,
    /// The address of this listener, so that no child mounts it.
    bound: SocketAddr,
    out_of_reach: Vec<PathBuf>,
    /// Directory in which children share results of availability checks.
    shared_checks: PathBuf,
    /// The user did not say how long synchronous calls wait. The bridge gives up a request that is silent for long,
    /// whatever its client allows.
    sync_wait_is_default: bool,
}

/// The flags without the listener's credential, which its children must not see.
fn without_token(flags: impl Iterator<Item = OsString>) -> Vec<OsString> {
    const TOKEN: &str = "--http-token";
    let mut kept = Vec::new();
    let mut skip_value = false;
    for flag in flags {
        let text = flag.to_string_lossy();
        if std::mem::take(&mut skip_value) {
            continue;
        }
        if text == TOKEN {
            skip_value = true;
        } else if !text.starts_with(&format!("{TOKEN}=")) {
            kept.push(flag);
        }
    }
    kept
}

impl ChildFactory for OwnBackends {
    fn command(&self, spawn: &Spawn) -> ChildCommand {
        let mut args = self.flags.clone();
        args.extend(["--mode".into(), "stdio".into()]);
        if self.sync_wait_is_default {
            let seconds = DEFAULT_SYNC_WAIT.as_secs();
            args.extend(["--sync-wait".into(), format!("{seconds}s").into()]);
        }
        if self.proven != Tier::Off {
            args.extend(["--proven-tier".into(), self.proven.name().into()]);
        }
        for file in &self.out_of_reach {
            args.extend(["--out-of-reach".into(), file.into()]);
        }
        args.extend(["--shared-checks".into(), self.shared_checks.clone().into()]);
        if matches!(spawn, Spawn::Scoped(_)) {
            args.push("--one-of-many".into());
        }
        let scope = match spawn {
            Spawn::Deferred => None,
            Spawn::Scoped(scope) => Some(scope),
            Spawn::Shared => Some(&self.default_scope),
        };
        match scope {
            None => args.push("--defer-sandbox".into()),
            // The scope was canonical when it was checked. A command that has replaced it with a link must not choose the
            // scope of the next child.
            Some(scope) => args.extend(["--sandbox-scope".into(), scope.into(), "--scope-is-final".into()]),
        }
        ChildCommand {
            program: self.program.clone().into(),
            args,
            env: vec![(
                ahma_common::contract::BRIDGE_ADDRESS_VARIABLE.into(),
                self.bound.to_string().into(),
            )],
            keeps_clients_apart: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_wait_are_not_given_up_meanwhile() {
        let seconds = Duration::from_secs;
        let check = |asked: Option<u64>, sync_wait: u64, expected: Option<u64>| {
            let found = request_timeout(asked.map(seconds), seconds(sync_wait), seconds(60)).ok();
            assert_eq!(
                found,
                expected.map(seconds),
                "{asked:?} with --sync-wait {sync_wait}s"
            );
        };
        check(None, 45, Some(60));
        check(None, 0, Some(60));
        check(None, 120, Some(130));
        check(Some(600), 120, Some(600));
        check(Some(120), 120, None);
        // The tool `await` waits too, whatever --sync-wait says.
        check(Some(30), 10, None);
        check(Some(55), 45, Some(55));
    }
}
