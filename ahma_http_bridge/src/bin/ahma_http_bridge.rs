//! Serves any stdio MCP server over HTTP: `ahma_http_bridge [flags] -- COMMAND ARGS`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use ahma_common::{
    contract::{DEBUG_VARIABLE, SCOPE_VARIABLE},
    value, variables,
};
use ahma_http_bridge::{BridgeArgs, FixedCommand, Shutdown, serve};
use anyhow::{Context, bail};
use clap::{ArgAction, CommandFactory as _, FromArgMatches as _, Parser};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_appender::non_blocking::NonBlockingBuilder;

/// Log lines that wait to be written; more are dropped. As many as the library would make places for take 4 MB.
const WAITING_LINES: usize = 4096;

/// Serve a stdio MCP server over Streamable HTTP and HTTP+SSE.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    bridge: BridgeArgs,

    /// Directory for clients that name no root; default is the current one.
    #[arg(long, env = SCOPE_VARIABLE, value_name = "DIR")]
    sandbox_scope: Option<PathBuf>,

    /// Print every message to and from the server process.
    #[arg(long, env = DEBUG_VARIABLE, action = ArgAction::SetTrue, value_parser = value::switch)]
    debug: bool,

    /// The MCP server and its arguments. `{scope}` stands for the session's directory, which is also in
    /// AHMA_SANDBOX_SCOPE.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  ahma_http_bridge -- my-server                                one process for all clients
  ahma_http_bridge --http-port 8080 -- my-server --flag        at http://127.0.0.1:8080/mcp
  ahma_http_bridge --session-isolation -- my-server {scope}    a process for each client

Every flag has a variable: --http-port is AHMA_HTTP_PORT. A flag wins over its variable.";

impl Cli {
    /// Reads the command line and the variables; if there is nothing to serve, the code to end with.
    fn read() -> Result<Self, ExitCode> {
        let mut command = variables::with_regular_names(Self::command());
        let read = command.try_get_matches_from_mut(std::env::args_os());
        read.and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|error| {
                let _ = error.print();
                if let Some(variable) = variables::at_fault(&error, &command) {
                    let _ = writeln!(
                        std::io::stderr(),
                        "hint: the value is that of the variable {variable}"
                    );
                }
                ExitCode::from(if error.use_stderr() { USAGE } else { 0 })
            })
    }
}

/// The exit code for a command line that cannot be understood.
const USAGE: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let level = if cli.debug {
        tracing::Level::DEBUG
    } else {
        tracing::Level::INFO
    };
    // A log that is not read must not hold up the server. The rest is written when the guard goes.
    let (log, _log_guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(WAITING_LINES)
        .finish(std::io::stderr());
    tracing_subscriber::fmt()
        .with_writer(log)
        .with_ansi(std::io::stderr().is_terminal() && !variables::no_color())
        .with_max_level(level)
        .init();
    match run(cli).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let hint = match error.is::<CannotListen>() {
                true => "choose another address with --http-host and --http-port; port 0 takes any free one",
                false => "--help shows every flag",
            };
            // Standard error may be closed.
            let _ = writeln!(std::io::stderr(), "error: {error:#}\nhint: {hint}");
            ExitCode::FAILURE
        }
    }
}

/// Most often another program has the port.
#[derive(Debug)]
struct CannotListen(SocketAddr);

impl fmt::Display for CannotListen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot listen on {}", self.0)
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
    if !can_be_found(&program) {
        bail!(
            "the program `{}` cannot be found; is it installed, and on PATH?",
            program.display()
        );
    }
    let factory = FixedCommand {
        program,
        args: words.collect(),
        default_scope: scope,
    };
    let address = cli.bridge.address();
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| CannotListen(address))?;
    let scheme = settings.scheme();
    let ready = |bound| tracing::info!("listening on {scheme}://{bound}/mcp");
    let shutdown = stop_on_signal()?;
    Ok(serve(listener, settings, Arc::new(factory), None, shutdown, ready).await?)
}

/// Refuses a program that does not exist: every session would fail.
fn can_be_found(program: &OsStr) -> bool {
    let is_program = |file: &Path| {
        let found = file.metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.as_encoded_bytes().contains(&b'/') {
        return is_program(Path::new(program));
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories).any(|directory| is_program(&directory.join(program)))
}

/// The first signal asks to stop, the second not to wait for what runs. Further ones change nothing: the rest takes a
/// bounded time, and must not be cut short while server processes run.
fn stop_on_signal() -> anyhow::Result<Shutdown> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let hangup = SignalKind::hangup();
    // A hang-up that is ignored from the start, as by `nohup`, stays ignored.
    let mut hangup = (!is_ignored(hangup)).then(|| signal(hangup)).transpose()?;
    let shutdown = Shutdown::default();
    let Shutdown { leave, at_once } = shutdown.clone();
    tokio::spawn(async move {
        for step in [leave, at_once] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                Some(_) = async { hangup.as_mut()?.recv().await } => {}
            }
            step.cancel();
        }
    });
    Ok(shutdown)
}

/// True if this process was started with the signal ignored.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (kind.as_raw_value() - 1) & 1 == 1)
}
