//! Secrets are not recorded. They are recognised by their name and by their form.
//!
//! The output of a command is kept as it was printed.

use std::{borrow::Cow, sync::LazyLock};

use ahma_common::redaction::{REDACTED, is_secret_name, without_credentials};
use regex::Regex;
use serde_json::{Map, Value};

/// Longer texts are cut, such as contents of files.
const MAX_TEXT: usize = 500;

/// Operators want to see commands, so more is kept of the argument with this name.
const COMMAND: &str = "command";
const MAX_COMMAND: usize = 4_000;

/// Bytes of all arguments together.
const MAX_ARGUMENTS: usize = 10_000;

/// Arguments whose values are secrets as likely as not, whatever they are called.
const PRIVATE_ARGUMENTS: [&str; 2] = ["env", "stdin"];

/// The arguments of a call as JSON, without secrets; cheap, because calls wait for it. The forms of secrets are looked
/// for when it is written down.
pub(crate) fn redacted_arguments(arguments: &Map<String, Value>) -> Option<String> {
    if arguments.is_empty() {
        return None;
    }
    let mut text = Value::Object(redacted_fields(arguments)).to_string();
    if text.len() > MAX_ARGUMENTS {
        text.truncate(fitting(&text, MAX_ARGUMENTS).len());
        text.push('…');
    }
    Some(text)
}

fn redacted_fields(fields: &Map<String, Value>) -> Map<String, Value> {
    let redacted = |(name, value): (&String, &Value)| {
        let is_private = PRIVATE_ARGUMENTS.contains(&name.as_str());
        let value = match value {
            // The names of variables describe a call, their values are private.
            Value::Object(variables) if is_private => variables
                .keys()
                .map(|name| (name.clone(), Value::from(REDACTED)))
                .collect(),
            _ if is_private || is_secret_name(name) => Value::from(REDACTED),
            Value::String(text) if name == COMMAND => cut(text, MAX_COMMAND),
            value => shortened(value),
        };
        (name.clone(), value)
    };
    fields.iter().map(redacted).collect()
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) => cut(text, MAX_TEXT),
        Value::Array(items) => items.iter().take(MAX_TEXT).map(shortened).collect(),
        Value::Object(fields) => Value::Object(redacted_fields(fields)),
        value => value.clone(),
    }
}

fn cut(text: &str, max_bytes: usize) -> Value {
    match text.len() > max_bytes {
        true => Value::from(format!("{}…", fitting(text, max_bytes))),
        false => Value::from(text),
    }
}

/// The beginning of a text, at most so many bytes of it.
pub(super) fn fitting(text: &str, max_bytes: usize) -> &str {
    let mut end = max_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// `--password x`, `API_KEY=x`, `"token": "x"`, `X-Api-Key: x`. Of ASCII, as the others.
#[expect(clippy::expect_used, reason = "the pattern is a constant, and a test uses it")]
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)([[:word:]-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|authorization|credential|private[_-]?key)[[:word:]-]*(?:\\?["'])?(?:\s*[=:]\s*|\s+)(?:\\?["'])?)(?:(?:basic|bearer|digest|token)\s+)?[^\s"'\\,;&|]+"#,
    )
    .expect("a valid pattern")
});

/// The text without what looks like a secret.
pub(super) fn without_secrets(text: &str) -> Cow<'_, str> {
    without_credentials(text, &NAMED, "${1}[redacted]")
}

#[cfg(test)]
#[path = "redaction_tests.rs"]
mod tests;
