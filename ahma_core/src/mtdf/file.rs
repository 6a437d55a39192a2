//! A tool file as it stands on disk.
//!
//! These types accept what the JSON says and nothing more: whether it makes sense is decided in `validate`.
//! Their doc comments become the descriptions of `schemas/mtdf.schema.json`, so they speak to authors of tool files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{
    name::{MAX_ARGUMENT_LENGTH, MAX_LENGTH},
    tool::MAX_TIMEOUT_SECONDS,
};
use crate::observe::stream_block::StreamBlock;

/// Defines `ToolFile`, `ToolEntryFile` and `SubcommandFile`: the given fields stand in all of them. A macro, because
/// serde's `flatten` does not go together with `deny_unknown_fields`.
macro_rules! tool_and_subcommand {
    ($($(#[$attribute:meta])* $field:ident: $type:ty,)*) => {
        /// One command-line program, described so that an MCP client can call it, or several in `tools`.
        #[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[schemars(
            title = "MTDF tool file",
            extend("if" = { "required": ["tools"] }, "else" = { "required": ["command", "description"] })
        )]
        pub(super) struct ToolFile {
            /// Address of this schema, for editors.
            #[serde(rename = "$schema")]
            #[expect(dead_code, reason = "for editors")]
            pub(super) schema: Option<String>,
            /// First part of the tool's name; the file name of `command` when left out.
            #[schemars(length(min = 1, max = MAX_LENGTH))]
            pub(super) name: Option<String>,
            /// The program to run, found on PATH. Words after a space are fixed arguments. `sequence` makes this file a sequence.
            #[serde(default, deserialize_with = "not_null")]
            #[schemars(with = "String", length(min = 1))]
            pub(super) command: Option<String>,
            /// Purpose of the tool, for the model that decides whether to call it.
            #[serde(default, deserialize_with = "not_null")]
            #[schemars(with = "String", length(min = 1))]
            pub(super) description: Option<String>,
            /// Several tools in one file. Everything else in the file is then theirs, too, as a parent's is its subcommands'.
            #[serde(default, deserialize_with = "not_null")]
            #[schemars(with = "Vec<ToolEntryFile>", length(min = 1))]
            pub(super) tools: Option<Vec<ToolEntryFile>>,
            $($(#[$attribute])* pub(super) $field: $type,)*
        }

        /// One of several tools in a file.
        #[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(super) struct ToolEntryFile {
            /// First part of the tool's name; the file name of `command` when left out.
            #[schemars(length(min = 1, max = MAX_LENGTH))]
            pub(super) name: Option<String>,
            /// The program to run; that of the file when left out.
            #[schemars(length(min = 1))]
            pub(super) command: Option<String>,
            /// Purpose of the tool, for the model that decides whether to call it.
            #[schemars(length(min = 1))]
            pub(super) description: String,
            $($(#[$attribute])* pub(super) $field: $type,)*
        }

        /// A subcommand: a tool of its own, or a group of further subcommands.
        #[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(super) struct SubcommandFile {
            /// The word on the command line, without underscores. `default` stands for the parent itself.
            #[schemars(length(min = 1, max = MAX_LENGTH))]
            pub(super) name: String,
            /// Purpose of the subcommand, for the model that decides whether to call it.
            #[schemars(length(min = 1))]
            pub(super) description: String,
            $($(#[$attribute])* pub(super) $field: $type,)*
        }

        impl ToolFile {
            /// The tool as the root of its own subcommand tree, still without a name.
            pub(super) fn into_root(self) -> SubcommandFile {
                let description = self.description.unwrap_or_default();
                SubcommandFile { name: String::new(), description, $($field: self.$field,)* }
            }
        }

        impl ToolEntryFile {
            /// As [`ToolFile::into_root`].
            pub(super) fn into_root(self) -> SubcommandFile {
                SubcommandFile { name: String::new(), description: self.description, $($field: self.$field,)* }
            }
        }
    };
}

tool_and_subcommand! {
    /// `false` removes the tool or subcommand from the server: not listed, not checked.
    enabled: Option<bool>,
    /// `extended` keeps the tool out of the list that clients get by default: it is found by `ahma_find`. Overrides the
    /// parent's.
    level: Option<Level>,
    /// The command is stopped after this many seconds, at most a week. Overrides the parent's.
    #[schemars(range(min = 1, max = MAX_TIMEOUT_SECONDS))]
    timeout_seconds: Option<u64>,
    /// `true` makes calls wait for the result; otherwise they return at once and the command continues in the background.
    /// Overrides the parent's.
    synchronous: Option<bool>,
    /// Older spelling of `synchronous`.
    force_synchronous: Option<bool>,
    /// Subcommands, nested to any depth; each leaf becomes a tool of its own.
    #[serde(default)]
    subcommand: Vec<SubcommandFile>,
    /// Options of the command. With subcommands, every leaf accepts them too, and they stand before the subcommand.
    #[serde(default)]
    options: Vec<ParameterFile>,
    /// Arguments without a flag, in the order in which the program takes them.
    #[serde(default)]
    positional_args: Vec<ParameterFile>,
    /// Calls of other tools, in order, instead of a command. A tool file needs `"command": "sequence"` for it.
    #[serde(default)]
    sequence: Vec<StepFile>,
    /// Pause between the steps of a sequence.
    step_delay_ms: Option<u64>,
    /// Check that the program is installed; a subcommand's check runs in addition to its parent's.
    availability_check: Option<AvailabilityFile>,
    /// Shown when the availability check fails.
    install_instructions: Option<String>,
    /// Environment variables for the command, added to the parent's.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Directories of the scope that are searched for programs before PATH, such as `.venv/bin`. Overrides the parent's.
    #[serde(default)]
    path_dirs: Vec<String>,
    /// Exit codes that are not failures, or the meanings of exit codes; 0 is always a success. Overrides the parent's.
    exit_codes: Option<ExitCodesFile>,
    /// Facts a client should know before it calls; each field overrides the parent's.
    #[serde(default)]
    annotations: AnnotationsFile,
    /// The program understands `--` as the end of its options, so arguments may begin with a dash. Overrides the parent's.
    end_of_options: Option<bool>,
    /// The way options pass their values. Overrides the parent's; an option may override it.
    value_style: Option<ValueStyle>,
    /// Sent first when the command is to end, at a timeout or a cancel; TERM and KILL follow. INT when left out.
    /// Overrides the parent's.
    stop_signal: Option<StopSignal>,
    /// Shown to the caller after a success.
    success_hint: Option<String>,
    /// Shown to the caller after a failure.
    failure_hint: Option<String>,
    /// The command keeps running, and is ready for use once a line of its output matches this regular expression, or once
    /// it listens on a port. Overrides the parent's.
    ready: Option<ReadyFile>,
    /// Lists of arguments of which a call may give one only, added to the parent's.
    #[serde(default)]
    exclusive: Vec<Vec<String>>,
    /// Rules that turn output into progress and findings. Overrides the parent's.
    stream: Option<StreamBlock>,
    /// Accepted for compatibility, not used.
    hints: Option<Value>,
    /// Accepted for compatibility, not used.
    guidance_key: Option<String>,
    /// Accepted for compatibility, not used: the schema is made from `options` and `positional_args`.
    input_schema: Option<Value>,
}

/// A field that may be left out, but not be `null`.
fn not_null<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// An option or a positional argument.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ParameterFile {
    /// Name of the argument. An option is passed as `--name`, or as it is when it begins with a dash.
    #[schemars(length(min = 1, max = MAX_ARGUMENT_LENGTH))]
    pub(super) name: String,
    /// Type of the value.
    #[serde(rename = "type")]
    pub(super) kind: TypeFile,
    /// Type of the elements of an array; strings when left out.
    pub(super) items: Option<ItemsFile>,
    /// Meaning of the argument.
    pub(super) description: Option<String>,
    /// A call without the argument is refused.
    pub(super) required: Option<bool>,
    /// `path`: the value must lie inside the sandbox scope. Give it to every argument that names a file.
    pub(super) format: Option<FormatFile>,
    /// Flag to pass in place of `--name`: `m` becomes `-m`. Calls may use it as the argument's name, too.
    #[schemars(length(min = 1, max = MAX_ARGUMENT_LENGTH))]
    pub(super) alias: Option<String>,
    /// More names that calls may use, such as `msg` for `message`. They do not change the flag.
    pub(super) aliases: Option<Vec<String>>,
    /// The values that are allowed.
    #[serde(rename = "enum")]
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub(super) choices: Option<Vec<Value>>,
    /// Used when a call does not give the argument.
    pub(super) default: Option<Value>,
    /// Smallest allowed number.
    pub(super) minimum: Option<f64>,
    /// Largest allowed number.
    pub(super) maximum: Option<f64>,
    /// `false` passes an array after one flag; otherwise the flag is repeated for every element.
    pub(super) repeat: Option<bool>,
    /// The way the option passes its value.
    pub(super) value_style: Option<ValueStyle>,
    /// The value is written to a temporary file, and the path of that file is passed.
    pub(super) file_arg: Option<bool>,
    /// Flag for the path when `file_arg` is set, such as `-F`; the option's own flag when left out.
    pub(super) file_flag: Option<String>,
    /// The value goes to standard input, and nothing of it to the command line.
    pub(super) stdin: Option<bool>,
    /// For positional arguments that are meant for another program, such as `args` of `cargo run`.
    pub(super) passthrough: Option<PassthroughFile>,
}

/// Type of an argument.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum TypeFile {
    #[default]
    String,
    Boolean,
    Integer,
    Number,
    Array,
}

/// Type of the elements of an array.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ItemsFile {
    /// Type of each element.
    #[serde(rename = "type")]
    pub(super) kind: TypeFile,
    /// Meaning of an element.
    #[expect(dead_code, reason = "for readers of the file")]
    pub(super) description: Option<String>,
    /// `path`: every element must lie inside the sandbox scope.
    pub(super) format: Option<FormatFile>,
    /// The values that are allowed.
    #[serde(rename = "enum")]
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub(super) choices: Option<Vec<Value>>,
    /// Smallest allowed number.
    pub(super) minimum: Option<f64>,
    /// Largest allowed number.
    pub(super) maximum: Option<f64>,
}

/// Meaning of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum FormatFile {
    Path,
}

