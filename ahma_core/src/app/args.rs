//! The command line of the server, and the errors about it.
//!
//! Every flag has a variable (`--sync-wait` is `AHMA_SYNC_WAIT`); a flag wins over its variable, a variable over the
//! default. The doc comment of a field is its reference text.

use std::{path::PathBuf, time::Duration};

use ahma_common::{contract, nearest, value, variables};
use clap::{
    ArgAction, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{
    exit::{Exit, notice},
    flag_order,
    ignored_inputs::IgnoredInputs,
    repeatable_flags::RepeatableFlags,
    settings::Format,
    subcommands::Subcommand,
};

/// Turn command-line programs into MCP tools that run in a kernel-enforced sandbox.
#[derive(Debug, Parser)]
#[command(name = "ahma_mcp", version = VERSION, after_help = EXAMPLES, max_term_width = 110)]
#[command(subcommand_help_heading = "Commands", subcommand_value_name = "COMMAND")]
#[command(override_usage = USAGE)]
// The children of `--mode http` get the same flags, followed by their own.
#[command(args_override_self = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) subcommand: Option<Subcommand>,

    /// Serve MCP on stdin and stdout, serve it over HTTP, or print the tools and exit.
    #[arg(long, env = "AHMA_MODE", value_enum, default_value_t = ModeArg::Stdio, help_heading = SERVING)]
    pub(crate) mode: ModeArg,

    /// Output format of list-tools, --sandbox-report and history [default: json for list-tools, else text].
    #[arg(long, env = "AHMA_FORMAT", value_enum, value_name = "FORMAT", help_heading = SERVING)]
    pub(crate) format: Option<Format>,

    /// Directory of tool files [default: .ahma/tools in the scope, else in the current directory].
    #[arg(long, env = "AHMA_TOOLS_DIR", value_name = "DIR", help_heading = SERVING)]
    pub(crate) tools_dir: Option<PathBuf>,

    /// Which tools the list shows: core (those that tool files mark for daily work), all, or search (built-in ones
    /// only). The others are found by ahma_find and run by ahma_call.
    #[arg(long, env = "AHMA_EXPOSE", value_enum, value_name = "TOOLS", default_value_t = ExposeArg::Core, hide_possible_values = true, help_heading = SERVING)]
    pub(crate) expose: ExposeArg,

    /// The one directory that commands may write to [default: the current directory].
    #[arg(long, env = contract::SCOPE_VARIABLE, value_name = "DIR", help_heading = SANDBOX)]
    pub(crate) sandbox_scope: Option<PathBuf>,

    /// Require this tier instead of the strongest one that works here.
    #[arg(long, env = "AHMA_SANDBOX_TIER", value_enum, value_name = "TIER", help_heading = SANDBOX)]
    pub(crate) sandbox_tier: Option<TierArg>,

    /// Run commands without a sandbox. Only for use inside another one.
    #[arg(long, env = "AHMA_NO_SANDBOX", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = SANDBOX)]
    pub(crate) no_sandbox: bool,

    /// Print what the sandbox enforces on this machine, and exit.
    #[arg(long, env = "AHMA_SANDBOX_REPORT", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = SANDBOX)]
    pub(crate) sandbox_report: bool,

    /// Also let commands read this path. Repeatable, or separated by colons.
    #[arg(long, env = "AHMA_ALLOW_READ", value_name = "PATH", value_delimiter = ':', help_heading = SANDBOX)]
    pub(crate) allow_read: Vec<PathBuf>,

    /// Also let commands write to this path. Repeatable, or separated by colons.
    #[arg(long, env = "AHMA_ALLOW_WRITE", value_name = "PATH", value_delimiter = ':', help_heading = SANDBOX)]
    pub(crate) allow_write: Vec<PathBuf>,

    /// Give commands the machine's /tmp instead of a private one.
    #[arg(long, env = "AHMA_ALLOW_TMP", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = SANDBOX)]
    pub(crate) allow_tmp: bool,

    /// Pass this environment variable to commands, which otherwise see only a few. Repeatable, or separated by commas.
    #[arg(long, env = "AHMA_PASS_ENV", value_name = "NAME", value_delimiter = ',', help_heading = SANDBOX)]
    pub(crate) pass_env: Vec<String>,

    /// Readable toolchains in the home directory: auto, none, or a list such as rust,git.
    #[arg(long, env = "AHMA_TOOLCHAINS", value_name = "LIST", value_delimiter = ',', default_value = "auto", help_heading = SANDBOX)]
    pub(crate) toolchains: Vec<String>,

    /// Network that commands can reach; open includes this machine's loopback services [default: open].
    #[arg(long, env = "AHMA_NETWORK", value_enum, value_name = "NETWORK", help_heading = SANDBOX)]
    pub(crate) network: Option<NetworkArg>,

    /// Same as --network off.
    #[arg(long, env = "AHMA_RESTRICT_NETWORK", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = SANDBOX)]
    pub(crate) restrict_network: bool,

    /// Let commands connect to this TCP port only; implies --network ports. Repeatable.
    #[arg(long, env = "AHMA_ALLOW_CONNECT", value_name = "PORT", value_delimiter = ',', help_heading = SANDBOX)]
    pub(crate) allow_connect: Vec<u16>,

    /// Let commands change files that take effect outside the sandbox, such as git hooks and editor settings.
    #[arg(long, env = "AHMA_TRUST_WORKSPACE_CONFIG", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = SANDBOX)]
    pub(crate) trust_workspace_config: bool,

    /// Refuse to start if the scope or another flag lets commands read keys and tokens, such as ~/.ssh.
    #[arg(long, env = "AHMA_DENY_SENSITIVE_READS", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = SANDBOX)]
    pub(crate) deny_sensitive_reads: bool,

    /// Start without a scope and refuse to run anything.
    #[arg(long, env = "AHMA_DEFER_SANDBOX", action = ArgAction::SetTrue, value_parser = value::switch, hide = true)]
    pub(crate) defer_sandbox: bool,

    /// The parent process has resolved and checked the scope: a link in it means that it was replaced since.
    #[arg(long, requires = "sandbox_scope", hide = true)]
    pub(crate) scope_is_final: bool,

    /// A file of the parent process, such as its tokens, that commands must not reach.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) out_of_reach: Vec<PathBuf>,

    /// The tier that the parent process has tested with the same flags.
    #[arg(long, value_enum, value_name = "TIER", hide = true)]
    pub(crate) proven_tier: Option<TierArg>,

    /// Directory in which the children of one listener share results of availability checks.
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) shared_checks: Option<PathBuf>,

    /// This is the server of one session among many, most of which wait: keep no process ready before a call.
    #[arg(long, hide = true)]
    pub(crate) one_of_many: bool,

    /// A program that takes the place of `sandbox-exec` in tests. Only where there is no real one.
    #[arg(long, value_name = "PATH", hide = true)]
    pub(crate) sandbox_exec: Option<PathBuf>,

    /// Absolute path of the shell that runs scripts [default: bash, else sh].
    #[arg(long, env = "AHMA_SHELL", value_name = "PATH", help_heading = COMMANDS)]
    pub(crate) shell: Option<PathBuf>,

    /// Answer every call with its result, whatever the tool or call says.
    #[arg(long, env = "AHMA_SYNC", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = COMMANDS)]
    pub(crate) sync: bool,

    /// Offer the tools that read and change files: file_read, file_write, file_edit, file_patch.
    #[arg(long, env = "AHMA_FILES", value_enum, value_name = "ON|OFF", default_value = "on", help_heading = COMMANDS)]
    pub(crate) files: OnOff,

    /// How long a call of a background tool waits before it returns an operation id and the output so far; 0s: not at
    /// all.
    #[arg(long, env = "AHMA_INLINE_WAIT", value_name = "TIME", default_value = "5s", value_parser = value::duration, help_heading = COMMANDS)]
    pub(crate) inline_wait: Duration,

    /// Time that a synchronous call waits before it returns an operation id; the command continues
    /// [default: as long as the client is known to wait, else 45s].
    #[arg(long, env = "AHMA_SYNC_WAIT", value_name = "TIME", value_parser = value::duration, help_heading = COMMANDS)]
    pub(crate) sync_wait: Option<Duration>,

    /// Timeout of commands for which neither the call nor the tool sets one.
    #[arg(long, env = "AHMA_TIMEOUT", value_name = "TIME", default_value = "600s", value_parser = value::positive_duration, help_heading = COMMANDS)]
    pub(crate) timeout: Duration,

    /// Number of commands that run at once; others are queued [default: four per core, at most 128].
    #[arg(long, env = "AHMA_MAX_OPERATIONS", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), help_heading = COMMANDS)]
    pub(crate) max_operations: Option<u32>,

    /// Output bytes in one answer; the `output` tool reads the rest.
    #[arg(long, env = "AHMA_MAX_RESULT_BYTES", value_name = "BYTES", default_value = "7500", value_parser = value::byte_count, help_heading = COMMANDS)]
    pub(crate) max_result_bytes: usize,

    /// Content of results: text, or text and the same as structured data. Many clients show their model only one of the two.
    #[arg(long, env = "AHMA_RESULTS", value_enum, value_name = "FORM", default_value = "text", help_heading = COMMANDS)]
    pub(crate) results: ResultsArg,

    /// Age at which operations are dropped from the history.
    #[arg(long, env = "AHMA_KEEP", value_name = "TIME", default_value = "7d", value_parser = value::positive_duration, help_heading = HISTORY)]
    pub(crate) keep: Duration,

    /// Size at which the oldest operations are dropped from the history.
    #[arg(long, env = "AHMA_KEEP_BYTES", value_name = "BYTES", default_value = "2G", value_parser = value::positive_byte_count, help_heading = HISTORY)]
    pub(crate) keep_bytes: usize,

    /// Keep operations in memory only: what ran is forgotten with its session.
    #[arg(long, env = "AHMA_NO_HISTORY", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = HISTORY)]
    pub(crate) no_history: bool,

    /// Log to stderr instead of to a daily file in the cache directory.
    #[arg(long, env = "AHMA_LOG_TO_STDERR", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = LOGGING)]
    pub(crate) log_to_stderr: bool,

    /// Log in detail.
    #[arg(long, env = contract::DEBUG_VARIABLE, action = ArgAction::SetTrue, value_parser = value::switch, help_heading = LOGGING)]
    pub(crate) debug: bool,

    #[cfg(feature = "client")]
    #[command(flatten)]
    pub(crate) remote: super::remote::RemoteArgs,

    #[cfg(feature = "bridge")]
    #[command(flatten)]
    pub(crate) http: ahma_http_bridge::BridgeArgs,

    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub(crate) cluster: super::cluster::ClusterArgs,

    #[arg(skip)]
    pub(crate) ignored: IgnoredInputs,

    #[arg(skip)]
    pub(crate) repeatable: RepeatableFlags,
}

