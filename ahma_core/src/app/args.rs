//! The command line of the server: its flags, and what is wrong with those that were given.
//!
//! Every flag has a variable (`--sync-wait` is `AHMA_SYNC_WAIT`); a flag wins over its variable, a variable over the
//! default. The doc comment of a field is its reference text.

use std::{io::Write as _, path::PathBuf, time::Duration};

use ahma_flags::{value, variables};
use clap::{
    ArgAction, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{doubts::Doubts, exit::Exit, given::GivenFlags, order, tasks::Task};
use crate::mtdf::nearest;

/// Turn command-line programs into MCP tools that run behind a kernel-enforced sandbox.
#[derive(Debug, Parser)]
#[command(name = "ahma_mcp", version = VERSION, after_help = EXAMPLES, max_term_width = 110)]
#[command(subcommand_help_heading = "Tasks", subcommand_value_name = "TASK")]
#[command(override_usage = USAGE)]
// The children of `--mode http` get the same flags again and their own behind them.
#[command(args_override_self = true)]
pub(crate) struct Args {
    /// A task other than serving.
    #[command(subcommand)]
    pub(crate) task: Option<Task>,

    /// What to do: serve MCP on stdin and stdout, serve it over HTTP, or print the tools and end.
    #[arg(long, env = "AHMA_MODE", value_enum, default_value_t = ModeArg::Stdio, help_heading = SERVING)]
    pub(crate) mode: ModeArg,

    /// How list-tools and --sandbox-report print [default: json for list-tools, text for the report].
    #[arg(long, env = "AHMA_FORMAT", value_enum, value_name = "FORMAT", help_heading = SERVING)]
    pub(crate) format: Option<FormatArg>,

    /// Directory of tool files [default: .ahma/tools of the scope, or else of the current directory].
    #[arg(long, env = "AHMA_TOOLS_DIR", value_name = "DIR", help_heading = SERVING)]
    pub(crate) tools_dir: Option<PathBuf>,

    /// The one directory that commands may change [default: the current directory].
    #[arg(long, env = "AHMA_SANDBOX_SCOPE", value_name = "DIR", help_heading = SANDBOX)]
    pub(crate) sandbox_scope: Option<PathBuf>,

    /// Insist on a way of confinement instead of taking the strongest that works here.
    #[arg(long, env = "AHMA_SANDBOX_TIER", value_enum, value_name = "TIER", help_heading = SANDBOX)]
    pub(crate) sandbox_tier: Option<TierArg>,

    /// Run commands without any confinement. For use inside another sandbox only.
    #[arg(long, env = "AHMA_NO_SANDBOX", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = SANDBOX)]
    pub(crate) no_sandbox: bool,

    /// Print what the sandbox really enforces on this machine, and end.
    #[arg(long, env = "AHMA_SANDBOX_REPORT", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = SANDBOX)]
    pub(crate) sandbox_report: bool,

    /// Let commands read this path too. Repeatable; several are separated by colons.
    #[arg(long, env = "AHMA_ALLOW_READ", value_name = "PATH", value_delimiter = ':', help_heading = SANDBOX)]
    pub(crate) allow_read: Vec<PathBuf>,

    /// Let commands write to this path too. Repeatable; several are separated by colons.
    #[arg(long, env = "AHMA_ALLOW_WRITE", value_name = "PATH", value_delimiter = ':', help_heading = SANDBOX)]
    pub(crate) allow_write: Vec<PathBuf>,

    /// Give commands the machine's /tmp instead of a private one.
    #[arg(long, env = "AHMA_ALLOW_TMP", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = SANDBOX)]
    pub(crate) allow_tmp: bool,

    /// Pass this variable on to commands, which otherwise see a short list only. Repeatable, or separated by commas.
    #[arg(long, env = "AHMA_PASS_ENV", value_name = "NAME", value_delimiter = ',', help_heading = SANDBOX)]
    pub(crate) pass_env: Vec<String>,

    /// Which toolchains in the home directory are readable: auto, none, or a list such as rust,git.
    #[arg(long, env = "AHMA_TOOLCHAINS", value_name = "LIST", value_delimiter = ',', default_value = "auto", help_heading = SANDBOX)]
    pub(crate) toolchains: Vec<String>,

    /// Which network commands can reach; open includes the services of this machine's loopback [default: open].
    #[arg(long, env = "AHMA_NETWORK", value_enum, value_name = "NETWORK", help_heading = SANDBOX)]
    pub(crate) network: Option<NetworkArg>,

    /// No network for commands; the same as --network off.
    #[arg(long, env = "AHMA_RESTRICT_NETWORK", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = SANDBOX)]
    pub(crate) restrict_network: bool,

    /// Let commands connect to this TCP port and no other; implies --network ports. Repeatable.
    #[arg(long, env = "AHMA_ALLOW_CONNECT", value_name = "PORT", value_delimiter = ',', help_heading = SANDBOX)]
    pub(crate) allow_connect: Vec<u16>,

    /// Let commands change files that act later outside the sandbox, such as git hooks and editor settings.
    #[arg(long, env = "AHMA_TRUST_WORKSPACE_CONFIG", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = SANDBOX)]
    pub(crate) trust_workspace_config: bool,

    /// Refuse to start if commands could read a place where people keep keys and tokens, such as ~/.ssh, because the
    /// scope or another flag opens it.
    #[arg(long, env = "AHMA_DENY_SENSITIVE_READS", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = SANDBOX)]
    pub(crate) deny_sensitive_reads: bool,

    /// Start without a scope and refuse to run anything.
    #[arg(long, env = "AHMA_DEFER_SANDBOX", action = ArgAction::SetTrue, value_parser = value::switch, hide = true)]
    pub(crate) defer_sandbox: bool,

    /// The scope was resolved and judged by whoever starts this process: a link in it means that it was exchanged since.
    #[arg(long, requires = "sandbox_scope", hide = true)]
    pub(crate) scope_is_final: bool,

    /// A file of whoever starts this process, such as its tokens, that commands must not reach.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) out_of_reach: Vec<PathBuf>,

    /// The tier that whoever starts this process has proven, with the same flags.
    #[arg(long, value_enum, value_name = "TIER", hide = true)]
    pub(crate) proven_tier: Option<TierArg>,

    /// The shell that runs scripts, by absolute path [default: bash, or else sh].
    #[arg(long, env = "AHMA_SHELL", value_name = "PATH", help_heading = COMMANDS)]
    pub(crate) shell: Option<PathBuf>,

    /// Answer every call with its result, whatever the tool or the call asks for.
    #[arg(long, env = "AHMA_SYNC", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = COMMANDS)]
    pub(crate) sync: bool,

    /// How long a synchronous call waits before it answers with an operation id; the command goes on.
    #[arg(long, env = "AHMA_SYNC_WAIT", value_name = "TIME", default_value = "45s", value_parser = value::duration, help_heading = COMMANDS)]
    pub(crate) sync_wait: Duration,

    /// How long a command may run when neither the call nor the tool says.
    #[arg(long, env = "AHMA_TIMEOUT", value_name = "TIME", default_value = "600s", value_parser = value::positive_duration, help_heading = COMMANDS)]
    pub(crate) timeout: Duration,

    /// How many commands run at once; more wait in a queue [default: four a core, at most 128].
    #[arg(long, env = "AHMA_MAX_OPERATIONS", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), help_heading = COMMANDS)]
    pub(crate) max_operations: Option<u32>,

    /// How much output one answer carries; the rest is read with the `output` tool.
    #[arg(long, env = "AHMA_MAX_RESULT_BYTES", value_name = "BYTES", default_value = "16K", value_parser = value::byte_count, help_heading = COMMANDS)]
    pub(crate) max_result_bytes: usize,

    /// Log to stderr, in colour on a terminal, instead of to a daily file in the cache directory.
    #[arg(long, env = "AHMA_LOG_TO_STDERR", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = LOGGING)]
    pub(crate) log_to_stderr: bool,

    /// Log in detail.
    #[arg(long, env = "AHMA_DEBUG", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = LOGGING)]
    pub(crate) debug: bool,

    #[cfg(feature = "client")]
    #[command(flatten)]
    pub(crate) remote: super::remote::RemoteArgs,

    #[cfg(feature = "bridge")]
    #[command(flatten)]
    pub(crate) http: ahma_http_bridge::BridgeArgs,

    /// What the user said that has no effect.
    #[arg(skip)]
    pub(crate) doubts: Doubts,

    /// What stands on the command line.
    #[arg(skip)]
    pub(crate) given: GivenFlags,
}

impl Args {
    /// Reads the command line and the variables. The error, which is told already, may also be a wish for help.
    pub(crate) fn read() -> Result<Self, Exit> {
        let mut command = variables::with_regular_names(Self::described());
        let read = command
            .try_get_matches_from_mut(order::flags_first(&command.clone(), std::env::args_os()))
            .map_err(with_better_advice)
            .and_then(|matches| {
                let args = Self::from_arg_matches(&matches)?;
                let doubts = Doubts::read(&command, &matches);
                let given = GivenFlags::read(&command, &matches);
                Ok(Self {
                    doubts,
                    given,
                    ..args
                })
            });
        read.map_err(|error| {
            let _ = error.print();
            if let Some(variable) = variables::at_fault(&error, &command) {
                let _ = writeln!(
                    std::io::stderr(),
                    "hint: the value is that of the variable {variable}"
                );
            }
            if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Success
            }
        })
    }

    /// Whether the server has a flag of that name, which is written without dashes.
    pub(crate) fn has_flag(name: &str) -> bool {
        Self::command()
            .get_arguments()
            .any(|arg| arg.get_long() == Some(name) && !arg.is_hide_set())
    }

    /// The command as it is completed: without the flags that the program has for itself. Only the server has such.
    pub(crate) fn completed() -> clap::Command {
        let command = Self::command();
        clap::Command::new("ahma_mcp")
            .version(VERSION)
            .about(command.get_about().cloned().unwrap_or_default())
            .args(command.get_arguments().filter(|arg| !arg.is_hide_set()))
            .subcommands(command.get_subcommands().cloned())
    }

    /// The command as help and manual show it. Variables are said once for all flags, below the examples.
    pub(crate) fn described() -> clap::Command {
        without_variables(Self::command())
    }
}

