//! Meta-parameters: the arguments of every tool that steer the call and never reach the command line.

use std::{collections::BTreeMap, time::Duration};

use regex::Regex;
use serde_json::{Map, Value};

use super::plan::{ExecutionMode, Lifetime, Ready};
use crate::{
    mtdf::{
        ArgumentProblem, CALL_PARAMETERS, Leaf, MAX_TIMEOUT_SECONDS, META_PARAMETERS, Range, Scalar,
        ValueType, plain_name,
    },
    observe,
};

/// The meta-parameters of a call.
#[derive(Debug, Default)]
pub(super) struct Meta {
    pub(super) mode: Option<ExecutionMode>,
    pub(super) timeout: Option<Duration>,
    pub(super) directory: Option<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) stdin: Option<String>,
    pub(super) keep_running: Option<bool>,
    pub(super) ready: Option<Regex>,
}

/// Takes the meta-parameters out of `arguments`; `null` counts as not given. `leaf` is the tool that is called: what it
/// takes itself under another spelling of such a name is not meant.
pub(super) fn take(
    arguments: &mut Map<String, Value>,
    leaf: &Leaf,
    problems: &mut Vec<ArgumentProblem>,
) -> Meta {
    let mut meta = Meta::default();
    let for_call = CALL_PARAMETERS.into_iter().filter(|name| leaf.takes(name));
    for name in META_PARAMETERS.into_iter().chain(for_call) {
        let is_own = |key: &str| {
            leaf.parameters()
                .any(|parameter| parameter.names().any(|own| own == key))
        };
        let is_meant = |key: &String| key == name || (plain_name(key) == name && !is_own(key));
        let keys: Vec<String> = arguments.keys().filter(|key| is_meant(key)).cloned().collect();
        let mut given: Vec<(&String, Value)> = keys
            .iter()
            .filter_map(|key| Some((key, arguments.remove(key)?)))
            .filter(|(_, value)| !value.is_null())
            .collect();
        let Some((_, value)) = given.pop() else {
            continue;
        };
        let outcome = match name {
            _ if !given.is_empty() => Err("is given twice, in two spellings".to_owned()),
            "execution_mode" => mode(&value).map(|mode| meta.mode = Some(mode)),
            "timeout_seconds" => timeout(&value).map(|timeout| meta.timeout = Some(timeout)),
            "env" => environment(value).map(|environment| meta.environment = environment),
            "stdin" => text(value).map(|stdin| meta.stdin = Some(stdin)),
            "keep_running" => flag(&value).map(|keep| meta.keep_running = Some(keep)),
            "ready" => pattern(&value).map(|ready| meta.ready = Some(ready)),
            _ => directory(value).map(|directory| meta.directory = Some(directory)),
        };
        if let Err(message) = outcome {
            problems.push(ArgumentProblem::new(name, message));
        }
    }
    meta
}

impl Meta {
    /// The lifetime that the call asks for, or else the tool file: a command with a sign that it is ready keeps running.
    pub(super) fn lifetime(&mut self, of_file: Option<Ready>) -> Lifetime {
        let ready = self.ready.take().map(Ready::Line).or(of_file);
        match self.keep_running {
            Some(false) => Lifetime::Finite,
            None if ready.is_none() => Lifetime::Finite,
            Some(true) | None => Lifetime::KeepsRunning { ready },
        }
    }
}

fn environment(value: Value) -> Result<BTreeMap<String, String>, String> {
    let Value::Object(variables) = value else {
        return Err(format!("must be an object of strings, not {value}"));
    };
    let variable = |(name, value): (String, Value)| match value {
        Value::String(text) => Ok((name, text)),
        Value::Number(number) => Ok((name, number.to_string())),
        Value::Bool(value) => Ok((name, value.to_string())),
        other => Err(format!("`{name}` must be a string, not {other}")),
    };
    let variables = variables.into_iter().map(variable).collect::<Result<_, _>>()?;
    match observe::environment_problems(&variables).into_iter().next() {
        Some(problem) => Err(problem.message),
        None => Ok(variables),
    }
}

fn text(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(format!("must be a string, not {other}")),
    }
}

fn flag(value: &Value) -> Result<bool, String> {
    match value {
        Value::Bool(flag) => Ok(*flag),
        Value::String(text) if text == "true" => Ok(true),
        Value::String(text) if text == "false" => Ok(false),
        other => Err(format!("must be true or false, not {other}")),
    }
}

fn pattern(value: &Value) -> Result<Regex, String> {
    let text = value.as_str().filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| format!("must be a regular expression, not {value}"))?;
    Regex::new(text).map_err(|error| format!("is not a regular expression: {error}"))
}

fn mode(value: &Value) -> Result<ExecutionMode, String> {
    match value.as_str() {
        Some("synchronous" | "Synchronous") => Ok(ExecutionMode::Synchronous),
        Some("asynchronous" | "Asynchronous" | "AsyncResultPush") => Ok(ExecutionMode::Asynchronous),
        _ => Err(format!("must be `synchronous` or `asynchronous`, not {value}")),
    }
}

/// Fractions are taken, too, though the schema offers whole seconds: half a second is a sensible limit for a probe.
fn timeout(value: &Value) -> Result<Duration, String> {
    let number = ValueType::Scalar(Scalar::Number(Range::default()));
    let seconds = number
        .coerce(value)
        .as_f64()
        .filter(|seconds| *seconds > 0.0 && *seconds <= MAX_TIMEOUT_SECONDS as f64);
    match seconds {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err(format!(
            "must be a number of seconds from 1 to {MAX_TIMEOUT_SECONDS} (a week), not {value}"
        )),
    }
}

fn directory(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) if text.contains('\0') => Err("must not contain a NUL character".into()),
        // Some clients send an empty text for what they leave out; relative to the scope it is the scope.
        Value::String(text) => Ok(text),
        other => Err(format!("must be a string, not {other}")),
    }
}
