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

    /// Format of the report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Show what the stream rules of one tool file make of a recorded output, line by line.
    ///
    /// The recording is plain text, or a capture whose lines read `+seconds out| text`; `-` reads it
    /// from stdin.
    #[arg(long, value_name = "CAPTURE")]
    pub(crate) sample: Option<PathBuf>,

    /// With --sample: which tool of the file, if several have stream rules.
    #[arg(long, value_name = "NAME", requires = "sample")]
    pub(crate) tool: Option<String>,
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
  1  at least one file has an error, or a directory holds no tool file
  2  the command line is wrong or a path does not exist

Examples:
  ahma_validate                       check .ahma/tools
  ahma_validate my-tool.json          check one file
  ahma_validate --format json tools/  report for a program
  ahma_validate --sample run.txt my-tool.json
                                      try stream rules on a recorded output";
