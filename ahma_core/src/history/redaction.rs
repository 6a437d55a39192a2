//! Secrets are not written down: they are known by the name they stand under, and by their form.
//!
//! The output of a command is kept as it was printed.

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;
use serde_json::{Map, Value};

const REDACTED: &str = "[redacted]";

/// Longer texts are cut: contents of files, scripts.
const MAX_TEXT: usize = 500;

/// Characters of all arguments together.
const MAX_ARGUMENTS: usize = 4_000;

/// Arguments whose values are secrets as likely as not, whatever they are called.
const PRIVATE_ARGUMENTS: [&str; 2] = ["env", "stdin"];

/// Parts of names that mean a secret.
const SECRET_NAMES: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
];

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
            // The names of variables tell what a call was like, their values are nobody's business.
            Value::Object(variables) if is_private => variables
                .keys()
                .map(|name| (name.clone(), Value::from(REDACTED)))
                .collect(),
            _ if is_private || is_secret(name) => Value::from(REDACTED),
            value => shortened(value),
        };
        (name.clone(), value)
    };
    fields.iter().map(redacted).collect()
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > MAX_TEXT => Value::from(format!("{}…", fitting(text, MAX_TEXT))),
        Value::Array(items) => items.iter().take(MAX_TEXT).map(shortened).collect(),
        Value::Object(fields) => Value::Object(redacted_fields(fields)),
        value => value.clone(),
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

fn is_secret(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Forms that secrets have in a command line. Of ASCII: a server compiles them at its first operation, and all letters of the
/// world would take a hundred times as long.
static FORMS: LazyLock<[(Regex, &'static str); 5]> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the patterns are constants, and a test uses each of them"
    )]
    let form = |text: &str| Regex::new(text).expect("a valid pattern");
    [
        // `--password x`, `API_KEY=x`, `"token": "x"`, `X-Api-Key: x`.
        (
            form(
                r#"(?i)([[:word:]-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|authorization|credential|private[_-]?key)[[:word:]-]*(?:\\?["'])?(?:\s*[=:]\s*|\s+)(?:\\?["'])?)(?:(?:basic|bearer|digest|token)\s+)?[^\s"'\\,;&|]+"#,
            ),
            "${1}[redacted]",
        ),
        (
            form(r"(?i)(?-u:\b)(bearer\s+)[a-z0-9._~+/=-]{8,}"),
            "${1}[redacted]",
        ),
        // The password of a URL.
        (form(r"(://[^\s/:@]+:)[^\s/@]+@"), "${1}[redacted]@"),
        // A JWT.
        (
            form(r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"),
            REDACTED,
        ),
        // Tokens with the mark of their issuer.
        (
            form(
                r"(?-u:\b)(?:ahma_[0-9a-f]{64}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[[:word:]]{20,}|glpat-[[:word:]-]{16,}|xox[abpr]-[[:word:]-]{10,}|AKIA[0-9A-Z]{16}|sk-[[:word:]-]{20,})",
            ),
            REDACTED,
        ),
    ]
});

/// The text without what looks like a secret.
pub(super) fn without_secrets(text: &str) -> Cow<'_, str> {
    let mut clean = Cow::Borrowed(text);
    for (form, replacement) in FORMS.iter() {
        if let Cow::Owned(replaced) = form.replace_all(&clean, *replacement) {
            clean = Cow::Owned(replaced);
        }
    }
    clean
}

#[cfg(test)]
#[path = "redaction_tests.rs"]
mod tests;
