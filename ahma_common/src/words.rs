//! Words for the person at the terminal.

use std::fmt::Display;

/// `1 tool file`, `2 tool files`.
#[must_use]
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {what}{ending}")
}

/// The text without what a terminal would obey: part of it may come from servers and files of others.
#[must_use]
pub fn visible(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        for (count, expected) in [(0_u64, "0 files"), (1, "1 file"), (2, "2 files")] {
            assert_eq!(counted(count, "file"), expected);
        }
    }

    #[test]
    fn a_terminal_is_never_given_orders() {
        assert_eq!(
            visible("a\u{1b}]0;b\n\rc \u{9b}d ü ✓"),
            "a\u{fffd}]0;b\u{fffd}\u{fffd}c \u{fffd}d ü ✓"
        );
    }
}
