//! The plan of a call: data only, fully checked, nothing started yet.

use std::{borrow::Cow, collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use ahma_common::words::shorten;
use regex::Regex;
use serde::{Deserialize, Serialize};

pub use crate::mtdf::{ExitCodes, ExitMeaning, StopSignal};
use crate::observe::{CallArguments, StreamRules};

/// Everything the engine needs to know to run one call.
#[derive(Debug, Clone)]
pub struct CommandPlan {
    /// The tool's name as the client knows it.
    pub tool: String,
    /// The work to run.
    pub work: Work,
    /// The way in which the caller waits for the end.
    pub mode: ExecutionMode,
    /// After this long the work is stopped and its Outcome is `timed_out`.
    pub timeout: Duration,
    pub lifetime: Lifetime,
    /// Absolute; inside the scope as far as the text of the path tells. The sandbox enforces it.
    pub directory: PathBuf,
}

impl CommandPlan {
    /// The work on one short line: a command line, a script, or the steps.
    pub fn in_short(&self) -> String {
        /// Enough to tell one call from another.
        const MAX_CHARS: usize = 120;
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
            if short.len() > 4 * MAX_CHARS {
                break;
            }
            if !short.is_empty() {
                short.push(' ');
            }
            short.push_str(word);
        }
        shorten(short, MAX_CHARS)
    }
}

/// One command, or several in order.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "there is one for each operation")]
pub enum Work {
    Command(Command),
    Sequence(Sequence),
}

impl Work {
    /// It runs in the sandbox that only reads.
    pub fn reads_only(&self) -> bool {
        match self {
            Self::Command(command) => matches!(command.program, Program::ReadOnlyScript(_)),
            Self::Sequence(_) => false,
        }
    }
}

/// One process to start.
#[derive(Debug, Clone)]
pub struct Command {
    pub program: Program,
    /// Arguments that the program reads from a file; written before it starts, removed when it has ended.
    pub files: Vec<ArgumentFile>,
    /// Standard input; without it there is none.
    pub stdin: Option<String>,
    /// Set on top of the sandbox's own allow-list.
    pub environment: BTreeMap<String, String>,
    /// Absolute; searched for programs before PATH.
    pub path_dirs: Vec<PathBuf>,
    /// Meanings of its exit codes.
    pub exit_codes: ExitCodes,
    /// Rules that turn output into progress and findings; without them only lines are shown.
    pub stream: Option<Arc<StreamRules>>,
    /// The arguments of the call, for rules that name them.
    pub arguments: CallArguments,
    /// Shown to the caller after a success.
    pub success_hint: Option<String>,
    /// Shown to the caller after a failure.
    pub failure_hint: Option<String>,
    /// Shown to the caller if the program is not there.
    pub install_instructions: Option<String>,
    /// Sent first when it is to end.
    pub stop_signal: StopSignal,
}

impl Command {
    /// A command with no settings of a tool file.
    pub fn new(program: Program) -> Self {
        Self {
            program,
            files: Vec::new(),
            stdin: None,
            environment: BTreeMap::new(),
            path_dirs: Vec::new(),
            exit_codes: ExitCodes::default(),
            stream: None,
            arguments: CallArguments::new(),
            success_hint: None,
            failure_hint: None,
            install_instructions: None,
            stop_signal: StopSignal::default(),
        }
    }
}

/// A value that is passed as a file: the engine writes `contents` to a private temporary file and puts the path of
/// that file in place of `argv[index]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentFile {
    pub index: usize,
    pub contents: String,
}

/// Description of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Executed as it is, one element per argument, no word splitting.
    Argv(Vec<String>),
    /// Text for the shell; only `sandboxed_shell` makes this.
    Script(String),
    /// The same in the sandbox that only reads; only `readonly_shell` makes this.
    ReadOnlyScript(String),
    /// Done by our own code in the confined process; only the file tools make this.
    File(FileRequest),
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
            Self::Script(text) | Self::ReadOnlyScript(text) => Cow::Borrowed(text),
            Self::File(request) => Cow::Owned(request.line()),
        }
    }
}

/// Steps that run in order, or some of them at the same time; the first failure ends the sequence.
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
    /// The others run even if it fails; the sequence has failed in the end.
    pub continue_on_failure: bool,
    /// It runs at the same time as the one before it.
    pub parallel: bool,
}

/// Condition for leaving out a step; paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipCondition {
    FileExists(PathBuf),
    FileMissing(PathBuf),
}

/// Time that an operation is meant to run.
#[derive(Debug, Clone, Default)]
pub enum Lifetime {
    /// Until it has done its work.
    #[default]
    Finite,
    /// Until it is cancelled, such as a server. It is not waited for, and has no timeout unless the call names one.
    KeepsRunning {
        /// The sign that it is ready for use.
        ready: Option<Ready>,
    },
}

impl Lifetime {
    /// The sign that it is ready for use, if there is one.
    pub fn ready(&self) -> Option<&Ready> {
        match self {
            Self::KeepsRunning { ready } => ready.as_ref(),
            Self::Finite => None,
        }
    }
}

/// The sign that something which keeps running is ready for use.
#[derive(Debug, Clone)]
pub enum Ready {
    /// A line of output matches.
    Line(Regex),
    /// A connection to this port of the machine is accepted.
    Port(u16),
}

/// The way in which a call waits for its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionMode {
    Synchronous,
    /// For a moment; what takes longer goes on in the background.
    Inline,
    Asynchronous,
}

/// One call of a file tool, carried out by `files` in a confined process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum FileRequest {
    Read(ReadRequest),
    Write { path: PathBuf, content: String },
    Edit { path: PathBuf, edits: Vec<TextEdit> },
    Patch { patch: String },
}

/// Lines of one or several files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadRequest {
    pub paths: Vec<PathBuf>,
    /// First line shown, counted from 1.
    pub from_line: usize,
    pub max_lines: usize,
    /// Bytes of text for all paths together.
    pub max_bytes: usize,
}

/// One replacement in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextEdit {
    #[serde(alias = "old_string", alias = "old_str")]
    pub old: String,
    #[serde(alias = "new_string", alias = "new_str")]
    pub new: String,
    /// Replaces every occurrence; otherwise `old` must be unique.
    #[serde(default, alias = "replace_all")]
    pub all: bool,
}

impl FileRequest {
    /// The request on one line, without contents.
    fn line(&self) -> String {
        match self {
            Self::Read(request) => {
                let paths: Vec<_> = request.paths.iter().map(|path| path.to_string_lossy()).collect();
                format!("file_read {}", paths.join(" "))
            }
            Self::Write { path, .. } => format!("file_write {}", path.display()),
            Self::Edit { path, .. } => format!("file_edit {}", path.display()),
            Self::Patch { .. } => "file_patch".into(),
        }
    }
}
