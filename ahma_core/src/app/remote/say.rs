//! What the user is told on stderr. Part of it comes from servers and files of others.

use std::io::Write as _;

/// For the person at the terminal.
pub(super) fn tell(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", visible(line));
}

/// The text without what a terminal would obey.
pub(super) fn visible(text: &str) -> String {
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
    fn a_terminal_is_never_given_orders() {
        assert_eq!(
            visible("a\u{1b}]0;b\n\rc \u{9b}d ü"),
            "a\u{fffd}]0;b\u{fffd}\u{fffd}c \u{fffd}d ü"
        );
    }
}
