//! A tool that has passed validation: what these types hold makes sense, so nothing later checks it again.
//!
//! The tree of subcommands is gone: a tool is a list of leaves, each with everything that it inherits.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use regex::Regex;
use serde_json::{Map, Value};

pub use super::file::{Level, StopSignal, ValueStyle};
use super::value::ValueType;
use crate::observe::StreamRules;

/// Names of the tools that the server brings itself; no tool file may take one.
pub const BUILT_IN_TOOLS: [&str; 12] = [
    "ahma_call",
    "ahma_find",
    "await",
    "cancel",
    "file_edit",
    "file_patch",
    "file_read",
    "file_write",
    "output",
    "readonly_shell",
    "sandboxed_shell",
    "status",
];

/// The built-in tool that runs a script; sequences may use it as a step.
pub const SHELL_TOOL: &str = "sandboxed_shell";

/// The built-in tool that runs a script which cannot change anything.
pub const READ_ONLY_SHELL_TOOL: &str = "readonly_shell";

/// Arguments of every tool that steer the call and never reach the command line.
pub const META_PARAMETERS: [&str; 3] = ["execution_mode", "timeout_seconds", "working_directory"];

/// Arguments that steer a call of every tool which has no argument of that name itself.
pub const CALL_PARAMETERS: [&str; 4] = ["env", "keep_running", "ready", "stdin"];

/// The longest time that a command may be given: a week. Longer is a mistake in the unit.
pub const MAX_TIMEOUT_SECONDS: u64 = 7 * 24 * 60 * 60;

/// One valid tool file.
#[derive(Debug, Clone)]
pub struct ToolDef {
    /// The file that it comes from.
    pub file: String,
    /// In the order of the file.
    pub leaves: Vec<Arc<Leaf>>,
}

/// One callable tool.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// The name that clients call; 1–64 of `A-Za-z0-9_-`.
    pub name: String,
    /// JSON pointer to its description in the file.
    pub pointer: String,
    /// JSON pointer to the origin of its name.
    pub name_pointer: String,
    pub description: String,
    pub action: LeafAction,
    pub level: Level,
    /// `None` means that neither the file nor a parent says so.
    pub synchronous: Option<bool>,
    pub timeout: Option<Duration>,
    pub annotations: Annotations,
    /// Disabled leaves are kept so that messages can say so; the catalogue leaves them out.
    pub enabled: bool,
    /// Every check must pass for the leaf to be available.
    pub probes: Vec<Arc<AvailabilityCheck>>,
    pub install_instructions: Option<String>,
}

/// Action of a leaf.
#[derive(Debug, Clone)]
pub enum LeafAction {
    Command(CommandTemplate),
    Sequence(SequenceTemplate),
    /// The text of the call goes to the shell; only the built-in shell tool does this.
    Script,
    /// The same in the sandbox that only reads.
    ReadOnlyScript,
    /// The call reads or changes files in a confined process; only the built-in file tools do this.
    File(FileTool),
}

/// One of the built-in tools for files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileTool {
    Read,
    Write,
    Edit,
    Patch,
}

/// A command line with gaps.
#[derive(Debug, Clone)]
pub struct CommandTemplate {
    /// In the order of the command line.
    pub slots: Vec<Slot>,
    pub environment: BTreeMap<String, String>,
    /// Below the scope; searched for programs before PATH.
    pub path_dirs: Vec<String>,
    pub exit_codes: ExitCodes,
    /// Positionals that begin with a dash may be guarded by `--`.
    pub end_of_options: bool,
    pub stream: Option<Arc<StreamRules>>,
    pub success_hint: Option<String>,
    pub failure_hint: Option<String>,
    pub stop_signal: StopSignal,
    /// There if the command keeps running.
    pub ready: Option<ReadySign>,
    /// Names of parameters of which a call may give one only.
    pub exclusive: Vec<Vec<String>>,
}

/// The sign that a command which keeps running is ready.
#[derive(Debug, Clone)]
pub enum ReadySign {
    /// A line of its output matches.
    Line(Regex),
    /// It listens on a port.
    Port(ReadyPort),
}

/// A port that a command listens on once it is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadyPort {
    Number(u16),
    /// The parameter that gives it.
    Argument(String),
}

/// One place in a command line.
#[derive(Debug, Clone)]
pub enum Slot {
    Word(String),
    Parameter(Arc<Parameter>),
    /// Place for the arguments that the stream rules add: after all options, before all positionals.
    StreamArguments,
}

impl Slot {
    pub(super) fn parameter(&self) -> Option<&Arc<Parameter>> {
        match self {
            Self::Parameter(parameter) => Some(parameter),
            Self::Word(_) | Self::StreamArguments => None,
        }
    }
}

/// An argument that a caller may give.
#[derive(Debug, Clone)]
pub struct Parameter {
    pub name: String,
    /// A second name under which a call may give it.
    pub alias: Option<String>,
    /// More names of that kind, which say nothing about the flag.
    pub aliases: Vec<String>,
    pub description: Option<String>,
    pub value: ValueType,
    pub required: bool,
    /// Fits `value`.
    pub default: Option<Value>,
    pub form: Form,
}

