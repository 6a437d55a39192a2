//! A tool file as it stands on disk.
//!
//! These types accept what the JSON says and nothing more: whether it makes sense is decided in `validate`.
//! Their doc comments become the descriptions of `schemas/mtdf.schema.json`, so they speak to authors of tool files.
//! A tool and a subcommand have most fields in common, but not what the fields say to authors, and serde's `flatten` does
//! not go together with `deny_unknown_fields`: so the fields stand in both.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    name::{MAX_ARGUMENT_LENGTH, MAX_LENGTH},
    stream::StreamBlock,
    tool::MAX_TIMEOUT_SECONDS,
};

/// One command-line program, described so that an MCP client can call it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "MTDF tool file")]
pub(super) struct ToolFile {
    /// Address of this schema, for editors.
    #[serde(rename = "$schema", default)]
    #[expect(dead_code, reason = "for editors")]
    pub(super) schema: Option<String>,
    /// First part of the tool's name; the file name of `command` when left out.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_LENGTH))]
    pub(super) name: Option<String>,
    /// What the tool does, for the model that decides whether to call it.
    #[schemars(length(min = 1))]
    pub(super) description: String,
    /// The program to run, found on PATH. Words after a space are fixed arguments. `sequence` makes this file a sequence.
    #[schemars(length(min = 1))]
    pub(super) command: String,
    /// `false` takes the tool out of the server: not listed, not probed.
    #[serde(default)]
    pub(super) enabled: Option<bool>,
    /// After this many seconds, at most a week, the command is stopped.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_TIMEOUT_SECONDS))]
    pub(super) timeout_seconds: Option<u64>,
    /// `true` makes calls wait for the result; otherwise they return at once and the command goes on in the background.
    #[serde(default)]
    pub(super) synchronous: Option<bool>,
    /// Older spelling of `synchronous`.
    #[serde(default)]
    pub(super) force_synchronous: Option<bool>,
    /// Subcommands; each leaf becomes a tool of its own.
    #[serde(default)]
    pub(super) subcommand: Vec<SubcommandFile>,
    /// Options of the command. With subcommands, every leaf accepts them too, and they stand before the subcommand.
    #[serde(default)]
    pub(super) options: Vec<ParameterFile>,
    /// Arguments without a flag, in the order in which the program takes them.
    #[serde(default)]
    pub(super) positional_args: Vec<ParameterFile>,
    /// Calls of other tools, in order; needs `"command": "sequence"`.
    #[serde(default)]
    pub(super) sequence: Vec<StepFile>,
    /// Pause between the steps of a sequence.
    #[serde(default)]
    pub(super) step_delay_ms: Option<u64>,
    /// How to find out whether the program is installed.
    #[serde(default)]
    pub(super) availability_check: Option<AvailabilityFile>,
    /// Shown when the availability check fails.
    #[serde(default)]
    pub(super) install_instructions: Option<String>,
    /// Environment variables for the command.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// Directories of the scope that are searched for programs before PATH, such as `.venv/bin`.
    #[serde(default)]
    pub(super) path_dirs: Vec<String>,
    /// Exit codes that are not failures; 0 never is.
    #[serde(default)]
    pub(super) exit_codes: Vec<u8>,
    /// What a client should know before it calls.
    #[serde(default)]
    pub(super) annotations: AnnotationsFile,
    /// The program understands `--` as the end of its options, so arguments may begin with a dash.
    #[serde(default)]
    pub(super) end_of_options: Option<bool>,
    /// How options pass their values; an option may say otherwise.
    #[serde(default)]
    pub(super) value_style: Option<ValueStyle>,
    /// Shown to the caller after a success.
    #[serde(default)]
    pub(super) success_hint: Option<String>,
    /// How output becomes progress and findings.
    #[serde(default)]
    pub(super) stream: Option<StreamBlock>,
    /// Accepted for compatibility, not used.
    #[serde(default)]
    pub(super) hints: Option<Value>,
    /// Accepted for compatibility, not used.
    #[serde(default)]
    pub(super) guidance_key: Option<String>,
    /// Accepted for compatibility, not used: the schema is made from `options` and `positional_args`.
    #[serde(default)]
    pub(super) input_schema: Option<Value>,
}

