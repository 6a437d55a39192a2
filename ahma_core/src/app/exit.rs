//! Exit codes, few and stable, and the one way to report a failure.

use std::{
    fmt,
    io::{self, Write as _},
    process::ExitCode,
};

pub(crate) use ahma_common::error_chain as chain;

/// Exit codes, by who has to act next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Nothing failed.
    Success = 0,
    /// Something given to the program is wrong: a path, a file, a value.
    UserError = 1,
    /// The command line could not be understood.
    Usage = 2,
    /// The machine lacks something that is needed, such as kernel support for the sandbox.
    MissingPrerequisite = 3,
    /// A defect or an unforeseen failure of this program.
    Internal = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A reason to end the program: one line about the failure, and a hint if there is a remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    exit: Exit,
    what: String,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self {
            exit,
            what: what.into(),
            hint: None,
        }
    }

    /// A mistake that the user can fix.
    pub(crate) fn user(what: impl Into<String>) -> Self {
        Self::new(Exit::UserError, what)
    }

    /// An unforeseen failure; the whole chain of causes is part of the line.
    pub(crate) fn internal(what: &str, cause: &dyn std::error::Error) -> Self {
        Self::new(Exit::Internal, format!("{what}: {}", chain(cause)))
            .with_hint("run again with --log-to-stderr --debug, and report it if it happens twice")
    }

    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Writes the failure to stderr, which may be closed, and returns the exit code.
    pub(crate) fn report(&self) -> Exit {
        notice(format_args!("error: {self}"));
        if let Some(hint) = &self.hint {
            notice(format_args!("hint: {hint}"));
        }
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

/// Writes to stdout. A closed pipe is no error; a full disk is one.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::user(format!("cannot write to stdout: {error}")).with_hint("is the disk full?"))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes a line to stderr, which may be closed.
pub(crate) fn notice(line: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Offset that shells add to the number of a signal.
const SIGNAL_BASE: i32 = 128;

/// The exit code that shells give for death by a signal.
pub(crate) fn signalled(signal: i32) -> u8 {
    u8::try_from(SIGNAL_BASE + signal).unwrap_or(u8::MAX)
}