/// Form of an argument on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// The flag before each value, or alone for a boolean that is true.
    Flag(String, ValueStyle),
    /// The flag once, then all elements of an array.
    FlagOnce(String),
    /// The flag, then the path of a file that holds the value.
    File(String),
    /// The value is the standard input.
    Stdin,
    Positional(Dash),
}

/// Treatment of positional values that begin with a dash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dash {
    /// Guarded by `--` if the command allows that, else refused.
    Guarded,
    /// They are for another program: passed as they are.
    Verbatim,
    /// They are for another program, and stand after a `--`.
    AfterSeparator,
}

/// Calls of other tools, in order.
#[derive(Debug, Clone)]
pub struct SequenceTemplate {
    /// Arguments of its own, which its steps refer to.
    pub parameters: Vec<Arc<Parameter>>,
    pub steps: Vec<StepTemplate>,
    pub delay: Duration,
}

/// One step of a sequence.
#[derive(Debug, Clone)]
pub struct StepTemplate {
    /// JSON pointer to it in the file.
    pub pointer: String,
    /// The first part of `target`, as the file names it.
    pub tool: String,
    /// As people read it: `cargo build`.
    pub label: String,
    /// Full name of the leaf that it calls.
    pub target: String,
    pub arguments: Map<String, Value>,
    pub description: Option<String>,
    pub skip: Option<Skip>,
    /// The others run even if it fails.
    pub continue_on_failure: bool,
    /// It runs at the same time as the one before it.
    pub parallel: bool,
}

/// Condition for leaving out a step; paths are relative to the working directory of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skip {
    IfFileExists(String),
    IfFileMissing(String),
}

/// Check that a tool is installed. Equal checks need to run only once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AvailabilityCheck {
    /// By a command that succeeds if it is.
    Run(AvailabilityCommand),
    /// By a look for its program, where the file names no command.
    Find {
        program: String,
        /// As for the commands of the tool.
        path_dirs: Vec<String>,
    },
}

impl AvailabilityCheck {
    /// The command to run, if the file names one.
    pub(crate) fn command(&self) -> Option<&AvailabilityCommand> {
        match self {
            Self::Run(command) => Some(command),
            Self::Find { .. } => None,
        }
    }
}

/// A command that finds out whether a tool is installed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AvailabilityCommand {
    /// Never empty.
    pub argv: Vec<String>,
    /// As for the commands of the tool.
    pub path_dirs: Vec<String>,
    /// As for the commands of the tool.
    pub environment: BTreeMap<String, String>,
    /// Relative to the scope; the scope itself when `None`.
    pub directory: Option<String>,
    /// Never empty.
    pub success_codes: Vec<i32>,
}

/// Facts a client should know before it calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Annotations {
    pub title: Option<String>,
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

impl Parameter {
    /// Every name under which a call may give it.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let aliases = self.alias.iter().chain(&self.aliases);
        std::iter::once(&self.name).chain(aliases).map(String::as_str)
    }
}

impl Leaf {
    /// One of [`CALL_PARAMETERS`] steers the call, and is not an argument of the tool itself.
    pub(crate) fn takes(&self, name: &str) -> bool {
        let is_own = self
            .parameters()
            .any(|parameter| parameter.names().any(|own| own == name));
        let is_fed = name == "stdin" && self.parameters().any(|parameter| parameter.form == Form::Stdin);
        !matches!(self.action, LeafAction::File(_)) && !is_own && !is_fed
    }

    /// The arguments that a caller may give, in the order of the command line.
    pub fn parameters(&self) -> impl Iterator<Item = &Arc<Parameter>> {
        let (slots, own): (&[Slot], &[Arc<Parameter>]) = match &self.action {
            LeafAction::Command(template) => (&template.slots, &[]),
            LeafAction::Sequence(sequence) => (&[], &sequence.parameters),
            LeafAction::Script | LeafAction::ReadOnlyScript | LeafAction::File(_) => (&[], &[]),
        };
        slots.iter().filter_map(Slot::parameter).chain(own)
    }
}

/// Meanings that a tool file gives to exit codes. 0 is a success, and a code that it does not name is a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitCodes {
    named: BTreeMap<i32, ExitMeaning>,
}

/// Meaning of an exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitMeaning {
    Success,
    /// The program has done its work and found something: no failure, but a sequence stops at it.
    Findings,
    /// A failure, and what it says.
    Failure(String),
}

impl ExitCodes {
    pub fn new(named: impl IntoIterator<Item = (i32, ExitMeaning)>) -> Self {
        Self {
            named: named.into_iter().collect(),
        }
    }

    /// The meaning of a code; none if it is a failure like any other.
    pub fn meaning(&self, code: i32) -> Option<&ExitMeaning> {
        match code {
            0 => Some(&ExitMeaning::Success),
            code => self.named.get(&code),
        }
    }
}