impl Args {
    /// Reads the command line and the variables. The error is already printed; it may also be a request for help.
    pub(crate) fn read() -> Result<Self, Exit> {
        let mut command = variables::with_regular_names(Self::described());
        let read = command
            .try_get_matches_from_mut(flag_order::flags_first(&command.clone(), std::env::args_os()))
            .map_err(with_better_advice)
            .and_then(|matches| {
                let args = Self::from_arg_matches(&matches)?;
                let ignored = IgnoredInputs::read(&command, &matches);
                let repeatable = RepeatableFlags::read(&command, &matches);
                Ok(Self {
                    ignored,
                    repeatable,
                    ..args
                })
            });
        read.map_err(|error| {
            let exit = report_clap_error(&error);
            if let Some(variable) = variables::at_fault(&error, &command) {
                notice(format_args!("hint: the value comes from the variable {variable}"));
            }
            exit
        })
    }

    /// Takes the name without dashes.
    pub(crate) fn has_flag(name: &str) -> bool {
        Self::command()
            .get_arguments()
            .any(|arg| arg.get_long() == Some(name) && !arg.is_hide_set())
    }

    /// The command for completions, without hidden flags.
    pub(crate) fn completed() -> clap::Command {
        let command = Self::command();
        clap::Command::new("ahma_mcp")
            .version(VERSION)
            .about(command.get_about().cloned().unwrap_or_default())
            .args(command.get_arguments().filter(|arg| !arg.is_hide_set()))
            .subcommands(command.get_subcommands().cloned())
    }

