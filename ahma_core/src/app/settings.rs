//! Everything the user decides, resolved once at start-up and never changed afterwards.
//!
//! [`Settings`] is made from the command line (which already holds the `AHMA_…` variables) and the [`Environment`].
//! Paths in it are absolute and the scope is canonical.

use std::{
    io::IsTerminal as _,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

use ahma_common::contract;
use clap::ValueEnum;

use super::{
    args::{Args, ExposeArg, ModeArg, OnOff, ResultsArg},
    exit::Failure,
    project::{self, EnclosingProject},
    sandbox_settings::{RequestedSandbox, sandbox},
};
use crate::{
    catalog::Expose,
    history::KeepLimits,
    mcp::ResultForm,
    operation::{EngineSettings, Principal},
    sandbox::Platform,
};

/// All decisions of one run.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    #[cfg(feature = "bridge")]
    pub(crate) http: ahma_http_bridge::BridgeArgs,
    #[cfg(feature = "client")]
    pub(crate) remote: super::remote::RemoteSettings,
    /// The cluster that runs all calls, if there is one.
    #[cfg(feature = "cluster")]
    pub(crate) cluster: Option<super::cluster::ClusterChoice>,
    pub(crate) tools_dir: PathBuf,
    /// The user named that directory, so it has to be there.
    pub(crate) tools_dir_is_named: bool,
    /// The project around the current directory, unless a flag names the scope or the tools directory.
    pub(crate) enclosing: Option<EnclosingProject>,
    /// Directory of the history and of spool files, out of reach of commands; none without a home directory.
    pub(crate) state_dir: Option<PathBuf>,
    pub(crate) sandbox: RequestedSandbox,
    pub(crate) execution: ExecutionSettings,
    /// The principal of requests that name none.
    pub(crate) principal: Principal,
    /// A bridge started this process and wants to hear of its operations.
    pub(crate) has_bridge: bool,
    pub(crate) log: LogSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Stdio,
    Http,
    ListTools(Format),
    SandboxReport(Format),
}

/// For people or for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    /// Bytes and tokens that each tool takes in the list; list-tools only.
    Cost,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExecutionSettings {
    pub(crate) shell: Option<PathBuf>,
    pub(crate) force_sync: bool,
    /// Tools that read and change files are offered.
    pub(crate) files: bool,
    /// Tools that the list shows.
    pub(crate) expose: Expose,
    /// Time that a call of a tool in the background waits.
    pub(crate) inline_wait: Duration,
    /// Time that a synchronous call waits; none if it depends on the client.
    pub(crate) sync_wait: Option<Duration>,
    pub(crate) timeout: Duration,
    pub(crate) max_operations: NonZeroUsize,
    pub(crate) max_result_bytes: usize,
    pub(crate) results: ResultForm,
    /// Limits of the history; none if it is not kept.
    pub(crate) keep: Option<KeepLimits>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogSettings {
    pub(crate) to_stderr: bool,
    pub(crate) debug: bool,
    pub(crate) colour: bool,
    /// Directory of the daily files; none without a cache directory.
    pub(crate) directory: Option<PathBuf>,
}

impl Mode {
    fn resolve(args: &Args) -> Result<Self, Failure> {
        Ok(match (args.sandbox_report, args.mode) {
            (true, _) if args.format == Some(Format::Cost) => {
                return Err(Failure::user("--format cost is for --mode list-tools")
                    .with_hint("the report is printed as text or json"));
            }
            (true, _) => Self::SandboxReport(args.format.unwrap_or(Format::Text)),
            (false, ModeArg::ListTools) => Self::ListTools(args.format.unwrap_or(Format::Json)),
            (false, ModeArg::Stdio) => Self::Stdio,
            (false, ModeArg::Http) => Self::Http,
        })
    }
}

impl ExecutionSettings {
    fn resolve(args: &Args, environment: &Environment) -> Result<Self, Failure> {
        Ok(Self {
            shell: args.shell.clone().map(absolute_shell).transpose()?,
            force_sync: args.sync,
            files: args.files == OnOff::On,
            inline_wait: args.inline_wait,
            expose: args.expose.into(),
            sync_wait: args.sync_wait,
            timeout: args.timeout,
            max_operations: args
                .max_operations
                .and_then(|count| NonZeroUsize::new(count as usize))
                .unwrap_or_else(|| EngineSettings::operations_on(environment.cores)),
            max_result_bytes: args.max_result_bytes,
            results: match args.results {
                ResultsArg::Text => ResultForm::Text,
                ResultsArg::Structured => ResultForm::Structured,
            },
            keep: (!args.no_history).then_some(KeepLimits {
                age: args.keep,
                bytes: args.keep_bytes as u64,
            }),
        })
    }
}

impl LogSettings {
    pub(crate) fn new(args: &Args, environment: &Environment) -> Self {
        Self {
            to_stderr: args.log_to_stderr,
            debug: args.debug,
            colour: environment.colour,
            directory: log_directory(environment),
        }
    }
}

/// Everything the process inherits, apart from flags.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    pub(crate) platform: Platform,
    pub(crate) working_directory: PathBuf,
    pub(crate) home: Option<PathBuf>,
    pub(crate) cache_home: Option<PathBuf>,
    #[cfg_attr(
        not(feature = "bridge"),
        expect(dead_code, reason = "where the bridge's tokens are kept")
    )]
    pub(crate) config_home: Option<PathBuf>,
    pub(crate) state_home: Option<PathBuf>,
    /// stderr is a terminal and NO_COLOR is not set.
    pub(crate) colour: bool,
    pub(crate) cores: usize,
    /// The name that a bridge gives its only client here.
    pub(crate) principal: Option<String>,
    /// A bridge started this process and wants to hear of its operations.
    pub(crate) has_bridge: bool,
}

