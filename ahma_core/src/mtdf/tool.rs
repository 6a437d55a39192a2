//! A tool that has passed validation: what these types hold makes sense, so nothing later checks it again.
//!
//! The tree of subcommands is gone: a tool is a list of leaves, each with everything that it inherits.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Map, Value};

pub use super::file::ValueStyle;
use super::value::ValueType;
use crate::observe::StreamRules;

/// Names of the tools that the server brings itself; no tool file may take one.
pub const BUILT_IN_TOOLS: [&str; 5] = ["await", "cancel", "output", "sandboxed_shell", "status"];

/// The built-in tool that runs a script; sequences may use it as a step.
pub const SHELL_TOOL: &str = "sandboxed_shell";

/// Arguments of every tool that steer the call and never reach the command line.
pub const META_PARAMETERS: [&str; 3] = ["execution_mode", "timeout_seconds", "working_directory"];

/// The longest time that a command may be given: a week. Longer is a mistake in the unit.
pub const MAX_TIMEOUT_SECONDS: u64 = 7 * 24 * 60 * 60;

/// One valid tool file.
#[derive(Debug, Clone)]
pub struct ToolDef {
    /// The file that it comes from.
    pub file: String,
    /// First part of the names of its leaves.
    pub prefix: String,
    /// In the order of the file.
    pub leaves: Vec<Arc<Leaf>>,
}

/// One callable tool.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// The name that clients call; 1–64 of `A-Za-z0-9_-`.
    pub name: String,
    /// Where in the file it is described, as a JSON pointer.
    pub pointer: String,
    /// Where in the file its name comes from.
    pub name_pointer: String,
    pub description: String,
    pub action: Action,
    /// `None` means that neither the file nor a parent says so.
    pub synchronous: Option<bool>,
    pub timeout: Option<Duration>,
    pub annotations: Annotations,
    /// Disabled leaves are kept so that messages can say so; the catalogue leaves them out.
    pub enabled: bool,
    /// Every check must pass for the leaf to be available.
    pub probes: Vec<Arc<Probe>>,
    pub install_instructions: Option<String>,
}

/// What a leaf does.
#[derive(Debug, Clone)]
pub enum Action {
    Command(CommandTemplate),
    Sequence(SequenceTemplate),
    /// The text of the call goes to the shell; only the built-in shell tool does this.
    Script,
}

/// A command line with gaps.
#[derive(Debug, Clone)]
pub struct CommandTemplate {
    /// In the order of the command line.
    pub slots: Vec<Slot>,
    pub environment: BTreeMap<String, String>,
    /// Below the scope; searched for programs before PATH.
    pub path_dirs: Vec<String>,
    /// Always holds 0.
    pub success_codes: Vec<i32>,
    /// Positionals that begin with a dash may be guarded by `--`.
    pub end_of_options: bool,
    pub stream: Option<Arc<StreamRules>>,
    pub success_hint: Option<String>,
}

/// One place in a command line.
#[derive(Debug, Clone)]
pub enum Slot {
    Word(String),
    Parameter(Arc<Parameter>),
    /// Where the arguments that the stream rules ask for go: after all options, before all positionals.
    StreamArguments,
}

/// An argument that a caller may give.
#[derive(Debug, Clone)]
pub struct Parameter {
    pub name: String,
    /// A second name under which a call may give it.
    pub alias: Option<String>,
    pub description: Option<String>,
    pub value: ValueType,
    pub required: bool,
    /// Fits `value`.
    pub default: Option<Value>,
    pub form: Form,
}

/// How an argument stands on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// The flag before each value, or alone for a boolean that is true.
    Flag(String, ValueStyle),
    /// The flag once, then all elements of an array.
    FlagOnce(String),
    /// The flag, then the path of a file that holds the value.
    File(String),
    Positional(Dash),
}

/// What becomes of positional values that begin with a dash.
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
    pub steps: Vec<StepTemplate>,
    pub delay: Duration,
}

/// One step of a sequence.
#[derive(Debug, Clone)]
pub struct StepTemplate {
    /// Where in the file it stands, as a JSON pointer.
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
}

/// When a step is left out; paths are relative to the working directory of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skip {
    IfFileExists(String),
    IfFileMissing(String),
}

/// How to find out whether a tool is installed. Equal probes need to be made only once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Probe {
    /// By a command that succeeds if it is.
    Run(ProbeCommand),
    /// By a look for its program, where the file names no command.
    Find {
        program: String,
        /// As for the commands of the tool.
        path_dirs: Vec<String>,
    },
}

/// A command that finds out whether a tool is installed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProbeCommand {
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

/// What a client should know before it calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Annotations {
    pub title: Option<String>,
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

impl Leaf {
    /// The arguments that a caller may give, in the order of the command line.
    pub fn parameters(&self) -> impl Iterator<Item = &Arc<Parameter>> {
        let slots = match &self.action {
            Action::Command(template) => template.slots.as_slice(),
            Action::Sequence(_) | Action::Script => &[],
        };
        slots.iter().filter_map(|slot| match slot {
            Slot::Parameter(parameter) => Some(parameter),
            Slot::Word(_) | Slot::StreamArguments => None,
        })
    }
}
