//! The subcommands and their flags: clap types only, as in `args`.
//!
//! Flags of the server go before the subcommand or right after it (`ahma_mcp --network off run …`).

#[cfg(feature = "bridge")]
use std::{path::PathBuf, time::Duration};

use clap::{Parser, ValueEnum, builder::PossibleValuesParser};

#[cfg(feature = "bridge")]
use ahma_common::value;

#[cfg(feature = "bridge")]
use super::admin::{AdminCommand, AdminOptions};
use super::{clients::Client, packs};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Subcommand {
    /// Set up a project: write tool files for its languages and the entry of your MCP client
    Init(InitArgs),
    /// Check this machine, the project and the clients, and say how to fix each problem
    Doctor(DoctorArgs),
    /// List the packs of tool files that come with the program
    Packs(PacksArgs),
    /// Run one tool from the terminal, in the same sandbox as for a client
    Run(RunArgs),
    /// Run a tool or a command and print a recording for stream rules: both streams, with times
    Record(RecordArgs),
    /// Show what ran: every operation of your servers, with output and findings
    History(super::history::HistoryArgs),
    /// Open a page that shows what your servers run, with output, findings and a button to cancel
    #[cfg(feature = "bridge")]
    Console(ConsoleArgs),
    /// Log in to a remote server; your running servers notice
    #[cfg(feature = "client")]
    Login(super::remote::LoginArgs),
    /// Forget the login to a remote server
    #[cfg(feature = "client")]
    Logout(super::remote::AccountArgs),
    /// Create, list and revoke credentials of HTTP clients
    #[cfg(feature = "bridge")]
    #[command(subcommand)]
    Token(TokenCommand),
    /// See and stop what a server over HTTP runs
    #[cfg(feature = "bridge")]
    #[command(subcommand, after_help = ADMIN_EXAMPLES)]
    Admin(AdminCommand),
    /// Check an audit trail of the HTTP bridge
    #[cfg(feature = "bridge")]
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Run operations of a cluster: calls that its front ends take
    #[cfg(feature = "cluster")]
    #[command(after_help = super::cluster::WORKER_EXAMPLES)]
    Worker(super::cluster::WorkerArgs),
    /// Set up a cluster, and see its workers and its queue
    #[cfg(feature = "cluster")]
    #[command(subcommand, after_help = super::cluster::CLUSTER_EXAMPLES)]
    Cluster(super::cluster::ClusterCommand),
    /// Print a shell completion script
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page, in roff
    #[command(after_help = MAN_EXAMPLES)]
    Man,
}

#[derive(Debug, Parser)]
#[command(after_help = INIT_EXAMPLES)]
pub(crate) struct InitArgs {
    /// The client whose configuration gets the entry `Ahama`; asked for on a terminal if omitted.
    #[arg(long, value_enum, value_name = "CLIENT")]
    pub(crate) client: Option<Client>,

    /// A pack to add to those that fit the project's files; may be repeated. `ahma_mcp packs` lists them.
    #[arg(long = "pack", value_name = "NAME", value_parser = PossibleValuesParser::new(packs::names()), hide_possible_values = true)]
    pub(crate) packs: Vec<String>,

    /// Change existing files without asking; the differences are still shown.
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// Update existing tool files to this version.
    #[arg(long)]
    pub(crate) update_tools: bool,

    /// Show the changes without making them.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Parser)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,

    /// Only print an AppArmor profile that lets this program make user namespaces.
    #[arg(long, conflicts_with = "json")]
    pub(crate) apparmor_profile: bool,
}

#[derive(Debug, Parser)]
#[command(after_help = PACKS_EXAMPLES)]
pub(crate) struct PacksArgs {
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = PacksFormat::Text)]
    pub(crate) format: PacksFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PacksFormat {
    /// A line for each pack.
    Text,
    /// Every tool of every pack.
    Json,
    /// The same as the page docs/packs.md.
    Markdown,
}