    /// The command for help and manual. Variables are mentioned once for all flags, below the examples.
    pub(crate) fn described() -> clap::Command {
        without_variables(Self::command())
    }
}

/// Prints an error, or the help that was asked for.
pub(crate) fn report_clap_error(error: &clap::Error) -> Exit {
    let _ = error.print();
    if error.use_stderr() {
        Exit::Usage
    } else {
        Exit::Success
    }
}

fn without_variables(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| arg.hide_env(true))
        .mut_subcommands(without_variables)
}

/// An unexpected word is most likely a misspelt subcommand, a value without its flag, or a flag without its dashes, none of
/// which clap sees. Its own advice, a `--` before the word, never helps here.
fn with_better_advice(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let word = word.clone();
    error.remove(ContextKind::Suggested);
    let command = Args::command();
    let subcommands: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let bare = word.trim_start_matches('-');
    let tip = if let Some(flag) = flag_with_value(&command, bare) {
        format!("write it as --{flag} {bare}")
    } else if word.starts_with('-') {
        if !subcommands.contains(&bare) {
            return error;
        }
        error.remove(ContextKind::SuggestedArg);
        format!("commands have no dashes: ahma_mcp {bare}")
    } else if Args::has_flag(bare) {
        format!("write it as --{bare}")
    } else {
        let nearest = nearest(&word, subcommands.iter().copied());
        if !nearest.is_empty() {
            let nearest = nearest.into_iter().map(str::to_owned).collect();
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(nearest));
            return error;
        }
        format!(
            "the commands are {}; without one, ahma_mcp serves MCP on stdin and stdout",
            subcommands.join(", ")
        )
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// The flag, of the server or of a subcommand, that has this word as a possible value.
fn flag_with_value(command: &clap::Command, word: &str) -> Option<String> {
    let takes = |arg: &&clap::Arg| {
        let values = arg.get_possible_values();
        arg.get_action().takes_values() && values.iter().any(|value| value.matches(word, false))
    };
    let own = command.get_arguments().find(takes).and_then(clap::Arg::get_long);
    own.map(str::to_owned).or_else(|| {
        command
            .get_subcommands()
            .find_map(|subcommand| flag_with_value(subcommand, word))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    Stdio,
    Http,
    ListTools,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExposeArg {
    Core,
    All,
    Search,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TierArg {
    Full,
    Core,
    Seatbelt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResultsArg {
    Text,
    Structured,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkArg {
    Open,
    Loopback,
    Off,
    Ports,
}

/// Version of the package, with the commit if known.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("COMMIT_SUFFIX_OF_AHMA"));

const USAGE: &str = "\
ahma_mcp [OPTIONS] [COMMAND]
       ahma_mcp --server-url URL [OPTIONS] [-- PROGRAM...]";

const SERVING: &str = "Serving";
const SANDBOX: &str = "Sandbox";
const COMMANDS: &str = "Execution";
const HISTORY: &str = "History";
const LOGGING: &str = "Logging";

const EXAMPLES: &str = "\
Start here:
  ahma_mcp init                              write tool files for this project and the entry
                                             of your MCP client
  ahma_mcp packs                             list the packs of tool files for init --pack
  ahma_mcp doctor                            check the setup and say how to fix it
  ahma_mcp run cargo_test                    run one tool, as a client would

Serving:
  ahma_mcp                                   serve the tools in .ahma/tools on stdin and stdout,
                                             confined to the current directory
  ahma_mcp --sandbox-scope ~/project         confine commands to ~/project
  ahma_mcp --network off --toolchains rust   no network, and no toolchain but Rust
  ahma_mcp --mode list-tools --format text   show the tools and what they lack
  ahma_mcp --mode http --session-isolation   serve several clients over HTTP, each confined to
                                             its own workspace
  ahma_mcp --mcp-config mcp.json             also offer the tools of the servers in mcp.json
  ahma_mcp --server-url https://host/mcp     serve one remote server on stdin and stdout
  ahma_mcp --sandbox-report                  show what the sandbox enforces on this machine

Every flag has a variable: --sync-wait is AHMA_SYNC_WAIT. A flag wins over its variable.
Exit codes: 0 ok, 1 user error, 2 usage, 3 prerequisite missing, 4 internal error; `run` ends with the code of its command.";
