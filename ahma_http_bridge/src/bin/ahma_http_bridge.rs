//! Serves any stdio MCP server over HTTP: `ahma_http_bridge [flags] -- COMMAND ARGS`.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ahma_http_bridge::{BridgeArgs, FixedCommand, serve};
use anyhow::Context;
use clap::Parser;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Serve a stdio MCP server over Streamable HTTP and HTTP+SSE.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    bridge: BridgeArgs,

    /// Directory for clients that name no root; default is the current one.
    #[arg(long, env = "AHMA_SANDBOX_SCOPE", value_name = "DIR")]
    sandbox_scope: Option<PathBuf>,

    /// Print every message to and from the server process.
    #[arg(long, env = "AHMA_DEBUG")]
    debug: bool,

    /// The MCP server and its arguments. `{scope}` stands for the session's directory, which is also in
    /// AHMA_SANDBOX_SCOPE.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let level = if cli.debug {
        tracing::Level::DEBUG
    } else {
        tracing::Level::INFO
    };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(level)
        .init();
    match run(cli).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed standard error leaves nobody to tell.
            let _ = writeln!(
                std::io::stderr(),
                "error: {error:#}\nhint: --help shows every flag"
            );
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> anyhow::Result<()> {
    let scope = match cli.sandbox_scope {
        Some(scope) => scope,
        None => std::env::current_dir().context("the current directory cannot be used")?,
    };
    let scope = scope
        .canonicalize()
        .with_context(|| format!("scope {} cannot be used", scope.display()))?;
    let mut settings = cli.bridge.settings(scope.clone())?;
    settings.debug_echo = cli.debug;
    let mut words = cli.command.into_iter();
    let program = words.next().context("name the server to run after `--`")?;
    let factory = FixedCommand {
        program,
        args: words.collect(),
        default_scope: scope,
    };
    let address = cli.bridge.address();
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))?;
    tracing::info!("listening on http://{}/mcp", listener.local_addr()?);
    let shutdown = stop_on_signal()?;
    Ok(serve(listener, settings, Arc::new(factory), shutdown).await?)
}

/// The first signal asks to stop; the runtime handles a second one as usual only after we are done.
fn stop_on_signal() -> anyhow::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stop.cancel();
    });
    Ok(token)
}
