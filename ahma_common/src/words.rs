//! Words for the person at the terminal.

use std::fmt::Display;

/// `1 tool file`, `2 tool files`.
#[must_use]
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {what}{ending}")
}

/// True for a character that cannot be seen, or that turns others around: a control, a direction, a mark without width.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text without what a terminal would obey: part of it may come from servers and files of others.
#[must_use]
pub fn visible(text: &str) -> String {
    text.chars()
        .map(|c| {
            if is_hidden(c) {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

/// The text, or its first characters and `…`.
#[must_use]
pub fn shorten(mut text: String, max_chars: usize) -> String {
    // Bytes are at least as many as characters, so most texts need no counting.
    if text.len() > max_chars
        && let Some((end, _)) = text.char_indices().nth(max_chars)
    {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// As much of the beginning of a text as fits.
#[must_use]
pub fn fitting(text: &str, max_bytes: usize) -> &str {
    let end = (0..=max_bytes).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
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
    fn a_text_is_cut_between_characters() {
        assert_eq!(shorten("äöü".to_owned(), 3), "äöü");
        assert_eq!(shorten("äöüß".to_owned(), 3), "äöü…");
        for (max_bytes, expected) in [(0, ""), (1, ""), (2, "ä"), (3, "ä"), (4, "äö"), (9, "äö")] {
            assert_eq!(fitting("äö", max_bytes), expected);
        }
    }

    #[test]
    fn a_terminal_is_never_given_orders() {
        assert_eq!(
            visible("a\u{1b}]0;b\n\rc \u{9b}d ü ✓ \u{202e}e"),
            "a\u{fffd}]0;b\u{fffd}\u{fffd}c \u{fffd}d ü ✓ \u{fffd}e"
        );
    }
}
