//! Writes the JSON Schema of MTDF tool files, or checks that the committed one is fresh.

#![forbid(unsafe_code)]

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use ahma_core::mtdf;
use anyhow::{Context, Result, bail};
use clap::Parser;

/// Writes the JSON Schema of MTDF tool files.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
struct Args {
    /// The file to write or to check.
    #[arg(default_value = "schemas/mtdf.schema.json")]
    output: PathBuf,

    /// Write nothing; fail if the file differs from the schema.
    #[arg(long)]
    check: bool,

    /// Print the schema instead of writing the file.
    #[arg(long, conflicts_with = "check")]
    print: bool,
}

const EXAMPLES: &str = "\
Examples:
  generate_tool_schema                       write schemas/mtdf.schema.json
  generate_tool_schema --check               fail if it is out of date, for CI
  generate_tool_schema --print > my.json     anywhere else

Exit codes: 0 done, 1 out of date or not writable, 2 usage.";

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let schema = mtdf::schema_text();
    if args.print {
        // A reader that has seen enough closes the pipe; that is not an error.
        let _ = io::stdout().lock().write_all(schema.as_bytes());
        return Ok(());
    }
    if args.check {
        check(&args.output, &schema)
    } else {
        write(&args.output, &schema)
    }
}

fn check(output: &Path, schema: &str) -> Result<()> {
    let committed =
        fs::read_to_string(output).with_context(|| format!("cannot read {}", output.display()))?;
    if committed != schema {
        bail!(
            "{} is out of date\nhint: run generate_tool_schema and commit the result",
            output.display()
        );
    }
    tell(&format!("{} is up to date", output.display()));
    Ok(())
}

fn write(output: &Path, schema: &str) -> Result<()> {
    if let Some(directory) = output.parent() {
        fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    }
    fs::write(output, schema).with_context(|| format!("cannot write {}", output.display()))?;
    tell(&format!("wrote {}", output.display()));
    Ok(())
}

fn tell(what: &str) {
    let _ = writeln!(io::stdout().lock(), "{what}");
}