#[derive(Debug, Parser)]
#[command(after_help = RUN_EXAMPLES, override_usage = "ahma_mcp [FLAGS] run <TOOL> [--NAME VALUE]... [-- ARGUMENT...]")]
pub(crate) struct RunArgs {
    /// The tool, followed by its arguments: --NAME VALUE, --NAME for a switch, repeated for a list. Other words are
    /// positional arguments.
    #[arg(value_name = "TOOL", required = true, trailing_var_arg = true, allow_hyphen_values = true, num_args = 1..)]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Parser)]
#[command(after_help = RECORD_EXAMPLES, override_usage = "ahma_mcp [FLAGS] record <TOOL> [--NAME VALUE]...\n       ahma_mcp [FLAGS] record -- <COMMAND> [ARGUMENT]...")]
pub(crate) struct RecordArgs {
    /// The tool with its arguments, as for `run`; after `--`, a command that needs no tool file.
    #[arg(value_name = "TOOL", required = true, trailing_var_arg = true, allow_hyphen_values = true, num_args = 1..)]
    pub(crate) words: Vec<String>,
}

impl RecordArgs {
    /// A command was named, not a tool. Where `--` is the first word, clap does not pass it on.
    pub(crate) fn is_command(&self) -> bool {
        let mut words = std::env::args_os();
        let separator = words.len().checked_sub(self.words.len() + 1);
        separator
            .and_then(|place| words.nth(place))
            .is_some_and(|word| word == "--")
    }
}

#[cfg(feature = "bridge")]
#[derive(Debug, Parser)]
#[command(after_help = CONSOLE_EXAMPLES)]
pub(crate) struct ConsoleArgs {
    /// Port on 127.0.0.1; 0 takes any free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,

