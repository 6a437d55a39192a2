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

    use ahma_http_bridge::{ChildCommand, ChildFactory, ServeError, Spawn};
    use tokio::net::TcpListener;
    use tokio_util::sync::CancellationToken;

    use super::{Failure, Settings, Wall};
    use crate::app::{
        exit::{Exit, chain},
        signals,
    };

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
        let mut bridge = settings
            .http
            .settings(settings.sandbox.scope.clone())
            .map_err(|error| {
                Failure::new(Exit::Usage, error.to_string()).with_hint("--help shows the flags under HTTP")
            })?;
        bridge.debug_echo = settings.log.debug;
        let bound = listener
            .local_addr()
            .map_err(|error| Failure::internal("the listener has no address", &error))?;
        let scheme = if bridge.tls.is_some() { "https" } else { "http" };
        writeln!(std::io::stderr(), "listening on {scheme}://{bound}/mcp").ok();
        tracing::info!(address = %bound, "listening");
        ahma_http_bridge::serve(listener, bridge, Arc::new(factory), shutdown)
            .await
            .map_err(refused)
    }

    /// Most of what keeps the bridge from serving is for the user to mend.
    fn refused(error: ServeError) -> Failure {
        match error {
            ServeError::Exposed(_)
            | ServeError::Tokens(_)
            | ServeError::Tls(_)
            | ServeError::Audit { .. } => Failure::user(chain(&error))
                .with_hint("docs/http.md describes how to serve safely; --help shows the flags"),
            ServeError::Http(_) | ServeError::Listener(_) => Failure::internal("the bridge failed", &error),
        }
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
                flags: without_token(std::env::args_os().skip(1)),
                default_scope,
            })
        }
    }

    /// A credential of the listener is none of its children's business.
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