/// Place of a tool in the list that clients get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Listed by default: what the daily work needs.
    #[default]
    Core,
    /// Listed only on request; found by `ahma_find` and called like any other.
    Extended,
}

/// The first signal to a command that is to end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// Test runners and compilers then say where they were.
    #[default]
    Int,
    Term,
    Quit,
    Hup,
    Kill,
}

/// Exit codes that are not failures, or the meanings of exit codes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum ExitCodesFile {
    /// They are successes.
    Successes(Vec<u8>),
    /// By the code.
    Meanings(BTreeMap<String, ExitMeaningFile>),
}

/// Meaning of an exit code.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum ExitMeaningFile {
    Word(ExitWord),
    Failure(ExitFailureFile),
}

/// Meaning of an exit code that is not a failure.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ExitWord {
    Success,
    /// The program has done its work and found something: no failure, but a sequence stops at it.
    Findings,
}

/// A failure with a meaning.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExitFailureFile {
    /// Meaning of the code, such as `the target cannot be reached`.
    pub(super) failure: String,
}

/// The sign that a command which keeps running is ready.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum ReadyFile {
    /// A regular expression for a line of its output.
    Line(String),
    Port(ReadyPortFile),
}

/// A port that a command listens on once it is ready.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadyPortFile {
    /// Its number, or an argument that gives it: `{$port}`.
    pub(super) port: PortFile,
}

