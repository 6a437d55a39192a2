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
mod check;
mod file;
mod inherit;
mod locate;
mod name;
mod nearest;
mod parameter;
mod problem;
mod schema;
mod set;
mod shape;
pub mod stream;
mod tool;
mod validate;
mod value;

#[cfg(test)]
mod mtdf_tests;

pub use accept::ArgumentProblem;
pub(crate) use accept::{Given, accept, shell_command};
pub use check::{Checked, check_file};
pub(crate) use nearest::nearest;
pub use problem::{Problem, Severity};
pub use schema::{schema, schema_text};
pub use set::{SetReport, Source, check_set, check_together, is_tool_file};
pub use tool::{
    Action, Annotations, BUILT_IN_TOOLS, CommandTemplate, Dash, Form, Leaf, MAX_TIMEOUT_SECONDS,
    META_PARAMETERS, Parameter, Probe, ProbeCommand, SHELL_TOOL, SequenceTemplate, Skip, Slot, StepTemplate,
    ToolDef, ValueStyle,
};
pub use value::{Range, Scalar, ValueType};
