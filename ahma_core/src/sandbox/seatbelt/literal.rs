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

/// A regular expression, as a string literal, that matches the path and everything below it in any case. APFS takes
/// `.VSCode` for `.vscode`, and a rule by name does not.
pub(super) fn any_case(path: &Path) -> String {
    let mut pattern = String::from("^");
    for character in real(path).to_string_lossy().chars() {
        let (lower, upper) = (character.to_ascii_lowercase(), character.to_ascii_uppercase());
        match character {
            letter if letter.is_ascii_alphabetic() => pattern.push_str(&format!("[{upper}{lower}]")),
            plain if plain == '/' || plain.is_ascii_digit() || plain == '-' || plain == '_' => {
                pattern.push(plain)
            }
            // A class of one character needs no other escape.
            '^' | '\\' | ']' => {
                pattern.push('\\');
                pattern.push(character);
            }
            control if control.is_control() => pattern.push('.'),
            special if special.is_ascii() => pattern.push_str(&format!("[{special}]")),
            other => pattern.push(other),
        }
    }
    pattern.push_str("(/.*)?$");
    literal(Path::new(&pattern))
}

/// Three directories of every macOS are links into `/private`, and a rule that names the link matches nothing.
fn real(path: &Path) -> Cow<'_, Path> {
    let is_linked = ["/etc", "/tmp", "/var"].iter().any(|link| path.starts_with(link));
    match path.strip_prefix("/") {
        Ok(below) if is_linked => Path::new("/private").join(below).into(),
        _ => path.into(),
    }
}
