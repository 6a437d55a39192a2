//! Text that must not be shown.
//!
//! The `secrecy` crate would add clearing of memory, which says little here: clap, the HTTP client and rmcp hold copies of
//! every credential in strings of their own. For the rest, twenty lines do.

use std::fmt;

/// A credential. `Debug` does not contain it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, to be compared or sent to the party that it is for.
    #[must_use]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show() {
        let shown = format!("{:?}", Some(Secret::new("hunter2")));
        assert_eq!(shown, "Some([redacted])");
    }
}
