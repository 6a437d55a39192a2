//! The debug echo: every message between bridge and child, readable, on the terminal.
//!
//! Credentials are replaced. Apart from that, what is not JSON is printed as it is.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use serde_json::Value;

use crate::redact::Redactor;

/// Where the echo goes is fixed: standard error, which is for people.
#[derive(Debug, Clone)]
pub(crate) struct Echo {
    coloured: bool,
    redactor: Arc<Redactor>,
}

const BLUE: &str = "\x1b[34m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";

impl Echo {
    pub(crate) fn to_stderr(redactor: Arc<Redactor>) -> Self {
        let coloured = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { coloured, redactor }
    }

    pub(crate) fn sent(&self, line: &[u8]) {
        self.print(BLUE, "→ STDIN:", line);
    }

    pub(crate) fn received(&self, line: &[u8]) {
        self.print(GREEN, "← STDOUT:", line);
    }

    pub(crate) fn complained(&self, line: &[u8]) {
        self.print(YELLOW, "⚠ STDERR:", line);
    }

    fn print(&self, colour: &str, prefix: &str, line: &[u8]) {
        let text = self.render(colour, prefix, line);
        // A closed terminal must not stop the bridge.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }

    fn render(&self, colour: &str, prefix: &str, line: &[u8]) -> String {
        let body = match serde_json::from_slice::<Value>(line) {
            Ok(mut value) if value.is_object() || value.is_array() => {
                self.redactor.redact(&mut value);
                format!("{value:#}")
            }
            _ => {
                let text = String::from_utf8_lossy(line);
                self.redactor
                    .scrub(text.trim_end_matches(['\r', '\n']))
                    .into_owned()
            }
        };
        if self.coloured {
            format!("{colour}{prefix}{PLAIN}\n{body}\n")
        } else {
            format!("{prefix}\n{body}\n")
        }
    }
}

#[cfg(test)]
#[path = "echo_tests.rs"]
mod echo_tests;
