//! Guesses about programs that ended because they wanted a terminal.

/// Said by programs that ask for a password, a name or keys and find no terminal.
const WISHES: &[&str] = &[
    "a terminal is required",
    "cannot open /dev/tty",
    "could not read password",
    "could not read username",
    "error opening terminal",
    "failed tty get",
    "host key verification failed",
    "input is not from a terminal",
    "is not a terminal",
    "must be connected to a terminal",
    "must be run from a terminal",
    "no tty present",
    "not a tty",
    "open /dev/tty",
    "standard input is not a tty",
    "stdin is not a terminal",
    "terminal prompts disabled",
    "the input device is not a tty",
    "tty_get_pgrp",
];

/// A hint after a failure.
pub(super) fn hint(output: &str) -> Option<String> {
    let said = super::guess::last_lines(output).into_iter().find(|line| {
        let lower = line.to_lowercase();
        WISHES.iter().any(|wish| lower.contains(wish))
    })?;
    Some(format!(
        "No terminal and nobody to answer here ({}): give what it asks for by a flag, a file, `env` or `stdin`; ask the \
         user for passwords and keys.",
        said.trim().chars().take(80).collect::<String>()
    ))
}
