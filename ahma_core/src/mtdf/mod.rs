//! Tool files (MTDF): their form on disk, and validation into types that cannot be wrong.
//!
//! ```text
//! text ─▶ file::ToolFile ─▶ validate ─▶ ToolDef ─▶ check_set (all files together)
//!            │ serde refuses
//!            └─▶ locate + shape: every mistake, with its line
//! ```
//!
//! Nothing here reads a file or knows a clock: callers bring the text. What comes out is used by [`crate::catalog`]
//! (what is offered) and [`crate::call`] (what is run).

mod accept;
mod argument_names;
mod check;
mod file;
mod inherit;
mod locate;
mod name;
mod parameter;
mod problem;
mod schema;
mod set;
mod shape;
mod step_arguments;
mod tool;
mod validate;
mod value;

#[cfg(test)]
mod mtdf_tests;

pub use accept::ArgumentProblem;
pub(crate) use accept::{Given, accept, shell_command};
pub(crate) use argument_names::{plain_name, suggestion};
pub use check::{Checked, check_file};
pub use problem::{Problem, ProblemSeverity};
pub use schema::{schema, schema_text};
pub use set::{SetReport, ToolSource, check_set, check_together, is_tool_file, warning_at};
pub(crate) use step_arguments::{Embedding, bind};
pub use tool::{
    Annotations, AvailabilityCheck, AvailabilityCommand, BUILT_IN_TOOLS, CALL_PARAMETERS, CommandTemplate,
    Dash, ExitCodes, ExitMeaning, FileTool, Form, Leaf, LeafAction, Level, MAX_TIMEOUT_SECONDS,
    META_PARAMETERS, Parameter, READ_ONLY_SHELL_TOOL, ReadyPort, ReadySign, SHELL_TOOL, SequenceTemplate,
    Skip, Slot, StepTemplate, StopSignal, ToolDef, ValueStyle,
};
pub(crate) use value::object;
pub use value::{Range, Scalar, ValueType};
