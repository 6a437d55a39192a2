//! Problems of tool files and their places.

use std::fmt;

use serde::Serialize;

/// One mistake, at its place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub file: String,
    /// JSON pointer of the value at fault; empty for the whole file.
    pub pointer: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// Number of characters at fault; at least 1.
    pub length: usize,
    pub severity: ProblemSeverity,
    pub message: String,
    /// Advice on fixing it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    /// An error about a file as a whole.
    pub fn of_file(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            pointer: String::new(),
            line: 1,
            column: 1,
            length: 1,
            severity: ProblemSeverity::Error,
            message: message.into(),
            hint: None,
        }
    }
}

/// An error keeps its file from being loaded; a warning does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProblemSeverity {
    Warning,
    Error,
}

impl fmt::Display for ProblemSeverity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// One line for a log: `git.json:3:5: error: … (at /subcommand/0/name); hint`.
impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            column,
            severity,
            message,
            pointer,
            hint,
            ..
        } = self;
        write!(formatter, "{file}:{line}:{column}: {severity}: {message}")?;
        if !pointer.is_empty() {
            write!(formatter, " (at {pointer})")?;
        }
        match hint {
            Some(hint) => write!(formatter, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// A mistake before its line is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) pointer: String,
    pub(super) part: Part,
    pub(super) severity: ProblemSeverity,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// The part of an object's member that is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Key,
    Value,
}

impl Mistake {
    pub(super) fn error(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            part: Part::Value,
            severity: ProblemSeverity::Error,
            message: message.into(),
            hint: None,
        }
    }

    pub(super) fn warning(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: ProblemSeverity::Warning,
            ..Self::error(pointer, message)
        }
    }

    pub(super) fn on_key(self) -> Self {
        Self {
            part: Part::Key,
            ..self
        }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        self.hint_if(Some(hint.into()))
    }

    pub(super) fn hint_if(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }
}

/// `pointer` extended by one member or element.
pub(super) fn child(pointer: &str, token: impl fmt::Display) -> String {
    let token = token.to_string();
    if token.contains(['~', '/']) {
        format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
    } else {
        format!("{pointer}/{token}")
    }
}
