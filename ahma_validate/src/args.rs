//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Checks MTDF tool files and shows every problem at its line.
///
/// A file is checked together with the other tool files of its directory, as the server would see it.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Tool files, or directories that hold them.
    #[arg(default_value = ".ahma/tools")]
    pub(crate) paths: Vec<PathBuf>,

    /// How to report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people: each problem with its line and a caret.
    Text,
    /// For programs: one JSON object.
    Json,
}

const AFTER_HELP: &str = "\
Exit codes:
  0  no errors (there may be warnings)
  1  at least one file has an error
  2  the command line is wrong or a path does not exist

Examples:
  ahma_validate                       check .ahma/tools
  ahma_validate my-tool.json          check one file
  ahma_validate --format json tools/  report for a program";
