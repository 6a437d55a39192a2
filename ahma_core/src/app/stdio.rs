//! Serves one client on standard input and output.
//!
//! `initialize` and `tools/list` are answered while the sandbox is set up and tested; only calls wait for that. A sandbox
//! that does not hold ends the server, whatever was answered by then.

use std::{io::IsTerminal as _, process::ExitCode, sync::Arc, time::Duration};

use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::{
    active_sandbox::{ActiveSandbox, PendingSandbox, early_checker, expected_note, note_for_clients},
    exit::{Exit, Failure, notice},
    remote,
    run::{ToolboxUse, engine_settings, open_history, open_toolbox, plan_settings, runtime, warn},
    settings::Settings,
    signals,
    streams::{StandardInput, StandardOutput},
};
use crate::{
    history::History,
    mcp::{self, Greeting, Opened, ServerSettings},
    operation::Engine,
    shell::Launcher,
    toolbox::AvailabilityChecker,
};

pub(super) fn serve(settings: Settings, pending: PendingSandbox) -> Result<ExitCode, Failure> {
    let runtime = runtime()?;
    let done = runtime.block_on(serve_client(&settings, pending));
    // A terminal or another user's pipe is read and written by a thread that cannot be stopped; the rest has ended.
    runtime.shutdown_background();
    done
}

async fn serve_client(settings: &Settings, pending: PendingSandbox) -> Result<ExitCode, Failure> {
    let asked_to_end = CancellationToken::new();
    signals::watch(asked_to_end.clone())?;
    // The self-test goes on when the client is gone: its result decides the exit code.
    let shutdown = asked_to_end.child_token();
    let (proven, launcher) = watch::channel(None);
    let needed = Arc::new(Notify::new());
    let checker = early_checker(settings, launcher, Arc::clone(&needed));
    #[cfg(feature = "cluster")]
    let cluster = super::cluster::open(settings, &asked_to_end).await?;
    #[cfg(feature = "cluster")]
    let announced = cluster.as_ref().map(crate::cluster::ClusterFront::toolbox);
    #[cfg(not(feature = "cluster"))]
    let announced = None;
    let toolbox = announced.unwrap_or_else(|| open_toolbox(settings, &checker, &shutdown, ToolboxUse::Serve));
    let greeting = Greeting {
        sandbox: note_for_clients(settings, expected_note(settings)),
        expose: settings.execution.expose,
        toolbox,
        has_remotes: remote::is_configured(settings),
        needed: Arc::clone(&needed),
    };
    // A person started the server by hand, and would wonder why nothing happens.
    if std::io::stdin().is_terminal() {
        notice(
            "serving MCP on stdin and stdout, which a client should use; Ctrl-D ends it\n\
             hint: ahma_mcp init adds the server to your client, ahma_mcp --help shows other commands",
        );
    }
    let mut parts = ServerParts::default();
    let ends = Ends {
        asked: &asked_to_end,
        client_gone: &shutdown,
    };
    let mut failure = None;
    let opening = async {
        if matches!(pending, PendingSandbox::Postponed) && is_gone_unasked(&shutdown, &needed).await {
            return None;
        }
        match parts.open(settings, pending, checker, ends).await {
            Ok(mut opened) => {
                #[cfg(feature = "cluster")]
                if let (Some(opened), Some(cluster)) = (&mut opened, &cluster) {
                    opened.settings.cluster = Some(cluster.with_engine(opened.engine.clone()));
                }
                if opened.is_some() {
                    proven.send_replace(parts.launcher());
                }
                opened
            }
            Err(reason) => {
                failure = Some(reason);
                None
            }
        }
    };
    let streams = (StandardInput::open(), StandardOutput::open());
    let served = mcp::serve(streams, greeting, opening, shutdown.clone()).await;
    parts.close().await;
    match failure {
        Some(failure) => Err(failure),
        None => served
            .map(|()| Exit::Success.into())
            .map_err(|error| Failure::internal("the client could not be served", &error)),
    }
}

/// Time after which a postponed sandbox is set up although no request needs it, so that the first one that does need not wait.
const UNASKED: Duration = Duration::from_millis(20);

/// Waits until the sandbox is needed or may be soon. True if the client left before that, for instance because it only
/// listed the tools.
async fn is_gone_unasked(client_gone: &CancellationToken, needed: &Notify) -> bool {
    tokio::select! {
        biased;
        () = needed.notified() => false,
        () = client_gone.cancelled() => true,
        () = tokio::time::sleep(UNASKED) => false,
    }
}

