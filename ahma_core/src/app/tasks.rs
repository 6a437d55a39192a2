//! The subcommands: what the program does besides serving. Holds clap types, as `args` does, and nothing else.
//!
//! Flags of the server stand before the subcommand or right after it (`ahma_mcp --network off run …`); those below stand
//! after it.

#[cfg(feature = "bridge")]
use std::{path::PathBuf, time::Duration};

use clap::{Parser, Subcommand, ValueEnum};

#[cfg(feature = "bridge")]
use ahma_flags::value;

/// A task other than serving.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Set a project up: tool files for what it is written in, and the entry for your MCP client
    Init(InitArgs),
    /// Check this machine, the project and the clients, and say what to do about each problem
    Doctor(DoctorArgs),
    /// Run one tool from the terminal, behind the same sandbox as for a client
    Run(RunArgs),
    /// Log in to a remote server; the running servers of this user notice
    #[cfg(feature = "client")]
    Login(super::remote::LoginArgs),
    /// Forget the login to a remote server
    #[cfg(feature = "client")]
    Logout(super::remote::AccountArgs),
    /// Make a credential for a client that comes over HTTP
    #[cfg(feature = "bridge")]
    #[command(subcommand)]
    Token(TokenTask),
    /// Check an audit trail of the HTTP bridge
    #[cfg(feature = "bridge")]
    #[command(subcommand)]
    Audit(AuditTask),
    /// Print a script that completes this program's flags in a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Which shell.
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
    /// Whose configuration gets the entry `Ahama`; asked for on a terminal if it is not given.
    #[arg(long, value_enum, value_name = "CLIENT")]
    pub(crate) client: Option<ClientArg>,

    /// Change existing files without asking; the differences are shown all the same.
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// Bring tool files that are there already to how they come with this version, instead of leaving them alone.
    #[arg(long)]
    pub(crate) update_tools: bool,

    /// Show what would be done, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientArg {
    Vscode,
    Cursor,
    Claude,
    Codex,
    Windsurf,
}

#[derive(Debug, Parser)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
#[command(after_help = RUN_EXAMPLES, override_usage = "ahma_mcp [FLAGS] run <TOOL> [--NAME VALUE]... [-- WORD...]")]
pub(crate) struct RunArgs {
    /// The tool, then its arguments: --NAME VALUE, --NAME for a switch, repeated for a list. Words without a name
    /// fill the positional arguments in their order.
    #[arg(
        value_name = "TOOL",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        num_args = 1..
    )]
    pub(crate) words: Vec<String>,
}

#[cfg(feature = "bridge")]
#[derive(Debug, Subcommand)]
pub(crate) enum TokenTask {
    /// Make a token, add its hash to the tokens file, and print it; nobody can read it again
    #[command(after_help = TOKEN_EXAMPLES)]
    New {
        /// Who it is for. A token of the same name is replaced.
        #[arg(long)]
        name: String,

        /// How long it is valid, such as 30d or 12h [default: until it is removed].
        #[arg(long, value_name = "TIME", value_parser = value::positive_duration)]
        expires: Option<Duration>,

        /// The directory that the client's sessions are confined to; it must exist, and needs --session-isolation.
        #[arg(long, value_name = "DIR")]
        scope: Option<PathBuf>,

        /// How many sessions it may have at once; at least one.
        #[arg(long, value_name = "COUNT")]
        max_sessions: Option<usize>,

        /// The tokens file, made if it does not exist; commands must not reach it, so no project is a place for it
        /// [default: that of --tokens-file, else ~/.config/ahma_mcp/tokens.json].
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

#[cfg(feature = "bridge")]
#[derive(Debug, Subcommand)]
pub(crate) enum AuditTask {
    /// Check that no line was changed, removed or added, and name the first one where that is not so. Lines cut off the
    /// end of the newest file cannot be seen from the file alone
    #[command(after_help = AUDIT_EXAMPLES)]
    Verify {
        /// A file that --audit-file wrote; one that was set aside (FILE.1 to FILE.8) is looked for beside it.
        file: PathBuf,
    },
}

const INIT_EXAMPLES: &str = "\
Examples:
  ahma_mcp init                       ask which client, write what is missing
  ahma_mcp init --client vscode       write .ahma/tools and .vscode/mcp.json
  ahma_mcp --network off init         the entry starts the server with these flags
  ahma_mcp init --dry-run             only show it
  ahma_mcp init --update-tools        tool files of an older version, too

A file that exists is never changed without showing the difference and asking, and tool files only with --update-tools; a second run finds nothing to do.";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  ahma_mcp doctor                               this directory
  ahma_mcp doctor --sandbox-scope ~/project     another; every flag of the server may be added
  ahma_mcp doctor --json                        for a program

Nothing is changed. Exit codes: 0 no problems, 1 something is wrong, 3 something that the program needs is missing.";

#[cfg(feature = "bridge")]
const TOKEN_EXAMPLES: &str = "\
Examples:
  ahma_mcp token new --name laptop --expires 30d
  ahma_mcp token new --name ci --scope ~/project --max-sessions 2

The client sends it as `Authorization: Bearer TOKEN` to a server that was started with
  ahma_mcp --mode http --session-isolation --tokens-file ~/.config/ahma_mcp/tokens.json";

#[cfg(feature = "bridge")]
const AUDIT_EXAMPLES: &str = "\
Examples:
  ahma_mcp --mode http --audit-file ~/ahma-audit.jsonl     write it
  ahma_mcp audit verify ~/ahma-audit.jsonl                 check it

Exit codes: 0 whole, 1 a line is not what was written.";

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

const RUN_EXAMPLES: &str = "\
Examples:
  ahma_mcp run cargo_build --release           a switch
  ahma_mcp run git_log --max-count 3           a value
  ahma_mcp run sandboxed_shell 'ls | wc -l'    a positional argument
  ahma_mcp run cargo_build --help              the arguments of a tool
  ahma_mcp --network off run cargo_test        flags of the server stand before the tool

Output goes to stdout as it is printed; progress, findings and complaints go to stderr. The command reads nothing from stdin, which is empty for it as for a client: give it a file, or the text as an argument. Ctrl-C stops the command and everything it started.

Exit codes: that of the command; 128 + the signal that ended it; 124 after a timeout; 130 after Ctrl-C; 2 wrong arguments or no such tool, 3 no sandbox, 4 it could not be run.";
