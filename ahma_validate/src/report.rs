//! The report: for people, with the line and a caret, or for programs.

use std::fmt::Write;

use ahma_common::words::counted;
use ahma_core::mtdf::{Problem, ProblemSeverity, ToolSource};
use serde_json::json;

/// Number of characters shown around a problem; a file on one line would fill the screen otherwise.
const SHOWN_BEFORE: usize = 60;
const SHOWN_LINE: usize = 110;

/// Result of a run.
#[derive(Debug, Default)]
pub(crate) struct Report<'a> {
    pub(crate) files: usize,
    pub(crate) sources: Vec<&'a ToolSource>,
    pub(crate) problems: Vec<Problem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Colour,
}

impl Report<'_> {
    pub(crate) fn count(&self, severity: ProblemSeverity) -> usize {
        self.problems
            .iter()
            .filter(|problem| problem.severity == severity)
            .count()
    }

    pub(crate) fn json(&self) -> String {
        let report = json!({
            "files_checked": self.files,
            "errors": self.count(ProblemSeverity::Error),
            "warnings": self.count(ProblemSeverity::Warning),
            "problems": self.problems,
        });
        format!("{report:#}\n")
    }

    pub(crate) fn text(&self, paint: Paint) -> String {
        let mut text = String::new();
        for problem in &self.problems {
            let source = self.sources.iter().find(|source| source.name == problem.file);
            let line = source.and_then(|source| source.text.lines().nth(problem.line - 1));
            text.push_str(&entry(problem, line, paint));
            text.push('\n');
        }
        text.push_str(&self.summary());
        text
    }

    fn summary(&self) -> String {
        if self.files == 0 {
            return "no files checked: names of tool files end in .json\n".to_owned();
        }
        let checked = counted(self.files, "file");
        if self.problems.is_empty() {
            return format!("{checked} checked, no problems\n");
        }
        let errors = counted(self.count(ProblemSeverity::Error), "error");
        let warnings = counted(self.count(ProblemSeverity::Warning), "warning");
        format!("{checked} checked, {errors}, {warnings}\n")
    }
}

fn entry(problem: &Problem, line: Option<&str>, paint: Paint) -> String {
    let Problem {
        file,
        line: number,
        column,
        severity,
        message,
        pointer,
        hint,
        ..
    } = problem;
    let colour = match severity {
        ProblemSeverity::Error => "\x1b[1;31m",
        ProblemSeverity::Warning => "\x1b[1;33m",
    };
    let headline = paint.with("\x1b[1m", message);
    let margin = " ".repeat(number.to_string().len());
    let bar = paint.with("\x1b[1;34m", "|");
    let mut text = format!("{}: {headline}\n", paint.with(colour, &severity.to_string()));
    let arrow = paint.with("\x1b[1;34m", "-->");
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{margin}{arrow} {file}:{number}:{column}");
    if let Some(line) = line {
        let (shown, caret) = excerpt(line, *column, problem.length);
        let number = paint.with("\x1b[1;34m", &number.to_string());
        let _ = writeln!(
            text,
            "{margin} {bar}\n{number} {bar} {shown}\n{margin} {bar} {}",
            paint.with(colour, &caret)
        );
    }
    let equals = paint.with("\x1b[1;34m", "=");
    if !pointer.is_empty() {
        let _ = writeln!(text, "{margin} {equals} at: {pointer}");
    }
    if let Some(hint) = hint {
        let _ = writeln!(text, "{margin} {equals} hint: {hint}");
    }
    text
}

/// The part of the line around the problem, and the carets below it.
fn excerpt(line: &str, column: usize, length: usize) -> (String, String) {
    let letters: Vec<char> = line
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect();
    let at = (column - 1).min(letters.len());
    let start = if letters.len() <= SHOWN_LINE {
        0
    } else {
        at.saturating_sub(SHOWN_BEFORE)
    };
    let end = (start + SHOWN_LINE).min(letters.len());
    let shown: String = letters[start..end].iter().collect();
    let (before, after) = (
        if start > 0 { "…" } else { "" },
        if end < letters.len() { "…" } else { "" },
    );
    let indent = at - start + before.chars().count();
    let carets = length.clamp(1, (end - at).max(1));
    (
        format!("{before}{shown}{after}").trim_end().to_owned(),
        format!("{}{}", " ".repeat(indent), "^".repeat(carets)),
    )
}

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => format!("{code}{text}\x1b[0m"),
        }
    }
}
