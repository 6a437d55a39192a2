//! A text that must not be shown.

use std::fmt;

/// A credential. Neither `Debug` nor an error message contains it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, to be compared or handed to its owner.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

/// For clap, which parses flags and variables.
impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}
