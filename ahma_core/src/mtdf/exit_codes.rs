//! Meanings of exit codes.

use std::collections::BTreeMap;

/// Meanings that a tool file gives to exit codes. 0 is a success, and a code that it does not name is a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitCodes {
    named: BTreeMap<i32, ExitMeaning>,
}

/// Meaning of an exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitMeaning {
    Success,
    /// The program has done its work and found something: no failure, but a sequence stops at it.
    Findings,
    /// A failure, and what it says.
    Failure(String),
}

impl ExitCodes {
    pub fn new(named: impl IntoIterator<Item = (i32, ExitMeaning)>) -> Self {
        Self {
            named: named.into_iter().collect(),
        }
    }

    /// The meaning of a code; none if it is a failure like any other.
    pub fn meaning(&self, code: i32) -> Option<&ExitMeaning> {
        match code {
            0 => Some(&ExitMeaning::Success),
            code => self.named.get(&code),
        }
    }
}