    /// Only print the link.
    #[arg(long)]
    pub(crate) no_open: bool,
}

#[cfg(feature = "bridge")]
#[derive(Debug, clap::Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token, add its hash to the tokens file, and print it once
    #[command(after_help = TOKEN_EXAMPLES)]
    New {
        /// Name of the client. A token of the same name is replaced.
        #[arg(long)]
        name: String,

        /// What the token is for: an agent calls tools, an operator uses the admin API and no tools, metrics only reads /metrics.
        #[arg(long, value_enum, default_value_t = RoleArg::Agent)]
        role: RoleArg,

        /// Lifetime, such as 30d or 12h [default: until it is removed].
        #[arg(long, value_name = "TIME", value_parser = value::positive_duration)]
        expires: Option<Duration>,

        /// Existing directory that the client's sessions are confined to; needs --session-isolation.
        #[arg(long, value_name = "DIR")]
        scope: Option<PathBuf>,

        /// Maximum number of concurrent sessions; at least one.
        #[arg(long, value_name = "COUNT")]
        max_sessions: Option<usize>,

        /// Limit it to these tools, such as 'git_*,cargo_test' [default: all].
        #[arg(long, value_name = "NAMES")]
        tools: Option<String>,

        /// Tokens file, created if missing; must be out of reach of commands, so outside any project
        /// [default: that of --tokens-file, else ~/.config/ahma_mcp/tokens.json].
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// List the tokens: name, role, expiry, scope and tools
    List {
        /// Tokens file [default: that of --tokens-file, else ~/.config/ahma_mcp/tokens.json].
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Remove a token. A running server refuses it from the next request on
    Revoke {
        /// Name of the token.
        name: String,

        /// Have the server at --admin-url revoke it and stop everything it runs for it.
        #[arg(long, conflicts_with = "file")]
        stop_work: bool,

        #[command(flatten)]
        options: AdminOptions,

        /// Tokens file [default: that of --tokens-file, else ~/.config/ahma_mcp/tokens.json].
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

#[cfg(feature = "bridge")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArg {
    Agent,
    Operator,
    Metrics,
}

#[cfg(feature = "bridge")]
#[derive(Debug, clap::Subcommand)]
pub(crate) enum AuditCommand {
    /// Check that no line was changed, removed or added, and name the first one that was. Lines cut off the end of the
    /// newest file cannot be detected
    #[command(after_help = AUDIT_EXAMPLES)]
    Verify {
        /// A file written by --audit-file; rotated ones (FILE.1 to FILE.8) are looked for next to it.
        file: PathBuf,
    },
}

const INIT_EXAMPLES: &str = "\
Examples:
  ahma_mcp init                       ask for the client and write missing files
  ahma_mcp init --client vscode       write .ahma/tools and .vscode/mcp.json
  ahma_mcp init --pack security       also write tool files for scanners
  ahma_mcp --network off init         start the server with these flags
  ahma_mcp init --dry-run             only show the changes
  ahma_mcp init --update-tools        also update tool files of an older version

Existing files are never changed without showing the difference and asking, and tool files only with --update-tools.";

const PACKS_EXAMPLES: &str = "\
Examples:
  ahma_mcp packs                      show the packs, their tools and what these take in a client's list
  ahma_mcp packs --format json        with every tool
  ahma_mcp init --pack web            write the tool files of a pack

`init` writes those that fit the files of the project, and those named with --pack.";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  ahma_mcp doctor                               check this directory
  ahma_mcp doctor --sandbox-scope ~/project     check another; takes every flag of the server
  ahma_mcp doctor --json                        print JSON
  ahma_mcp doctor --apparmor-profile            where AppArmor keeps user namespaces from programs without a profile

Nothing is changed. Exit codes: 0 no problems, 1 a problem, 3 a missing prerequisite.";

#[cfg(feature = "bridge")]
const CONSOLE_EXAMPLES: &str = "\
Examples:
  ahma_mcp console                                     show what all servers of this user run
  ahma_mcp console --no-open --port 8484               over ssh -L 8484:127.0.0.1:8484
  ahma_mcp --audit-file ~/ahma-audit.jsonl console     with the audit trail of a server

It shows servers of editors and servers over HTTP alike. A server over HTTP has the same console at / for its operators.";

#[cfg(feature = "bridge")]
const TOKEN_EXAMPLES: &str = "\
Examples:
  ahma_mcp token new --name laptop --expires 30d
  ahma_mcp token new --name ci --scope ~/project --max-sessions 2
  ahma_mcp token new --name reviewer --tools 'git_*,cargo_test'

The client sends it as `Authorization: Bearer TOKEN` to a server started with
  ahma_mcp --mode http --session-isolation --tokens-file ~/.config/ahma_mcp/tokens.json";

#[cfg(feature = "bridge")]
const ADMIN_EXAMPLES: &str = "\
Examples:
  ahma_mcp admin sessions
  ahma_mcp admin operations --status running
  ahma_mcp admin tail op_1a2b3c4d
  ahma_mcp admin cancel op_1a2b3c4d --reason 'the disk is full'
  ahma_mcp admin drain

The token of an operator comes from AHMA_ADMIN_TOKEN or a file:
  ahma_mcp token new --name me --role operator > ~/.config/ahma_mcp/operator.token
  ahma_mcp admin operations --admin-token-file ~/.config/ahma_mcp/operator.token";

#[cfg(feature = "bridge")]
const AUDIT_EXAMPLES: &str = "\
Examples:
  ahma_mcp --mode http --audit-file ~/ahma-audit.jsonl     write it
  ahma_mcp audit verify ~/ahma-audit.jsonl                 check it

Exit codes: 0 intact, 1 a line was tampered with.";

const COMPLETIONS_EXAMPLES: &str = "\
For bash:
  mkdir -p ~/.local/share/bash-completion/completions
  ahma_mcp completions bash > ~/.local/share/bash-completion/completions/ahma_mcp
For zsh, with `fpath+=~/.zfunc` before compinit in ~/.zshrc:
  mkdir -p ~/.zfunc
  ahma_mcp completions zsh > ~/.zfunc/_ahma_mcp
For fish:
  mkdir -p ~/.config/fish/completions
  ahma_mcp completions fish > ~/.config/fish/completions/ahma_mcp.fish
For this bash only:
  source <(ahma_mcp completions bash)";

const MAN_EXAMPLES: &str = "\
To read it:
  ahma_mcp man | man -l -
To install it for `man ahma_mcp`, where ~/.cargo/bin is on PATH:
  mkdir -p ~/.cargo/man/man1
  ahma_mcp man > ~/.cargo/man/man1/ahma_mcp.1";

const RECORD_EXAMPLES: &str = "\
Examples:
  ahma_mcp record git_log --max-count 3 > run.txt      a run of a tool
  ahma_mcp record -- git log --oneline > run.txt       a command for which there is no tool file yet
  ahma_validate --sample run.txt .ahma/tools/rg.json   what the rules of a file make of it

The recording goes to stdout; its last line says how the command ended.";

const RUN_EXAMPLES: &str = "\
Examples:
  ahma_mcp run cargo_build --release           a switch
  ahma_mcp run git_log --max-count 3           a value
  ahma_mcp run sandboxed_shell 'ls | wc -l'    a positional argument
  ahma_mcp run cargo_build --help              the arguments of a tool
  ahma_mcp --network off run cargo_test        flags of the server go before the tool

Output goes to stdout as it is printed; progress, findings and errors go to stderr. The command has no stdin: pass a file or an argument instead. Ctrl-C stops the command and everything it started.

Exit codes: that of the command; 128 + the signal that ended it; 124 after a timeout; 130 after Ctrl-C; 2 wrong arguments or unknown tool, 3 no sandbox, 4 internal error.";
