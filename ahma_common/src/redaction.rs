//! Credentials in what is shown or written down: known by the name they stand under, and by their own form. A few innocent
//! words go too; that is the safe side.

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;

/// Stands in the place of a credential.
pub const REDACTED: &str = "[redacted]";

/// Parts of names that mean a credential.
const SECRET_NAMES: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
    "cookie",
    "bearer",
];

/// Contains "token" and is no credential.
const PROGRESS_TOKEN: &str = "progresstoken";

/// True for the name of a field, variable or argument whose value is a credential.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    name != PROGRESS_TOKEN && SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Forms that credentials have wherever they stand. Of ASCII: a server compiles them at its first operation, and all letters
/// of the world would take a hundred times as long.
static FORMS: LazyLock<[(Regex, &'static str); 4]> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the patterns are constants, and a test uses each of them"
    )]
    let form = |text: &str| Regex::new(text).expect("a valid pattern");
    [
        (
            form(r"(?i)(?-u:\b)(bearer\s+)[a-z0-9._~+/=-]{8,}"),
            "${1}[redacted]",
        ),
        // The password of a URL.
        (form(r"(://[^\s/:@]+:)[^\s/@]+@"), "${1}[redacted]@"),
        // A JWT: three parts, of which the first is JSON.
        (
            form(r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"),
            REDACTED,
        ),
        // Tokens with the mark of their issuer; the first are those of `token new`.
        (
            form(
                r"(?-u:\b)(?:ahma_[0-9a-f]{64}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[[:word:]]{20,}|glpat-[[:word:]-]{16,}|xox[abpr]-[[:word:]-]{10,}|AKIA[0-9A-Z]{16}|sk-[[:word:]-]{20,})",
            ),
            REDACTED,
        ),
    ]
});

/// The text without what has the form of a credential, or is found by `named`: a pattern, with its replacement, for values
/// behind a name.
#[must_use]
pub fn without_credentials<'a>(text: &'a str, named: &Regex, replacement: &str) -> Cow<'a, str> {
    let forms = FORMS.iter().map(|(form, replacement)| (form, *replacement));
    let mut clean = Cow::Borrowed(text);
    for (form, replacement) in std::iter::once((named, replacement)).chain(forms) {
        if let Cow::Owned(replaced) = form.replace_all(&clean, replacement) {
            clean = Cow::Owned(replaced);
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_secret_however_it_is_written() {
        for name in ["API-Key", "access_token", "PGPASSWORD", "Set-Cookie"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["progressToken", "key", "keep"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn forms_of_credentials_are_known() {
        let named = Regex::new("(?-u:(pin=))[0-9]+").unwrap();
        let ours = format!("echo ahma_{}", "0f".repeat(32));
        for (given, kept) in [
            ("pin=1234 x", "pin=[redacted] x"),
            ("use bearer abcdefgh-1 now", "use bearer [redacted] now"),
            ("bearer of news", "bearer of news"),
            (
                "https://me:hunter2@example.com/r",
                "https://me:[redacted]@example.com/r",
            ),
            ("jwt eyJhbGciOiJub25l.eyJ4.c2ln end", "jwt [redacted] end"),
            ("echo ghp_0123456789abcdefghij", "echo [redacted]"),
            (ours.as_str(), "echo [redacted]"),
        ] {
            assert_eq!(without_credentials(given, &named, "${1}[redacted]"), kept);
        }
    }
}
