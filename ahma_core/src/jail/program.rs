//! A program without a shell: the order that the server writes to a waiting process, and how the process obeys.
//!
//! The process is confined already and waits on the script pipe, as a warm shell does, but nothing has to be loaded for
//! it ahead of time. It takes a whole order or none: half of one, from a server that died while it wrote, must never
//! run as a shorter command.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    ffi::{CString, OsStr},
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use super::{cell::Cell, child};

/// A value that no process can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an argument, path or environment value holds a NUL byte, which no process can be given")]
pub struct NulByte;

/// Where programs are looked for when there is no `PATH`.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Writes an order: how many variables and words follow, the directory, the variables, the words; each ended by NUL.
pub(crate) fn order(
    directory: &Path,
    environment: &BTreeMap<String, String>,
    words: &[String],
) -> Result<Vec<u8>, NulByte> {
    let variables: Vec<String> = environment
        .iter()
        .filter(|(name, _)| is_name(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let counts = format!("{} {}", variables.len(), words.len());
    let mut order = Vec::new();
    let parts = [counts.as_bytes(), directory.as_os_str().as_bytes()];
    let texts = variables.iter().chain(words).map(String::as_bytes);
    for part in parts.into_iter().chain(texts) {
        if part.contains(&0) {
            return Err(NulByte);
        }
        order.extend_from_slice(part);
        order.push(0);
    }
    Ok(order)
}

/// Whether a shell takes this as the name of a variable.
pub(crate) fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// What an order asks for.
#[derive(Debug, PartialEq, Eq)]
struct Order<'a> {
    directory: &'a Path,
    variables: Vec<&'a [u8]>,
    words: Vec<&'a [u8]>,
}

impl<'a> Order<'a> {
    /// Reads an order; nothing if it is not whole.
    fn read(text: &'a [u8]) -> Option<Self> {
        let mut parts = text.strip_suffix(b"\0")?.split(|byte| *byte == 0);
        let counts = std::str::from_utf8(parts.next()?).ok()?;
        let (variables, words) = counts.split_once(' ')?;
        let (variables, words): (usize, usize) = (variables.parse().ok()?, words.parse().ok()?);
        let order = Self {
            directory: Path::new(OsStr::from_bytes(parts.next()?)),
            variables: parts.by_ref().take(variables).collect(),
            words: parts.collect(),
        };
        (order.variables.len() == variables && order.words.len() == words && words > 0).then_some(order)
    }
}

/// Why the process did not become the program, and the exit code that says so to those who know shells.
#[derive(Debug)]
pub(super) struct NotStarted {
    pub(super) code: i32,
    pub(super) reason: String,
}

/// Waits for an order and becomes the program it names.
pub(super) fn obey(cell: &Cell, script: OwnedFd) -> Result<Infallible, NotStarted> {
    const DIRECTORY: i32 = 1;
    const CANNOT_RUN: i32 = 126;
    const NOT_FOUND: i32 = 127;
    let not_started = |code, reason: String| NotStarted { code, reason };
    let mut text = Vec::new();
    io::Read::read_to_end(&mut std::fs::File::from(script), &mut text)
        .map_err(|error| not_started(CANNOT_RUN, format!("no order came: {error}")))?;
    let order = Order::read(&text).ok_or_else(|| {
        not_started(
            CANNOT_RUN,
            "the server went away before it had said what to run".into(),
        )
    })?;
    std::env::set_current_dir(order.directory)
        .map_err(|error| not_started(DIRECTORY, format!("{}: {error}", order.directory.display())))?;
    let environment = environment(cell, &order);
    let words = c_strings(&order.words);
    let name = order.words.first().copied().unwrap_or_default();
    let mut denied = None;
    for file in candidates(name, &environment) {
        let Ok(path) = CString::new(file.as_os_str().as_bytes()) else {
            continue;
        };
        let mut error = child::exec(&path, &words, &environment);
        if error.raw_os_error() == Some(libc::ENOEXEC) {
            // A script that does not name its interpreter is the shell's.
            let mut script = cell.arguments.first().cloned().into_iter().collect::<Vec<_>>();
            script.push(path);
            script.extend_from_slice(words.get(1..).unwrap_or_default());
            error = child::exec(&cell.shell, &script, &environment);
        }
        // A file that is there but cannot run is the answer if no later directory has one that can.
        if denied.is_none() && (file.exists() || error.raw_os_error() != Some(libc::ENOENT)) {
            denied = Some(not_started(CANNOT_RUN, format!("{}: {error}", file.display())));
        }
    }
    let name = String::from_utf8_lossy(name);
    Err(denied.unwrap_or_else(|| not_started(NOT_FOUND, format!("{name}: command not found"))))
}

/// The environment of every command, with what the order sets.
fn environment(cell: &Cell, order: &Order<'_>) -> Vec<CString> {
    let directory = [b"PWD=", order.directory.as_os_str().as_bytes()].concat();
    let mut variables = BTreeMap::new();
    let common = cell.environment.iter().map(|variable| variable.to_bytes());
    for variable in common.chain([&*directory]).chain(order.variables.iter().copied()) {
        variables.insert(name_of(variable), variable);
    }
    c_strings(&variables.into_values().collect::<Vec<_>>())
}

/// The files that a program's name may mean, as a shell would look for them.
fn candidates(name: &[u8], environment: &[CString]) -> Vec<PathBuf> {
    let file = Path::new(OsStr::from_bytes(name));
    if name.is_empty() || name.contains(&b'/') {
        return vec![file.to_owned()];
    }
    let path = environment
        .iter()
        .find_map(|variable| variable.to_bytes().strip_prefix(b"PATH="))
        .unwrap_or(DEFAULT_PATH.as_bytes());
    path.split(|byte| *byte == b':')
        .map(|directory| match directory {
            b"" => Path::new(".").join(file),
            directory => Path::new(OsStr::from_bytes(directory)).join(file),
        })
        .collect()
}

fn name_of(variable: &[u8]) -> &[u8] {
    variable.split(|byte| *byte == b'=').next().unwrap_or_default()
}

/// What came out of an order split at NUL bytes holds none.
fn c_strings(texts: &[&[u8]]) -> Vec<CString> {
    texts.iter().filter_map(|text| CString::new(*text).ok()).collect()
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
