//! Takes credentials out of what is shown or written down.
//!
//! They are known as [`ahma_common::redaction`] says, and, wherever they stand, those that clients came in with.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::LazyLock;

use parking_lot::RwLock;
use regex::Regex;
use serde_json::{Map, Value};

use ahma_common::redaction::{REDACTED, is_secret_name, without_credentials};
use ahma_common::secret::Secret;

#[derive(Debug)]
pub(crate) struct Redactor {
    /// Credentials that were accepted, the newest last. Those of others are not kept: they could be chosen so that
    /// something innocent is hidden.
    accepted: RwLock<VecDeque<Secret>>,
}

/// A client's own credential is always the newest or a few before it, so this is enough.
const REMEMBERED: usize = 256;
/// Shorter ones are replaced where they are a word of their own only, or they would eat every text.
const LONG_ENOUGH: usize = 8;

impl Redactor {
    pub(crate) fn new() -> Self {
        Self {
            accepted: RwLock::new(VecDeque::new()),
        }
    }

    /// Takes note of a credential that was accepted.
    pub(crate) fn remember(&self, credential: &Secret) {
        let is_known = |accepted: &VecDeque<Secret>| accepted.contains(credential);
        if is_known(&self.accepted.read()) {
            return;
        }
        let mut accepted = self.accepted.write();
        if accepted.len() >= REMEMBERED {
            accepted.pop_front();
        }
        accepted.push_back(credential.clone());
    }

    /// Replaces credentials at any depth.
    pub(crate) fn redact(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                let redacted: Map<String, Value> = std::mem::take(fields)
                    .into_iter()
                    .map(|(key, mut value)| {
                        if is_secret_name(&key) {
                            value = Value::from(REDACTED);
                        } else {
                            self.redact(&mut value);
                        }
                        (self.scrub(&key).into_owned(), value)
                    })
                    .collect();
                *fields = redacted;
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact(item)),
            Value::String(text) => {
                if let Cow::Owned(scrubbed) = self.scrub(text) {
                    *text = scrubbed;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The text without credentials.
    pub(crate) fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut scrubbed = Cow::Borrowed(text);
        for credential in self.accepted.read().iter() {
            if let Some(without) = without(&scrubbed, credential.expose()) {
                scrubbed = Cow::Owned(without);
            }
        }
        if let Cow::Owned(without) = without_credentials(&scrubbed, &HEADER, "$1$2[redacted]") {
            scrubbed = Cow::Owned(without);
        }
        scrubbed
    }
}

/// The text with every appearance of `credential` replaced, if there is one.
fn without(text: &str, credential: &str) -> Option<String> {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let stands_alone = |start: usize| {
        let (before, after) = (&text[..start], &text[start + credential.len()..]);
        !is_word(before.chars().next_back()) && !is_word(after.chars().next())
    };
    let mut result = String::new();
    let mut copied = 0;
    for (start, found) in text.match_indices(credential) {
        if found.len() >= LONG_ENOUGH || stands_alone(start) {
            result.push_str(&text[copied..start]);
            result.push_str(REDACTED);
            copied = start + found.len();
        }
    }
    (copied > 0).then(|| result + &text[copied..])
}

/// Headers, as in `curl -H 'X-API-Key: …'`.
#[expect(clippy::expect_used, reason = "the pattern is a constant, and a test uses it")]
static HEADER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)\b(authorization|x-api-key)(["']?\s*[:=]\s*["']?)(?:(?:basic|bearer|digest|token) +)?[^\s"',;]+"#,
    )
    .expect("a valid pattern")
});

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
