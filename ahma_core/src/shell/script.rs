//! The text that an idle shell reads: directory, environment, the user's script.
//!
//! Quoting is the `shlex` crate's. The user's text is one quoted word and becomes the first argument of the shell, which
//! evaluates it when all of this is read (`jail::prepared::READ_SCRIPT`); so nothing is ever appended to it. A second
//! argument follows: a word is often quoted in pieces, and what was cut off between two of them is a shorter word.

use std::{collections::BTreeMap, os::unix::ffi::OsStrExt, path::Path};

use crate::jail::{NulByte, SCRIPT_FD, program::is_variable_name};

/// Writes the script.
pub(super) fn render(
    text: &str,
    directory: &Path,
    stdin: Option<&Path>,
    environment: &BTreeMap<String, String>,
) -> Result<Vec<u8>, NulByte> {
    let mut script = b"cd -- ".to_vec();
    quote(directory.as_os_str().as_bytes(), &mut script)?;
    script.extend_from_slice(b" || exit; ");
    for (name, value) in environment {
        if !is_variable_name(name) {
            continue;
        }
        script.extend_from_slice(format!("export {name}=").as_bytes());
        quote(value.as_bytes(), &mut script)?;
        script.extend_from_slice(b"; ");
    }
    if let Some(stdin) = stdin {
        script.extend_from_slice(b"exec <");
        quote(stdin.as_os_str().as_bytes(), &mut script)?;
        script.extend_from_slice(b"; ");
    }
    // The clock of a shell that has been waiting: only shells that have one count from there.
    script.extend_from_slice(format!("SECONDS=0; exec {SCRIPT_FD}<&-; ").as_bytes());
    if let Some(program) = sole_program(text) {
        // As after `bash -c`: no shell waits for a program that is all there is to run. A program that is not there is
        // left to the shell, which says so in its usual words.
        script.extend_from_slice(format!("hash {program} 2>/dev/null && set -- ").as_bytes());
        quote(format!("exec {text}").as_bytes(), &mut script)?;
        script.extend_from_slice(b" . || ");
    }
    script.extend_from_slice(b"set -- ");
    quote(text.as_bytes(), &mut script)?;
    script.extend_from_slice(b" .\n");
    Ok(script)
}

fn quote(bytes: &[u8], into: &mut Vec<u8>) -> Result<(), NulByte> {
    let quoted = shlex::bytes::try_quote(bytes).map_err(|_| NulByte)?;
    into.extend_from_slice(&quoted);
    Ok(())
}

/// The program of a text that is nothing but a program's name and words without a meaning to shells. By an allow-list: a
/// mistake here would change what a text means.
fn sole_program(text: &str) -> Option<&str> {
    let text = text.trim_matches(' ');
    let (program, words) = text.split_once(' ').unwrap_or((text, ""));
    let is_name = program.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && program
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte));
    let are_plain = words
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b" _./,:@%+=-".contains(&byte));
    (is_name && are_plain && BUILT_IN.binary_search(&program).is_err()).then_some(program)
}

/// Commands and words of bash and dash that are no programs, or not those of that name. In order.
#[rustfmt::skip]
const BUILT_IN: [&str; 76] = [
    "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "chdir", "command", "compgen", "complete",
    "compopt", "continue", "coproc", "declare", "dirs", "disown", "do", "done", "echo", "elif", "else", "enable",
    "esac", "eval", "exec", "exit", "export", "false", "fc", "fg", "fi", "for", "function", "getopts", "hash",
    "help", "history", "if", "in", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd",
    "pwd", "read", "readarray", "readonly", "return", "select", "set", "shift", "shopt", "source", "suspend",
    "test", "then", "time", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset",
    "until", "wait", "while",
];

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