fn without_variables(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| arg.hide_env(true))
        .mut_subcommands(without_variables)
}

/// A word that nobody expects is most likely a task that is misspelt, or the value of a flag or the flag itself without
/// what belongs to it, which clap does not see. Its own advice, a `--` before the word, is right for no task.
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
    let tasks: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let bare = word.trim_start_matches('-');
    let tip = if let Some(flag) = flag_with_value(&command, bare) {
        format!("write it as --{flag} {bare}")
    } else if word.starts_with('-') {
        if !tasks.contains(&bare) {
            return error;
        }
        error.remove(ContextKind::SuggestedArg);
        format!("a task has no dashes: ahma_mcp {bare}")
    } else if Args::has_flag(bare) {
        format!("write it as --{bare}")
    } else {
        let nearest = nearest(&word, tasks.iter().copied());
        if !nearest.is_empty() {
            let nearest = nearest.into_iter().map(str::to_owned).collect();
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(nearest));
            return error;
        }
        format!(
            "the tasks are {}; without one it serves MCP on stdin and stdout",
            tasks.join(", ")
        )
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// The flag, of the server or of a task, that takes this word for a value.
fn flag_with_value(command: &clap::Command, word: &str) -> Option<String> {
    let takes = |arg: &&clap::Arg| {
        let values = arg.get_possible_values();
        arg.get_action().takes_values() && values.iter().any(|value| value.matches(word, false))
    };
    let own = command.get_arguments().find(takes).and_then(clap::Arg::get_long);
    own.map(str::to_owned).or_else(|| {
        command
            .get_subcommands()
            .find_map(|task| flag_with_value(task, word))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    Stdio,
    Http,
    ListTools,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TierArg {
    Full,
    Core,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkArg {
    Open,
    Loopback,
    Off,
    Ports,
}

/// Of the package, with the commit it was built from if that is known.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("COMMIT_SUFFIX_OF_AHMA"));

const USAGE: &str = "\
ahma_mcp [OPTIONS] [TASK]
       ahma_mcp --server-url URL [OPTIONS] [-- COMMAND...]";

const SERVING: &str = "Serving";
const SANDBOX: &str = "Sandbox";
const COMMANDS: &str = "Commands";
const LOGGING: &str = "Logging";

const EXAMPLES: &str = "\
Start here:
  ahma_mcp init                              write tool files for this project and the entry
                                             for your MCP client
  ahma_mcp doctor                            check that everything works, and what to do if not
  ahma_mcp run cargo_test                    run one tool, as a client would

Serving:
  ahma_mcp                                   serve MCP on stdin and stdout, with the tools of
                                             .ahma/tools, confined to the current directory
  ahma_mcp --sandbox-scope ~/project         confine commands to ~/project
  ahma_mcp --network off --toolchains rust   no network; of the home only the Rust toolchain
  ahma_mcp --mode list-tools --format text   show the tools and what is missing for them
  ahma_mcp --mode http --session-isolation   serve several clients over HTTP, each confined to
                                             its own workspace
  ahma_mcp --mcp-config mcp.json             offer the tools of the servers in mcp.json too
  ahma_mcp --server-url https://host/mcp     serve one remote server on stdin and stdout
  ahma_mcp --sandbox-report                  show what the sandbox enforces on this machine

Every flag has a variable: --sync-wait is AHMA_SYNC_WAIT. A flag wins over its variable.
Exit codes: 0 ok, 1 user error, 2 usage, 3 prerequisite missing, 4 internal error; `run` ends with the code of its command.";
