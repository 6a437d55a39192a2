//! From a call's arguments to the plan of what will run.
//!
//! [`plan`] decides everything and does nothing: no file is opened, no process started. It lists every mistake of a
//! call, not just the first, and no argument can become more than one element of the command line.

mod arguments;
mod error;
mod file_arguments;
mod meta;
mod named_arguments;
mod no_input;
mod paths;
mod plan;
mod planner;

#[cfg(test)]
mod call_tests;

pub use error::CallError;
pub(crate) use named_arguments::NamedArguments;
pub use no_input::read_nothing;
pub(crate) use paths::{normalise, outside};
pub use plan::{
    ArgumentFile, Command, CommandPlan, ExecutionMode, ExitCodes, ExitMeaning, FileRequest, Lifetime,
    Program, ReadRequest, Ready, Sequence, SequenceStep, SkipCondition, StopSignal, TextEdit, Work,
};
pub use planner::{PlanSettings, ToolCall, plan, working_directory};

pub use crate::mtdf::ArgumentProblem;
