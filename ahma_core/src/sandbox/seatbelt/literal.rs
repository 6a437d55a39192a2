//! Paths as they stand in a profile: real, and written so that no path can add a rule.

use std::{borrow::Cow, path::Path};

/// A string literal: quotes and backslashes escaped, control characters by their bytes, so that a path is only ever a path.
pub(super) fn literal(path: &Path) -> String {
    let mut text = String::from("\"");
    for character in real(path).to_string_lossy().chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            control if control.is_control() => {
                for byte in control.encode_utf8(&mut [0; 4]).bytes() {
                    text.push_str(&format!("\\x{byte:02x}"));
                }
            }
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

/// Letters for which case-insensitive APFS takes one character beyond ASCII too, such as `ﬁ` for `fi` and `ſ` for `s`: all
/// that Unicode folds into nothing but ASCII letters.
const FOLDED: &[&str] = &["ff", "ffi", "ffl", "fi", "fl", "k", "s", "ss", "st"];

/// Such characters. None is named, because nothing says how the system's expressions read more than one byte.
const BEYOND_ASCII: &str = "[^ -~]+";

/// A regular expression, as a string literal, for a path below `root` and `end` after it. It matches every name that APFS
/// takes for the same; a rule by name knows one.
pub(super) fn any_name(root: &Path, path: &Path, end: &str) -> String {
    let path = real(path).to_string_lossy().into_owned();
    let root = real(root).to_string_lossy().into_owned();
    let (above, mut below) = path.split_at(if path.starts_with(&root) { root.len() } else { 0 });
    let mut pattern: String = above.chars().map(any_case).collect();
    while !below.is_empty() {
        let (letters, rest) = below.split_at(length_together(below));
        match &*spellings(letters) {
            [only] => pattern.push_str(only),
            several => pattern.push_str(&format!("({})", several.join("|"))),
        }
        below = rest;
    }
    literal(Path::new(&format!("^{pattern}{end}$")))
}

/// Length of the beginning of a text in which every character is folded with one before it, if any.
fn length_together(text: &str) -> usize {
    let mut end = text.chars().next().map_or(0, char::len_utf8);
    let mut at = 0;
    while at < end {
        let lengths = folds_at(text, at).map(str::len);
        end = lengths.map(|length| at + length).fold(end, usize::max);
        at += 1;
    }
    end
}

fn folds_at(text: &str, at: usize) -> impl Iterator<Item = &'static str> {
    let is_there = move |fold: &&str| {
        let there = text.get(at..at + fold.len());
        there.is_some_and(|there| there.eq_ignore_ascii_case(fold))
    };
    FOLDED.iter().copied().filter(is_there)
}

/// One expression for each way to write some of the letters as characters beyond ASCII.
fn spellings(letters: &str) -> Vec<String> {
    let Some(first) = letters.chars().next() else {
        return vec![String::new()];
    };
    let plain = (any_case(first), first.len_utf8());
    let folded = folds_at(letters, 0).map(|fold| (BEYOND_ASCII.to_owned(), fold.len()));
    std::iter::once(plain)
        .chain(folded)
        .flat_map(|(start, length)| {
            let rest = spellings(&letters[length..]).into_iter();
            rest.map(move |rest| format!("{start}{rest}"))
        })
        .collect()
}

/// An expression for one character, in both cases.
fn any_case(character: char) -> String {
    let (lower, upper) = (character.to_ascii_lowercase(), character.to_ascii_uppercase());
    match character {
        letter if letter.is_ascii_alphabetic() => format!("[{upper}{lower}]"),
        '/' | '-' | '_' | '0'..='9' => character.into(),
        // A class of one character needs no other escape.
        '^' | '\\' | ']' => format!("\\{character}"),
        control if control.is_control() => ".".into(),
        special if special.is_ascii() => format!("[{special}]"),
        other => other.into(),
    }
}

/// Three directories of every macOS are links into `/private`. A rule that names the link matches nothing, and neither does
/// one with a slash at its end.
fn real(path: &Path) -> Cow<'_, Path> {
    let path = path.components().as_path();
    let is_linked = ["/etc", "/tmp", "/var"].iter().any(|link| path.starts_with(link));
    match path.strip_prefix("/") {
        Ok(below) if is_linked => Path::new("/private").join(below).into(),
        _ => path.into(),
    }
}
