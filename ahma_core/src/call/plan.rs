//! What a call will run: data only, fully checked, nothing started yet.

use std::{borrow::Cow, collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use crate::observe::StreamRules;

/// Everything the engine needs to know to run one call.
#[derive(Debug, Clone)]
pub struct CommandPlan {
    /// The tool's name as the client knows it.
    pub tool: String,
    /// What is run.
    pub work: Work,
    /// Whether the caller waits for the end.
    pub mode: ExecutionMode,
    /// After this long the work is stopped and its Outcome is `timed_out`.
    pub timeout: Duration,
    /// Absolute; inside the scope as far as the text of the path tells. The kernel is the wall.
    pub directory: PathBuf,
}

impl CommandPlan {
    /// What is run, on one line that is no longer than people read: a command line, a script, or the steps.
    pub fn in_short(&self) -> String {
        /// Enough to tell one call from another.
        const LONGEST: usize = 120;
        let line = match &self.work {
            Work::Command(command) => command.program.line(),
            Work::Sequence(sequence) => {
                let labels: Vec<&str> = sequence.steps.iter().map(|step| step.label.as_str()).collect();
                Cow::Owned(labels.join(" && "))
            }
        };
        // Only as many words as can be shown: a script may be long.
        let mut short = String::new();
        for word in line.split_whitespace() {
            if short.len() > 4 * LONGEST {
                break;
            }
            if !short.is_empty() {
                short.push(' ');
            }
            short.push_str(word);
        }
        if let Some((cut, _)) = short.char_indices().nth(LONGEST) {
            short.truncate(cut);
            short.push('…');
        }
        short
    }
}

/// One command, or several in order.
#[derive(Debug, Clone)]
pub enum Work {
    Command(Command),
    Sequence(Sequence),
}

/// One process to start.
#[derive(Debug, Clone)]
pub struct Command {
    pub program: Program,
    /// Arguments that the program reads from a file; written before it starts, removed when it has ended.
    pub files: Vec<ArgumentFile>,
    /// Set on top of the sandbox's own allow-list.
    pub environment: BTreeMap<String, String>,
    /// Absolute; searched for programs before PATH.
    pub path_dirs: Vec<PathBuf>,
    /// Exit codes that are not failures; always holds 0.
    pub success_codes: Vec<i32>,
    /// How output becomes progress and findings; none means only lines are shown.
    pub stream: Option<Arc<StreamRules>>,
    /// Shown to the caller after a success.
    pub success_hint: Option<String>,
}

/// A value that is passed as a file: the engine writes `contents` to a private temporary file and puts the path of
/// that file in place of `argv[index]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentFile {
    pub index: usize,
    pub contents: String,
}

/// How a process is described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Executed as it is, one element per argument, no word splitting.
    Argv(Vec<String>),
    /// Text for the shell; only `sandboxed_shell` makes this.
    Script(String),
}

impl Program {
    /// As it would be typed into a shell.
    fn line(&self) -> Cow<'_, str> {
        match self {
            Self::Argv(words) => {
                let quoted = words.iter().map(|word| {
                    // A word with a NUL cannot be typed, and never gets this far.
                    shlex::try_quote(word).unwrap_or(Cow::Borrowed(word))
                });
                Cow::Owned(quoted.collect::<Vec<_>>().join(" "))
            }
            Self::Script(text) => Cow::Borrowed(text),
        }
    }
}

/// Steps that run strictly in order; the first failure ends the sequence.
#[derive(Debug, Clone)]
pub struct Sequence {
    pub steps: Vec<SequenceStep>,
    pub delay: Duration,
}

/// One step, planned before the first step runs.
#[derive(Debug, Clone)]
pub struct SequenceStep {
    /// `tool` or `tool subcommand`, as the tool file names it.
    pub label: String,
    pub description: Option<String>,
    pub command: Command,
    pub skip: Option<SkipCondition>,
}

/// When a step is left out; paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipCondition {
    FileExists(PathBuf),
    FileMissing(PathBuf),
}

/// Whether a call waits for its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionMode {
    Synchronous,
    Asynchronous,
}
