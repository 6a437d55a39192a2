//! The reasons why a call cannot be planned.

use std::fmt;

use crate::mtdf::ArgumentProblem;

/// The call is at fault; nothing was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    UnknownTool {
        name: String,
        /// Names that the caller may have meant, best first.
        nearest: Vec<String>,
    },
    /// Everything that is wrong with the arguments; never empty.
    Invalid {
        tool: String,
        problems: Vec<ArgumentProblem>,
    },
    /// A step of the sequence calls a tool that is not there, for instance because it is not installed.
    MissingStep { tool: String, step: String },
}

impl std::error::Error for CallError {}

impl fmt::Display for CallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTool { name, nearest } if nearest.is_empty() => {
                write!(formatter, "no tool is called `{name}`")
            }
            Self::UnknownTool { name, nearest } => {
                write!(
                    formatter,
                    "no tool is called `{name}`; did you mean `{}`?",
                    nearest.join("`, `")
                )
            }
            Self::Invalid { tool, problems } => {
                write!(formatter, "the arguments of `{tool}` are not valid:")?;
                problems
                    .iter()
                    .try_for_each(|problem| write!(formatter, "\n- {problem}"))
            }
            Self::MissingStep { tool, step } => {
                write!(
                    formatter,
                    "the sequence `{tool}` needs the tool `{step}`, which is not available"
                )
            }
        }
    }
}
