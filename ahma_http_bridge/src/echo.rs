//! The debug echo: every message between bridge and child, readable, on the terminal.
//!
//! Values whose key names a credential are replaced, whatever they are. Anything that is not JSON is
//! printed as it is.

use std::io::{IsTerminal, Write};

use serde_json::Value;

/// Where the echo goes is fixed: standard error, which is for people.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Echo {
    coloured: bool,
}

const BLUE: &str = "\x1b[34m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";

impl Echo {
    pub(crate) fn to_stderr() -> Self {
        let coloured = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { coloured }
    }

    pub(crate) fn sent(self, line: &[u8]) {
        self.print(BLUE, "→ STDIN:", line);
    }

    pub(crate) fn received(self, line: &[u8]) {
        self.print(GREEN, "← STDOUT:", line);
    }

    pub(crate) fn complained(self, line: &[u8]) {
        self.print(YELLOW, "⚠ STDERR:", line);
    }

    fn print(self, colour: &str, prefix: &str, line: &[u8]) {
        let text = self.render(colour, prefix, line);
        // A closed terminal must not stop the bridge.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }

    fn render(self, colour: &str, prefix: &str, line: &[u8]) -> String {
        let body = match serde_json::from_slice::<Value>(line) {
            Ok(mut value) if value.is_object() || value.is_array() => {
                redact(&mut value);
                format!("{value:#}")
            }
            _ => String::from_utf8_lossy(line)
                .trim_end_matches(['\r', '\n'])
                .to_owned(),
        };
        if self.coloured {
            format!("{colour}{prefix}{PLAIN}\n{body}\n")
        } else {
            format!("{prefix}\n{body}\n")
        }
    }
}

/// Parts of key names that mean a credential. A few innocent keys are hidden too; that is the safe side.
const SECRET_KEYS: [&str; 9] = [
    "password",
    "passwd",
    "secret",
    "authorization",
    "apikey",
    "credential",
    "privatekey",
    "cookie",
    "bearer",
];

/// Keys that contain "token" and are no credential.
const PROTOCOL_TOKENS: [&str; 1] = ["progresstoken"];

fn is_secret(key: &str) -> bool {
    let key: String = key
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let token = key.contains("token") && !PROTOCOL_TOKENS.contains(&key.as_str());
    token || SECRET_KEYS.iter().any(|part| key.contains(part))
}

/// Replaces the values of credentials, at any depth.
pub(crate) fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if is_secret(key) {
                    *value = Value::from("[redacted]")
                } else {
                    redact(value)
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
#[path = "echo_tests.rs"]
mod echo_tests;
