//! The process outside the sandbox that the attempts are set upon.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::Value;

use super::world::{PATH, User};

/// See `outside.py`.
pub(super) struct Outside {
    process: Child,
    /// Closed to tell it to tidy up and end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    facts: Value,
}

impl Outside {
    pub(super) fn start(program: &Path, directory: &Path, user: User, secret: &str) -> Self {
        let mut words = user.words();
        words.extend(["python3".to_owned(), program.display().to_string()]);
        let mut process = Command::new("/usr/bin/env")
            .args(words)
            .arg(directory)
            .env_clear()
            .env("PATH", PATH)
            .env("OUTSIDE_SECRET", secret)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut outside = Self {
            process,
            input: Some(input),
            output: BufReader::new(output),
            facts: Value::Null,
        };
        outside.facts = outside.read();
        assert!(outside.facts["pid"].is_number(), "python3 is needed at {PATH}");
        outside
    }

    /// Facts that the attempts need to know of it, by the names of their variables.
    pub(super) fn facts(&self) -> impl Iterator<Item = (String, String)> {
        let facts = self.facts.as_object().into_iter().flatten();
        facts.map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (name.to_uppercase(), text)
        })
    }

    /// Its observations, or null if it is dead.
    pub(super) fn state(&mut self) -> Value {
        if let Some(input) = &mut self.input {
            input.write_all(b"how are you?\n").ok();
        }
        self.read()
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).ok();
        serde_json::from_str(&line).unwrap_or(Value::Null)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.input = None;
        self.process.wait().ok();
    }
}