impl Environment {
    /// Reads them.
    pub(crate) fn read() -> Result<Self, Failure> {
        let working_directory = std::env::current_dir().map_err(|error| {
            Failure::user(format!("the current directory cannot be read: {error}"))
                .with_hint("start it from a directory that exists")
        })?;
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let path = |name| variable(name).map(PathBuf::from);
        let absolute = |name| path(name).filter(|directory| directory.is_absolute());
        Ok(Self {
            platform: Platform::HERE,
            working_directory,
            home: path("HOME"),
            cache_home: absolute("XDG_CACHE_HOME"),
            config_home: absolute("XDG_CONFIG_HOME"),
            state_home: absolute("XDG_STATE_HOME"),
            colour: std::io::stderr().is_terminal() && !ahma_common::variables::no_color(),
            cores: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            principal: std::env::var(contract::ENV_PRINCIPAL)
                .ok()
                .filter(|name| !name.is_empty()),
            has_bridge: variable(contract::BRIDGE_ADDRESS_VARIABLE).is_some(),
        })
    }
}

impl Settings {
    pub(crate) fn resolve(args: Args, environment: &Environment) -> Result<Self, Failure> {
        let log = LogSettings::new(&args, environment);
        let mode = Mode::resolve(&args)?;
        let execution = ExecutionSettings::resolve(&args, environment)?;
        let tools_dir = args.tools_dir.clone();
        let tools_dir_is_named = tools_dir.is_some();
        let scope_is_named = args.sandbox_scope.is_some();
        #[cfg(feature = "bridge")]
        let http = args.http.clone();
        #[cfg(feature = "client")]
        let remote = args.remote.clone();
        #[cfg(feature = "cluster")]
        let cluster = super::cluster::ClusterChoice::resolve(&args.cluster, &environment.working_directory)?;
        #[cfg_attr(
            not(any(feature = "bridge", feature = "cluster")),
            expect(unused_mut, reason = "only the bridge and a cluster have files of their own")
        )]
        let mut sandbox = sandbox(args, environment)?;
        #[cfg(feature = "bridge")]
        if mode == Mode::Http {
            let files = http.private_files();
            let files = files.map(|file| environment.working_directory.join(file));
            sandbox.out_of_reach.extend(files);
        }
        #[cfg(feature = "cluster")]
        if let Some(cluster) = &cluster {
            sandbox.out_of_reach.extend(cluster.private_files());
        }
        #[cfg(feature = "client")]
        let remote =
            super::remote::RemoteSettings::resolve(&remote, &environment.working_directory, &sandbox.scope)?;
        let tools_dir = match tools_dir {
            Some(directory) => environment.working_directory.join(directory),
            None => default_tools_dir(&environment.working_directory, &sandbox.scope),
        };
        let home = environment.home.as_ref();
        let home = home.and_then(|home| home.canonicalize().ok());
        let enclosing = match scope_is_named || tools_dir_is_named {
            true => None,
            false => project::enclosing(&sandbox.scope, home.as_deref()),
        };
        let principal = environment.principal.as_deref().map(Principal::named);
        Ok(Self {
            mode,
            #[cfg(feature = "bridge")]
            http,
            #[cfg(feature = "client")]
            remote,
            #[cfg(feature = "cluster")]
            cluster,
            tools_dir,
            tools_dir_is_named,
            enclosing,
            state_dir: state_dir(environment),
            sandbox,
            execution,
            principal: principal.unwrap_or_default(),
            has_bridge: environment.has_bridge,
            log,
        })
    }

    /// The pool whose workers run all calls.
    pub(crate) fn pool(&self) -> Option<String> {
        #[cfg(feature = "cluster")]
        return self.cluster.as_ref().map(|cluster| cluster.pool.to_string());
        #[cfg(not(feature = "cluster"))]
        None
    }

    /// For subcommands about a project: its own tool files, never those of the current directory.
    pub(crate) fn of_the_project(mut self) -> Self {
        if !self.tools_dir_is_named {
            self.tools_dir = self.sandbox.scope.join(TOOLS_DIR);
        }
        self
    }

    /// Refuses a named directory that does not exist, which would be noticed only much later.
    pub(crate) fn require_tools_dir(&self) -> Result<(), Failure> {
        match std::fs::read_dir(&self.tools_dir) {
            Err(error) if self.tools_dir_is_named => Err(Failure::user(format!(
                "--tools-dir {} cannot be used: {error}",
                self.tools_dir.display()
            ))
            .with_hint("give a directory of tool files; ahma_mcp init writes some there")),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// A shell is never looked up through PATH, which may lead into the scope.
fn absolute_shell(shell: PathBuf) -> Result<PathBuf, Failure> {
    if shell.is_absolute() {
        return Ok(shell);
    }
    Err(
        Failure::user(format!("--shell {} is not an absolute path", shell.display()))
            .with_hint("write it as /bin/sh or /usr/bin/bash"),
    )
}

/// The scope's directory of tool files, or that of the current directory if only that exists.
fn default_tools_dir(working_directory: &Path, scope: &Path) -> PathBuf {
    let here = working_directory.join(TOOLS_DIR);
    let in_scope = scope.join(TOOLS_DIR);
    if !in_scope.is_dir() && here.is_dir() {
        here
    } else {
        in_scope
    }
}

pub(super) const TOOLS_DIR: &str = ".ahma/tools";

fn state_dir(environment: &Environment) -> Option<PathBuf> {
    let named = environment.state_home.clone();
    own_directory(environment, "Library/Application Support", named, ".local/state")
}

fn log_directory(environment: &Environment) -> Option<PathBuf> {
    let named = environment.cache_home.clone();
    own_directory(environment, "Library/Caches", named, ".cache")
}

/// A directory of this program below one of the user's: `macos` in the home, or `named` by XDG, else `linux` in the home.
fn own_directory(
    environment: &Environment,
    macos: &str,
    named: Option<PathBuf>,
    linux: &str,
) -> Option<PathBuf> {
    let home = environment.home.as_ref().filter(|home| home.is_absolute());
    let base = match environment.platform {
        Platform::MacOs => home.map(|home| home.join(macos)),
        Platform::Linux => named.or_else(|| home.map(|home| home.join(linux))),
    };
    base.map(|base| base.join("ahma_mcp"))
}

impl From<ExposeArg> for Expose {
    fn from(expose: ExposeArg) -> Self {
        match expose {
            ExposeArg::Core => Self::Core,
            ExposeArg::All => Self::All,
            ExposeArg::Search => Self::Search,
        }
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