/// Time for the result of setting up the sandbox, once the client is gone; it takes milliseconds.
const SET_UP_TIMEOUT: Duration = Duration::from_secs(5);

/// Reasons to end.
#[derive(Debug, Clone, Copy)]
struct Ends<'a> {
    /// A signal came.
    asked: &'a CancellationToken,
    /// A signal came, or the client left.
    client_gone: &'a CancellationToken,
}

/// The parts that calls need, as they become ready.
#[derive(Debug, Default)]
struct ServerParts {
    sandbox: Option<ActiveSandbox>,
    warmer: Option<JoinHandle<()>>,
    history: Option<History>,
    engine: Option<Engine>,
    mount: Option<remote::Mount>,
}

impl ServerParts {
    /// None if the server was asked to end meanwhile.
    async fn open(
        &mut self,
        settings: &Settings,
        pending: PendingSandbox,
        checker: AvailabilityChecker,
        ends: Ends<'_>,
    ) -> Result<Option<Opened>, Failure> {
        let own_settings = settings.clone();
        let set_up = tokio::task::spawn_blocking(move || pending.finish(&own_settings));
        // A helper process that hangs must not keep the server from ending.
        let given_up = async {
            ends.client_gone.cancelled().await;
            let _ = tokio::time::timeout(SET_UP_TIMEOUT, ends.asked.cancelled()).await;
        };
        let set_up = tokio::select! {
            biased;
            set_up = set_up => set_up,
            () = given_up => return Ok(None),
        };
        let mut sandbox =
            set_up.map_err(|error| Failure::internal("the sandbox could not be set up", &error))??;
        // Its checks have to end before the sandbox does.
        sandbox.prober = checker;
        warn(settings, &sandbox);
        let sandbox = &*self.sandbox.insert(sandbox);
        // A server without a scope runs nothing, so it needs neither idle processes nor a self-test. The test of the
        // listening process is valid for its children: same program, same kernel, same flags.
        let deferred = settings.sandbox.deferred;
        let mut probes = Vec::new();
        if !deferred {
            self.warmer = Some(tokio::spawn(sandbox.launcher.clone().keep_pools_filled()));
        }
        if !deferred && settings.sandbox.proven != Some(sandbox.launcher.tier()) {
            let Some(proven) = ends.asked.run_until_cancelled(sandbox.prove()).await else {
                return Ok(None);
            };
            probes = proven?;
        }
        // The log of a cluster is its history.
        let history = match settings.pool().is_some() {
            true => None,
            false => open_history(settings, sandbox),
        };
        self.history.clone_from(&history);
        let engine = Engine::new(
            sandbox.launcher.clone(),
            engine_settings(settings, sandbox, history.as_ref()),
        );
        let mount = remote::mount(settings, sandbox).await;
        let opened = Opened {
            settings: ServerSettings {
                plan: plan_settings(settings, sandbox),
                history,
                cluster: None,
                principal: settings.principal.clone(),
                has_bridge: settings.has_bridge,
                inline_wait: settings.execution.inline_wait,
                sync_wait: settings.execution.sync_wait,
                results: settings.execution.results,
                deferred,
                sandbox: note_for_clients(settings, sandbox.note.clone()),
                sandbox_report: sandbox.report(probes).to_string(),
            },
            engine: engine.clone(),
            remotes: mount.as_ref().map(remote::Mount::remotes),
        };
        self.engine = Some(engine);
        self.mount = mount;
        Ok(Some(opened))
    }

    fn launcher(&self) -> Option<Launcher> {
        self.sandbox.as_ref().map(|sandbox| sandbox.launcher.clone())
    }

    async fn close(self) {
        let engine = async {
            if let Some(engine) = &self.engine {
                engine.shutdown().await;
            }
        };
        let mount = async {
            if let Some(mount) = self.mount {
                mount.end().await;
            }
        };
        tokio::join!(engine, mount);
        if let Some(history) = self.history {
            history.close().await;
        }
        if let Some(warmer) = self.warmer {
            warmer.abort();
        }
        if let Some(sandbox) = self.sandbox {
            sandbox.shut_down().await;
        }
    }
}

#[cfg(test)]
#[path = "stdio_tests.rs"]
mod tests;
