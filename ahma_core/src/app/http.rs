//! `--mode http`: the bridge in front of children of this same program.
//!
//! Each child is `ahma_mcp` in stdio mode with the same flags and its own scope behind them. The process that listens
//! runs no command and keeps no wall; that one holds is proven before the port is opened, once for all children.

#[cfg(feature = "bridge")]
use super::args::ModeArg;
use super::{args::Args, confine::Wall, exit::Failure, settings::Settings};

#[cfg(not(feature = "bridge"))]
pub(super) fn check(_args: &Args) -> Result<(), Failure> {
    Ok(())
}

/// What must be certain before anything else is done.
#[cfg(feature = "bridge")]
pub(super) fn check(args: &Args) -> Result<(), Failure> {
    if args.mode == ModeArg::Http && !args.http.says_who_may_come() {
        args.doubts.refuse_open_server()?;
    }
    Ok(())
}

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
    use std::{ffi::OsString, io::Write as _, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

    use ahma_http_bridge::{ChildCommand, ChildFactory, ServeError, Spawn, TlsError};
    use tokio::net::TcpListener;
    use tokio_util::sync::CancellationToken;

    use super::{Failure, Settings, Wall};
    use crate::{
        app::{
            exit::{Exit, chain},
            settings::WallSettings,
            signals,
        },
        mcp::LONGEST_WAIT_SECONDS,
        sandbox::Tier,
    };

    pub(super) async fn run(settings: Settings, wall: Wall) -> Result<(), Failure> {
        // It holds, so the children's will. They have their own.
        wall.prove().await?;
        let proven = wall.launcher.tier();
        wall.take_down().await;
        let shutdown = CancellationToken::new();
        signals::watch(shutdown.clone())?;
        let address = settings.http.address();
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Failure::user(format!("cannot listen on {address}: {error}")).with_hint(
                "choose another address with --http-host and --http-port; port 0 takes any free one",
            )
        })?;
        let bound = listener
            .local_addr()
            .map_err(|error| Failure::internal("the listener has no address", &error))?;
        let factory = Children::of_this_program(&settings.sandbox, proven, bound)
            .map_err(|error| Failure::internal("the program cannot find itself", &error))?;
        let mut bridge = settings
            .http
            .settings(settings.sandbox.scope.clone())
            .map_err(|error| {
                Failure::new(Exit::Usage, error.to_string()).with_hint("--help shows the flags under HTTP")
            })?;
        bridge.times.request = patience(
            settings.http.request_timeout,
            settings.execution.sync_wait,
            bridge.times.request,
        )?;
        bridge.debug_echo = settings.log.debug;
        let scheme = bridge.scheme();
        let ready = |bound| {
            writeln!(std::io::stderr(), "listening on {scheme}://{bound}/mcp").ok();
            tracing::info!(address = %bound, "listening");
        };
        ahma_http_bridge::serve(listener, bridge, Arc::new(factory), shutdown, ready)
            .await
            .map_err(refused)
    }

    /// The longest that the tool `await` waits.
    const LONGEST_AWAIT: Duration = Duration::from_secs(LONGEST_WAIT_SECONDS);

    /// What an answer may take on its way when the wait for it is over.
    const MARGIN: Duration = Duration::from_secs(10);

    /// How long a request may be silent. A call that waits is silent by design, and one that the bridge gives up takes
    /// its command with it.
    fn patience(
        asked: Option<Duration>,
        sync_wait: Duration,
        default: Duration,
    ) -> Result<Duration, Failure> {
        let longest = sync_wait.max(LONGEST_AWAIT);
        let enough = longest.saturating_add(MARGIN);
        match asked {
            None => Ok(default.max(enough)),
            Some(asked) if asked > longest => Ok(asked),
            Some(asked) => Err(Failure::new(
                Exit::Usage,
                format!(
                    "--request-timeout {asked:?} ends calls that still wait: synchronous ones wait up to {sync_wait:?} \
                     (--sync-wait), await up to {LONGEST_AWAIT:?}"
                ),
            )
            .with_hint(format!("use --request-timeout {}s, or leave it out", enough.as_secs()))),
        }
    }

    /// Most of what keeps the bridge from serving is for the user to mend.
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

    /// How the children are started.
    #[derive(Debug)]
    struct Children {
        program: PathBuf,
        /// This process's own flags.
        flags: Vec<OsString>,
        default_scope: PathBuf,
        /// What no child needs to prove again.
        proven: Tier,
        /// Where we listen, so that no child mounts us.
        bound: SocketAddr,
        out_of_reach: Vec<PathBuf>,
    }

    impl Children {
        fn of_this_program(sandbox: &WallSettings, proven: Tier, bound: SocketAddr) -> std::io::Result<Self> {
            let program = std::env::current_exe()?;
            Ok(Self {
                program,
                flags: without_token(std::env::args_os().skip(1)),
                default_scope: sandbox.scope.clone(),
                proven,
                bound,
                out_of_reach: sandbox.out_of_reach.clone(),
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
            if self.proven != Tier::Off {
                args.extend(["--proven-tier".into(), self.proven.name().into()]);
            }
            for file in &self.out_of_reach {
                args.extend(["--out-of-reach".into(), file.into()]);
            }
            let scope = match spawn {
                Spawn::Deferred => None,
                Spawn::Scoped(scope) => Some(scope),
                Spawn::Shared => Some(&self.default_scope),
            };
            match scope {
                None => args.push("--defer-sandbox".into()),
                // Canonical, and judged as such. A command that has put a link in its place since must not choose where
                // the next child is confined to.
                Some(scope) => {
                    args.extend(["--sandbox-scope".into(), scope.into(), "--scope-is-final".into()])
                }
            }
            ChildCommand {
                program: self.program.clone().into(),
                args,
                env: vec![("AHMA_BRIDGE_ADDRESS".into(), self.bound.to_string().into())],
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
                let found = patience(asked.map(seconds), seconds(sync_wait), seconds(60)).ok();
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
            // The tool `await` waits on its own account.
            check(Some(30), 10, None);
            check(Some(55), 45, Some(55));
        }
    }
}