/// A port: its number, or an argument that gives it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum PortFile {
    Number(u16),
    Argument(String),
}

/// The way an option passes its value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValueStyle {
    /// `--name value`, but `--name=value` when the value begins with a dash.
    #[default]
    Auto,
    /// Always `--name value`, for programs that take the next argument whatever it is.
    Separate,
    /// Always `--name=value`, or `-nvalue` for a short flag.
    Joined,
}

/// The way positional values reach another program untouched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PassthroughFile {
    /// As they are, even when they begin with a dash: `docker exec CONTAINER ls -la`.
    Verbatim,
    /// After `--`: `cargo run -- --verbose`.
    AfterSeparator,
}

/// Check that a program is installed: a command line, or its parts.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum AvailabilityFile {
    Line(String),
    Parts(AvailabilityParts),
}

/// An availability check, part by part.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AvailabilityParts {
    /// Program to run; when left out, the tool's own command followed by its subcommand.
    pub(super) command: Option<String>,
    /// Arguments of the check.
    #[serde(default)]
    pub(super) args: Vec<String>,
    /// Directory to run it in, relative to the scope.
    pub(super) working_directory: Option<String>,
    /// Exit codes that mean the tool is there; only 0 when left out.
    #[serde(default)]
    pub(super) success_exit_codes: Vec<u8>,
    /// `true` leaves the subcommand out of the check when `command` is left out.
    pub(super) skip_subcommand_args: Option<bool>,
}

/// One step of a sequence.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StepFile {
    /// The tool to call, by its `name`; `sandboxed_shell` is one too.
    pub(super) tool: String,
    /// Its subcommand; nested ones joined by `_`.
    pub(super) subcommand: Option<String>,
    /// Arguments of the call. `{$name}` is an argument of the sequence.
    #[serde(default)]
    pub(super) args: serde_json::Map<String, Value>,
    /// Purpose of the step.
    pub(super) description: Option<String>,
    /// The step is left out when this file exists; relative to the working directory.
    pub(super) skip_if_file_exists: Option<String>,
    /// The step is left out when this file is missing; relative to the working directory.
    pub(super) skip_if_file_missing: Option<String>,
    /// `true`: the steps after this one run even if it fails or has findings. The sequence has failed in the end.
    pub(super) continue_on_failure: Option<bool>,
    /// `true`: the step runs at the same time as the one before it.
    pub(super) parallel: Option<bool>,
}

/// Facts a client should know about a tool before it calls.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnnotationsFile {
    /// A title for people.
    pub(super) title: Option<String>,
    /// The tool changes nothing.
    #[serde(rename = "readOnly")]
    pub(super) read_only: Option<bool>,
    /// The tool may destroy something that cannot be brought back.
    pub(super) destructive: Option<bool>,
    /// A second call with the same arguments changes nothing more.
    pub(super) idempotent: Option<bool>,
    /// The tool talks to the world outside, such as the network.
    #[serde(rename = "openWorld")]
    pub(super) open_world: Option<bool>,
}