/// A subcommand: a tool of its own, or a group of further subcommands.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubcommandFile {
    /// The word on the command line, without underscores. `default` stands for the parent itself.
    #[schemars(length(min = 1, max = MAX_LENGTH))]
    pub(super) name: String,
    /// What the subcommand does, for the model that decides whether to call it.
    #[schemars(length(min = 1))]
    pub(super) description: String,
    /// `false` takes the subcommand out of the server.
    #[serde(default)]
    pub(super) enabled: Option<bool>,
    /// After this many seconds, at most a week, the command is stopped.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_TIMEOUT_SECONDS))]
    pub(super) timeout_seconds: Option<u64>,
    /// Overrides the parent's `synchronous`.
    #[serde(default)]
    pub(super) synchronous: Option<bool>,
    /// Older spelling of `synchronous`.
    #[serde(default)]
    pub(super) force_synchronous: Option<bool>,
    /// Nested subcommands, to any depth.
    #[serde(default)]
    pub(super) subcommand: Vec<SubcommandFile>,
    /// Options of the subcommand.
    #[serde(default)]
    pub(super) options: Vec<ParameterFile>,
    /// Arguments without a flag, in the order in which the program takes them.
    #[serde(default)]
    pub(super) positional_args: Vec<ParameterFile>,
    /// Calls of other tools, in order, in place of a command.
    #[serde(default)]
    pub(super) sequence: Vec<StepFile>,
    /// Pause between the steps of a sequence.
    #[serde(default)]
    pub(super) step_delay_ms: Option<u64>,
    /// How to find out whether the subcommand is installed; asked in addition to the parent's.
    #[serde(default)]
    pub(super) availability_check: Option<AvailabilityFile>,
    /// Shown when the availability check fails.
    #[serde(default)]
    pub(super) install_instructions: Option<String>,
    /// Environment variables, on top of the parent's.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// Directories of the scope that are searched for programs before PATH; in place of the parent's.
    #[serde(default)]
    pub(super) path_dirs: Vec<String>,
    /// Exit codes that are not failures; in place of the parent's.
    #[serde(default)]
    pub(super) exit_codes: Vec<u8>,
    /// What a client should know before it calls; each field overrides the parent's.
    #[serde(default)]
    pub(super) annotations: AnnotationsFile,
    /// Overrides the parent's `end_of_options`.
    #[serde(default)]
    pub(super) end_of_options: Option<bool>,
    /// Overrides the parent's `value_style`.
    #[serde(default)]
    pub(super) value_style: Option<ValueStyle>,
    /// Shown to the caller after a success.
    #[serde(default)]
    pub(super) success_hint: Option<String>,
    /// How output becomes progress and findings; in place of the parent's.
    #[serde(default)]
    pub(super) stream: Option<StreamBlock>,
    /// Accepted for compatibility, not used.
    #[serde(default)]
    pub(super) hints: Option<Value>,
    /// Accepted for compatibility, not used.
    #[serde(default)]
    pub(super) guidance_key: Option<String>,
    /// Accepted for compatibility, not used.
    #[serde(default)]
    pub(super) input_schema: Option<Value>,
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
    #[serde(default)]
    pub(super) items: Option<ItemsFile>,
    /// What the argument means.
    #[serde(default)]
    pub(super) description: Option<String>,
    /// A call without the argument is refused.
    #[serde(default)]
    pub(super) required: Option<bool>,
    /// `path`: the value must lie inside the sandbox scope. Give it to every argument that names a file.
    #[serde(default)]
    pub(super) format: Option<FormatFile>,
    /// Flag to pass in place of `--name`: `m` becomes `-m`. Calls may use it as the argument's name, too.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_ARGUMENT_LENGTH))]
    pub(super) alias: Option<String>,
    /// The values that are allowed.
    #[serde(rename = "enum", default)]
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub(super) choices: Option<Vec<Value>>,
    /// Used when a call does not give the argument.
    #[serde(default)]
    pub(super) default: Option<Value>,
    /// Smallest allowed number.
    #[serde(default)]
    pub(super) minimum: Option<f64>,
    /// Largest allowed number.
    #[serde(default)]
    pub(super) maximum: Option<f64>,
    /// `false` passes an array after one flag; otherwise the flag is repeated for every element.
    #[serde(default)]
    pub(super) repeat: Option<bool>,
    /// How the option passes its value.
    #[serde(default)]
    pub(super) value_style: Option<ValueStyle>,
    /// The value is written to a temporary file, and the path of that file is passed.
    #[serde(default)]
    pub(super) file_arg: Option<bool>,
    /// Flag for the path when `file_arg` is set, such as `-F`; the option's own flag when left out.
    #[serde(default)]
    pub(super) file_flag: Option<String>,
    /// For positional arguments that are meant for another program, such as `args` of `cargo run`.
    #[serde(default)]
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
    /// What an element means.
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the file")]
    pub(super) description: Option<String>,
    /// `path`: every element must lie inside the sandbox scope.
    #[serde(default)]
    pub(super) format: Option<FormatFile>,
    /// The values that are allowed.
    #[serde(rename = "enum", default)]
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub(super) choices: Option<Vec<Value>>,
    /// Smallest allowed number.
    #[serde(default)]
    pub(super) minimum: Option<f64>,
    /// Largest allowed number.
    #[serde(default)]
    pub(super) maximum: Option<f64>,
}

