//! Patterns of tool names, to which a credential may limit a client.

use std::{fmt, str::FromStr};

/// Patterns in which `*` stands for any characters. The default allows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPatterns(Vec<String>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of a tool; give names with commas between them, with * for any characters")]
pub struct PatternError(String);

impl ToolPatterns {
    /// Allows every tool.
    pub fn any() -> Self {
        Self(vec!["*".to_owned()])
    }

    pub fn allow(&self, tool: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, tool))
    }
}

impl FromStr for ToolPatterns {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let patterns = text.split(',').map(|pattern| {
            let pattern = pattern.trim();
            let is_usable = |c: char| c.is_ascii_alphanumeric() || "_-./*".contains(c);
            match !pattern.is_empty() && pattern.chars().all(is_usable) {
                true => Ok(pattern.to_owned()),
                false => Err(PatternError(pattern.to_owned())),
            }
        });
        patterns.collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for ToolPatterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut left) = name.strip_prefix(head) else {
        return false;
    };
    let mut pieces = rest.split('*');
    let tail = pieces.next_back().unwrap_or_default();
    for piece in pieces {
        match left.split_once(piece) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_allowed_by_any_of_the_patterns() {
        for (patterns, name, expected) in [
            ("git_*,cargo_test", "git_log", true),
            ("git_*, cargo_test", "cargo_test", true),
            ("git_*,cargo_test", "cargo_test_all", false),
            ("git_*,cargo_test", "digit_x", false),
            ("git_*", "git_", true),
            ("*", "anything", true),
            ("*_test", "cargo_test", true),
            ("*_test", "cargo_test_x", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "ac", false),
            ("ab*b", "ab", false),
        ] {
            let parsed: ToolPatterns = patterns.parse().unwrap();
            assert_eq!(parsed.allow(name), expected, "{patterns} {name}");
        }
        assert!(!ToolPatterns::default().allow("git_log"));
        assert!(ToolPatterns::any().allow("git_log"));
    }

    #[test]
    fn what_is_no_name_is_no_pattern() {
        for text in ["", "git_*,", "git log", "git_?", "a,\"b\""] {
            assert!(text.parse::<ToolPatterns>().is_err(), "{text:?}");
        }
        let parsed: ToolPatterns = "git_*, cargo_test".parse().unwrap();
        assert_eq!(parsed.to_string(), "git_*,cargo_test");
    }
}
