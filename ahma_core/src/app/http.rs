//! `--mode http`: the bridge in front of children of this same program.
//!
//! Each child is `ahma_mcp` in stdio mode with the same flags and its own scope behind them. The process that listens
//! runs no command and keeps no wall; that one stands is checked before the port is opened.

use super::{confine::Wall, exit::Failure, settings::Settings};

#[cfg(not(feature = "bridge"))]
pub(super) fn serve(_settings: Settings, _wall: Wall) -> Result<(), Failure> {
    Err(Failure::user("--mode http is not part of this build")
        .with_hint("build with the feature `bridge`, or serve over stdio, which is the default"))
}

#[cfg(feature = "bridge")]
pub(super) fn serve(settings: Settings, wall: Wall) -> Result<(), Failure> {
    // Connections and children are many; one slow one must not hold up the others.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal("the runtime could not be started", &error))?;
    runtime.block_on(bridge::run(settings, wall))
}

#[cfg(feature = "bridge")]
mod bridge {
    use std::{ffi::OsString, io::Write as _, path::PathBuf, sync::Arc};

    use ahma_http_bridge::{ChildCommand, ChildFactory, Spawn};
    use tokio::net::TcpListener;
    use tokio_util::sync::CancellationToken;

    use super::{Failure, Settings, Wall};
    use crate::app::{exit::Exit, signals};

    pub(super) async fn run(settings: Settings, wall: Wall) -> Result<(), Failure> {
        // It stood, so the children's will. They have their own.
        wall.take_down().await;
        let shutdown = CancellationToken::new();
        signals::watch(shutdown.clone())
            .map_err(|error| Failure::internal("signals cannot be listened to", &error))?;
        let address = settings.http.address();
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Failure::user(format!("cannot listen on {address}: {error}")).with_hint(
                "choose another address with --http-host and --http-port; port 0 takes any free one",
            )
        })?;
        let factory = Children::of_this_program(settings.sandbox.scope.clone())
            .map_err(|error| Failure::internal("the program cannot find itself", &error))?;
        if let Ok(address) = listener.local_addr() {
            writeln!(std::io::stderr(), "listening on http://{address}/mcp").ok();
            tracing::info!(%address, "listening");
        }
        let mut bridge = settings
            .http
            .settings(settings.sandbox.scope.clone())
            .map_err(|error| {
                Failure::new(Exit::Usage, error.to_string()).with_hint("--help shows the flags under HTTP")
            })?;
        bridge.debug_echo = settings.log.debug;
        ahma_http_bridge::serve(listener, bridge, Arc::new(factory), shutdown)
            .await
            .map_err(|error| Failure::internal("the bridge failed", &error))
    }

    /// How the children are started.
    #[derive(Debug)]
    struct Children {
        program: PathBuf,
        /// This process's own flags.
        flags: Vec<OsString>,
        default_scope: PathBuf,
    }

    impl Children {
        fn of_this_program(default_scope: PathBuf) -> std::io::Result<Self> {
            let program = std::env::current_exe()?;
            Ok(Self {
                program,
                flags: std::env::args_os().skip(1).collect(),
                default_scope,
            })
        }
    }

    impl ChildFactory for Children {
        fn command(&self, spawn: &Spawn) -> ChildCommand {
            let mut args = self.flags.clone();
            args.extend(["--mode".into(), "stdio".into()]);
            match spawn {
                Spawn::Deferred => args.push("--defer-sandbox".into()),
                Spawn::Scoped(scope) => args.extend(["--sandbox-scope".into(), scope.into()]),
                Spawn::Shared => args.extend(["--sandbox-scope".into(), self.default_scope.clone().into()]),
            }
            ChildCommand {
                program: self.program.clone().into(),
                args,
                env: Vec::new(),
            }
        }
    }
}
