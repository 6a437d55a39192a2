//! Meta-parameters: the arguments of every tool that steer the call and never reach the command line.

use std::time::Duration;

use serde_json::{Map, Value};

use super::plan::ExecutionMode;
use crate::mtdf::{ArgumentProblem, MAX_TIMEOUT_SECONDS, META_PARAMETERS};

/// What a call says about how it should run.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Meta {
    pub(super) mode: Option<ExecutionMode>,
    pub(super) timeout: Option<Duration>,
    pub(super) directory: Option<String>,
}

/// Takes the meta-parameters out of `arguments`; `null` counts as not given.
pub(super) fn take(arguments: &mut Map<String, Value>, problems: &mut Vec<ArgumentProblem>) -> Meta {
    let mut meta = Meta::default();
    for name in META_PARAMETERS {
        let Some(value) = arguments.remove(name).filter(|value| !value.is_null()) else {
            continue;
        };
        let outcome = match name {
            "execution_mode" => mode(&value).map(|mode| meta.mode = Some(mode)),
            "timeout_seconds" => timeout(&value).map(|timeout| meta.timeout = Some(timeout)),
            _ => directory(value).map(|directory| meta.directory = Some(directory)),
        };
        if let Err(message) = outcome {
            problems.push(ArgumentProblem::new(name, message));
        }
    }
    meta
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
    let seconds = value
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