/// What a string stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum FormatFile {
    Path,
}

/// How an option passes its value.
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

/// How positional values reach another program untouched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PassthroughFile {
    /// As they are, even when they begin with a dash: `docker exec CONTAINER ls -la`.
    Verbatim,
    /// After `--`: `cargo run -- --verbose`.
    AfterSeparator,
}

/// How to find out whether a program is installed: a command line, or its parts.
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
    #[serde(default)]
    pub(super) command: Option<String>,
    /// Arguments of the check.
    #[serde(default)]
    pub(super) args: Vec<String>,
    /// Where to run it, relative to the scope.
    #[serde(default)]
    pub(super) working_directory: Option<String>,
    /// Exit codes that mean the tool is there; only 0 when left out.
    #[serde(default)]
    pub(super) success_exit_codes: Vec<u8>,
    /// `true` leaves the subcommand out of the check when `command` is left out.
    #[serde(default)]
    pub(super) skip_subcommand_args: Option<bool>,
}

/// One step of a sequence.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StepFile {
    /// The tool to call, by its `name`; `sandboxed_shell` is one too.
    pub(super) tool: String,
    /// Its subcommand; nested ones joined by `_`.
    #[serde(default)]
    pub(super) subcommand: Option<String>,
    /// Arguments of the call.
    #[serde(default)]
    pub(super) args: serde_json::Map<String, Value>,
    /// What the step is for.
    #[serde(default)]
    pub(super) description: Option<String>,
    /// The step is left out when this file exists; relative to the working directory.
    #[serde(default)]
    pub(super) skip_if_file_exists: Option<String>,
    /// The step is left out when this file is missing; relative to the working directory.
    #[serde(default)]
    pub(super) skip_if_file_missing: Option<String>,
}

/// What a client should know about a tool before it calls.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnnotationsFile {
    /// A title for people.
    #[serde(default)]
    pub(super) title: Option<String>,
    /// The tool changes nothing.
    #[serde(rename = "readOnly", default)]
    pub(super) read_only: Option<bool>,
    /// The tool may destroy something that cannot be brought back.
    #[serde(default)]
    pub(super) destructive: Option<bool>,
    /// A second call with the same arguments changes nothing more.
    #[serde(default)]
    pub(super) idempotent: Option<bool>,
    /// The tool talks to the world outside, such as the network.
    #[serde(rename = "openWorld", default)]
    pub(super) open_world: Option<bool>,
}

impl ToolFile {
    /// The tool as the root of its own subcommand tree, under the given name.
    pub(super) fn into_root(self, name: String) -> SubcommandFile {
        SubcommandFile {
            name,
            description: self.description,
            enabled: self.enabled,
            timeout_seconds: self.timeout_seconds,
            synchronous: self.synchronous,
            force_synchronous: self.force_synchronous,
            subcommand: self.subcommand,
            options: self.options,
            positional_args: self.positional_args,
            sequence: self.sequence,
            step_delay_ms: self.step_delay_ms,
            availability_check: self.availability_check,
            install_instructions: self.install_instructions,
            env: self.env,
            path_dirs: self.path_dirs,
            exit_codes: self.exit_codes,
            annotations: self.annotations,
            end_of_options: self.end_of_options,
            value_style: self.value_style,
            success_hint: self.success_hint,
            stream: self.stream,
            hints: self.hints,
            guidance_key: self.guidance_key,
            input_schema: self.input_schema,
        }
    }
}
