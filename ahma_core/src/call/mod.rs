//! From a call's arguments to the plan of what will run.

mod plan;

pub use plan::{Command, CommandPlan, ExecutionMode, Program, Sequence, SequenceStep, SkipCondition, Work};
