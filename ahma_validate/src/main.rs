//! Checks MTDF tool files and shows what is wrong, line by line.

mod args;
mod gather;
mod report;

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use ahma_core::mtdf::{self, Severity};
use clap::Parser;

use crate::{
    args::{Args, Format},
    gather::{Group, gather},
    report::{Paint, Report},
};

const PROBLEMS: u8 = 1;
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let args = Args::parse();
    let groups = match gather(&args.paths) {
        Ok(groups) => groups,
        Err(error) => {
            // Nobody is left to tell when stderr is closed.
            let _ = writeln!(
                io::stderr(),
                "error: {error:#}\nhint: name tool files or directories that hold them"
            );
            return ExitCode::from(USAGE);
        }
    };
    let report = check(&groups);
    let text = match args.format {
        Format::Text => report.text(paint()),
        Format::Json => report.json(),
    };
    // A reader that has seen enough closes the pipe; that is not an error.
    let _ = io::stdout().lock().write_all(text.as_bytes());
    ExitCode::from(if report.count(Severity::Error) > 0 {
        PROBLEMS
    } else {
        0
    })
}

/// Checks each group by itself and keeps the problems of the files that were asked for.
fn check(groups: &[Group]) -> Report<'_> {
    let mut report = Report::default();
    for group in groups {
        report.files += group.asked_for.len();
        report.sources.extend(&group.sources);
        let mut problems = mtdf::check_set(&group.sources).problems;
        problems.extend(group.unreadable.iter().cloned());
        problems.retain(|problem| group.asked_for.contains(&problem.file));
        problems.sort_by(|left, right| left.file.cmp(&right.file));
        report.problems.extend(problems);
    }
    report
}

fn paint() -> Paint {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if no_color || !io::stdout().is_terminal() {
        Paint::Plain
    } else {
        Paint::Colour
    }
}
