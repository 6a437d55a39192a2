//! Checks MTDF tool files and shows what is wrong, line by line.

#![forbid(unsafe_code)]

mod args;
mod gather;
mod programs;
mod report;
mod sample;

use std::{
    env,
    ffi::OsStr,
    io::{self, IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
};

use ahma_common::variables;
use ahma_core::mtdf::{self, ProblemSeverity, ToolSource};
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
        Err(error) => return complain(&error, "name tool files or directories that hold them"),
    };
    let report = check(&groups);
    let text = match (&args.sample, args.format) {
        // Rules are tried only where they are right.
        (Some(recording), format) if report.count(ProblemSeverity::Error) == 0 => {
            let tried = only_file(&groups).and_then(|source| {
                let checked = mtdf::check_file(&source.name, &source.text);
                sample::try_sample(&checked, recording, args.tool.as_deref(), format)
            });
            match tried {
                Ok(text) => text,
                Err(error) => return complain(&error, "ahma_validate --sample CAPTURE [--tool NAME] FILE"),
            }
        }
        (_, Format::Text) => report.text(paint()),
        (_, Format::Json) => report.json(),
    };
    let empty: Vec<_> = groups.iter().filter(|group| group.asked_for.is_empty()).collect();
    for group in &empty {
        // A check that checks nothing would pass for ever, unnoticed.
        let directory = group.directory.display();
        let _ = writeln!(
            io::stderr(),
            "error: no tool files in {directory}\nhint: tool files end in .json and stand directly in the directory"
        );
    }
    // A reader that has seen enough closes the pipe; that is not an error.
    let _ = io::stdout().lock().write_all(text.as_bytes());
    ExitCode::from(if report.count(ProblemSeverity::Error) > 0 || !empty.is_empty() {
        PROBLEMS
    } else {
        0
    })
}

fn complain(error: &anyhow::Error, hint: &str) -> ExitCode {
    // If stderr is closed, the error cannot be reported.
    let _ = writeln!(io::stderr(), "error: {error:#}\nhint: {hint}");
    ExitCode::from(USAGE)
}

fn only_file(groups: &[Group]) -> anyhow::Result<&ToolSource> {
    let mut asked_for = groups.iter().flat_map(|group| {
        group
            .sources
            .iter()
            .filter(|source| group.asked_for.contains(&source.name))
    });
    match (asked_for.next(), asked_for.next()) {
        (Some(source), None) => Ok(source),
        _ => anyhow::bail!("a sample is tried on one tool file"),
    }
}

/// Checks each group by itself and keeps the problems of the files that were asked for.
fn check(groups: &[Group]) -> Report<'_> {
    let mut report = Report::default();
    let directories: Vec<PathBuf> = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect();
    for group in groups {
        report.files += group.asked_for.len();
        report.sources.extend(&group.sources);
        let checked = mtdf::check_set(&group.sources);
        let mut problems = checked.problems;
        problems.extend(programs::missing(&checked.tools, &group.sources, &directories));
        problems.extend(group.unreadable.iter().cloned());
        problems.retain(|problem| group.asked_for.contains(&problem.file));
        problems.sort_by(|left, right| left.file.cmp(&right.file));
        report.problems.extend(problems);
    }
    report
}

fn paint() -> Paint {
    let knows_colours = knows_colours(env::var_os("TERM").as_deref());
    if variables::no_color() || !knows_colours || !io::stdout().is_terminal() {
        Paint::Plain
    } else {
        Paint::Colour
    }
}

fn knows_colours(terminal: Option<&OsStr>) -> bool {
    terminal.is_some_and(|terminal| terminal != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dumb_terminal_is_given_no_colours() {
        for (terminal, expected) in [(None, false), (Some("dumb"), false), (Some("xterm"), true)] {
            assert_eq!(knows_colours(terminal.map(OsStr::new)), expected, "{terminal:?}");
        }
    }
}
