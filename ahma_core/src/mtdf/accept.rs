//! Whether the arguments of a call fit the parameters of a tool.
//!
//! Meta-parameters are not known here: a caller takes them out first.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};

use super::{
    nearest::nearest,
    tool::Parameter,
    value::{Scalar, ValueType, listed},
};

/// One thing that is wrong with the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentProblem {
    pub argument: String,
    pub message: String,
}

impl ArgumentProblem {
    pub(crate) fn new(argument: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            argument: argument.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` {}", self.argument, self.message)
    }
}

/// What a call says about one parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Given<'a> {
    /// It, or its default.
    Value(&'a Value),
    Nothing,
    /// It is among the problems, and there is no value to go on with.
    Wrong,
}

/// What is said about each parameter, in the order of the parameters, and everything that is wrong.
/// `null` counts as not given, because many clients send it for what they leave out. `besides` are names that stand for
/// something else where the arguments come from.
pub(crate) fn accept<'a>(
    parameters: impl Iterator<Item = &'a Arc<Parameter>>,
    arguments: &'a Map<String, Value>,
    besides: &[&str],
) -> (Vec<Given<'a>>, Vec<ArgumentProblem>) {
    let parameters: Vec<&Arc<Parameter>> = parameters.collect();
    let mut problems = Vec::new();
    let mut values = Vec::with_capacity(parameters.len());
    for parameter in &parameters {
        let problems_before = problems.len();
        let given = |name: &str| arguments.get(name).filter(|value| !value.is_null());
        let by_alias = parameter.alias.as_deref().and_then(given);
        let value = match (given(&parameter.name), by_alias) {
            (Some(_), Some(_)) => {
                let alias = parameter.alias.as_deref().unwrap_or_default();
                problems.push(ArgumentProblem::new(
                    &parameter.name,
                    format!("is given twice, also as `{alias}`"),
                ));
                None
            }
            (by_name, by_alias) => by_name.or(by_alias),
        };
        if let Some(value) = value {
            let objections = parameter.value.objections(value).into_iter();
            problems.extend(objections.map(|objection| ArgumentProblem::new(&parameter.name, objection)));
            if parameter.required && value.as_array().is_some_and(Vec::is_empty) {
                problems.push(ArgumentProblem::new(&parameter.name, "must not be empty"));
            }
        } else if parameter.required && by_alias.is_none() {
            problems.push(ArgumentProblem::new(&parameter.name, "is required"));
        }
        values.push(match value.or(parameter.default.as_ref()) {
            _ if problems.len() > problems_before => Given::Wrong,
            Some(value) => Given::Value(value),
            None => Given::Nothing,
        });
    }
    let known = |name: &str| {
        parameters
            .iter()
            .any(|parameter| parameter.name == name || parameter.alias.as_deref() == Some(name))
    };
    for name in arguments.keys().filter(|name| !known(name)) {
        let names: Vec<&str> = parameters
            .iter()
            .map(|parameter| parameter.name.as_str())
            .collect();
        let near = nearest(name, names.iter().copied()).first().copied();
        let message = match near.or_else(|| meant(name, besides)) {
            Some(near) => format!("is not an argument of this tool; did you mean `{near}`?"),
            None if names.is_empty() => "is not an argument of this tool, which takes none".into(),
            None => format!("is not an argument of this tool; it takes {}", listed(&names)),
        };
        problems.push(ArgumentProblem::new(name, message));
    }
    (values, problems)
}

/// What is meant by a name that other agents' tools have.
fn meant(name: &str, besides: &[&str]) -> Option<&'static str> {
    let meant = match name {
        "cwd" | "dir" | "directory" | "workdir" | "working_dir" => "working_directory",
        "timeout" | "timeout_ms" | "timeoutMs" => "timeout_seconds",
        "background" | "run_in_background" | "async" => "execution_mode",
        _ => return None,
    };
    besides.contains(&meant).then_some(meant)
}

/// The script in the arguments of the built-in shell tool. `besides` is as for [`accept`].
pub(crate) fn shell_command(
    arguments: &Map<String, Value>,
    besides: &[&str],
) -> Result<String, Vec<ArgumentProblem>> {
    let script = ValueType::Scalar(Scalar::String { choices: Vec::new() });
    let mut problems = Vec::new();
    match arguments.get("command").filter(|value| !value.is_null()) {
        Some(value) => {
            let objections = script.objections(value).into_iter();
            problems.extend(objections.map(|objection| ArgumentProblem::new("command", objection)));
            if value.as_str().is_some_and(|script| script.trim().is_empty()) {
                problems.push(ArgumentProblem::new("command", "must not be empty"));
            }
        }
        None => problems.push(ArgumentProblem::new("command", "is required")),
    }
    for name in arguments.keys().filter(|name| *name != "command") {
        let message = match meant(name, besides) {
            Some(meant) => format!("is not an argument of this tool; did you mean `{meant}`?"),
            None => "is not an argument of this tool; the script goes into `command`".to_owned(),
        };
        problems.push(ArgumentProblem::new(name, message));
    }
    match arguments.get("command").and_then(Value::as_str) {
        Some(script) if problems.is_empty() => Ok(script.to_owned()),
        _ => Err(problems),
    }
}
