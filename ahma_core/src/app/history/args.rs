//! The flags of `ahma_mcp history`.

use std::{path::PathBuf, time::Duration};

use ahma_common::value;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{observe::Severity, operation::OperationState};

#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct HistoryArgs {
    #[command(subcommand)]
    pub(super) task: Option<HistoryTask>,

    #[command(flatten)]
    pub(super) choice: ChoiceArgs,
}

/// Filter of operations.
#[derive(Debug, Args)]
pub(super) struct ChoiceArgs {
    /// Only operations of this tool.
    #[arg(long, value_name = "TOOL")]
    pub(super) tool: Option<String>,

    /// Only operations with this status.
    #[arg(long, value_name = "STATUS", value_parser = state)]
    pub(super) status: Option<OperationState>,

    /// Only operations of this client: the name of a token, an OAuth subject, or what the program calls itself.
    #[arg(long, value_name = "NAME")]
    pub(super) client: Option<String>,

    /// Only operations that were started in this time, such as 2h or 7d.
    #[arg(long, value_name = "TIME", value_parser = value::positive_duration)]
    pub(super) since: Option<Duration>,

    /// Only operations with this text in tool, command, arguments or reason.
    #[arg(long, value_name = "TEXT")]
    pub(super) text: Option<String>,

    /// Number of operations shown.
    #[arg(long, value_name = "COUNT", default_value = "50", value_parser = value::positive_count)]
    pub(super) limit: usize,
}

#[derive(Debug, Subcommand)]
pub(super) enum HistoryTask {
    /// Show everything known of one operation but its output
    Show { id: String },
    /// Print the output of one operation, as it was printed
    Output {
        id: String,

        /// Only lines that match this regular expression, with their numbers.
        #[arg(long, value_name = "REGEX", conflicts_with = "tail")]
        grep: Option<String>,

        /// Only the last lines.
        #[arg(long, value_name = "COUNT")]
        tail: Option<u64>,
    },
    /// List what tools found, in the newest operation first
    Findings {
        /// Only findings of this severity or a worse one.
        #[arg(long, value_name = "SEVERITY", default_value = "info", value_parser = severity)]
        severity: Severity,

        /// Only those of operations that were started in this time.
        #[arg(long, value_name = "TIME", value_parser = value::positive_duration)]
        since: Option<Duration>,

        /// Number of findings shown.
        #[arg(long, value_name = "COUNT", default_value = "200", value_parser = value::positive_count)]
        limit: usize,
    },
    /// Write the findings, the record or the output of one operation in a format for other programs
    Export {
        id: String,

        #[arg(long = "format", value_enum, value_name = "FORMAT")]
        form: ExportForm,

        /// File to write, instead of stdout. An existing one is replaced.
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Remove operations that have ended, by id or by the flags of the list
    Remove {
        ids: Vec<String>,

        #[command(flatten)]
        choice: ChoiceArgs,

        /// Remove everything that has ended.
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportForm {
    /// Findings, and how the operation ended.
    Sarif,
    /// Findings as test cases, and how the operation ended.
    Junit,
    /// Everything but the output.
    Json,
    /// The output.
    Text,
}

fn state(text: &str) -> Result<OperationState, String> {
    OperationState::named(text).ok_or_else(|| {
        let names: Vec<_> = OperationState::ALL.iter().map(|state| state.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

fn severity(text: &str) -> Result<Severity, String> {
    Severity::parse(text).ok_or_else(|| "expected critical, high, medium, low or info".to_owned())
}

const EXAMPLES: &str = "\
Examples:
  ahma_mcp history                                        the newest operations of all clients and projects
  ahma_mcp history --since 2h --status failed             what failed lately
  ahma_mcp history --text nmap --format json              for scripts
  ahma_mcp history output ID --grep error                 lines of an output
  ahma_mcp history findings --severity high --since 7d    the bad ones of a week
  ahma_mcp history export ID --format sarif --to scan.sarif
  ahma_mcp history remove --since 1h --text secret        forget some

Servers keep what they ran for --keep, up to --keep-bytes. Output is kept as it was printed.";
