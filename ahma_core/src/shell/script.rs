//! The text that an idle shell reads: directory, environment, the user's script.
//!
//! Quoting is the `shlex` crate's. The user's text is one quoted word and becomes the first argument of the shell, which
//! evaluates it when all of this is read (`jail::prepared::READ_SCRIPT`); so nothing is ever appended to it. A second
//! argument follows: a word is often quoted in pieces, and what was cut off between two of them is a shorter word.

use std::{collections::BTreeMap, os::unix::ffi::OsStrExt, path::Path};

use super::sole_program;
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
    if let Some(program) = sole_program::of(text) {
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

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
