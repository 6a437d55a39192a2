//! The text that a warm shell reads: directory, environment, and either an exact argument list or the user's script.
//!
//! Quoting is the `shlex` crate's. The user's text is one quoted word given to `eval`, so nothing is ever appended to
//! it and, with all before it on the same line, its line numbers stay its own.

use std::{collections::BTreeMap, os::unix::ffi::OsStrExt, path::Path};

use crate::{call::Program, jail::SCRIPT_FD};

/// A value that no process can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an argument, path or environment value holds a NUL byte, which no process can be given")]
pub struct NulByte;

/// Writes the script.
pub(super) fn render(
    program: &Program,
    directory: &Path,
    environment: &BTreeMap<String, String>,
) -> Result<Vec<u8>, NulByte> {
    let mut script = b"cd -- ".to_vec();
    quote(directory.as_os_str().as_bytes(), &mut script)?;
    script.extend_from_slice(b" || exit; ");
    for (name, value) in environment {
        if !is_name(name) {
            continue;
        }
        script.extend_from_slice(format!("export {name}=").as_bytes());
        quote(value.as_bytes(), &mut script)?;
        script.extend_from_slice(b"; ");
    }
    match program {
        Program::Argv(words) => {
            script.extend_from_slice(format!("exec {SCRIPT_FD}<&-; exec").as_bytes());
            for word in words {
                script.push(b' ');
                quote(word.as_bytes(), &mut script)?;
            }
        }
        Program::Script(text) => {
            script.extend_from_slice(format!("exec {SCRIPT_FD}<&-; eval ").as_bytes());
            quote(text.as_bytes(), &mut script)?;
        }
    }
    script.push(b'\n');
    Ok(script)
}

fn quote(bytes: &[u8], into: &mut Vec<u8>) -> Result<(), NulByte> {
    let quoted = shlex::bytes::try_quote(bytes).map_err(|_| NulByte)?;
    into.extend_from_slice(&quoted);
    Ok(())
}

/// Whether a shell takes this as the name of a variable.
fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
