//! A program without a shell: the request that the server writes to an idle process, and the `exec` in that process.
//!
//! The process is confined already and waits on the script pipe, as an idle shell does, but nothing has to be loaded for
//! it ahead of time. It takes a complete request or none: half of one, from a server that died while writing, must never
//! run as a shorter command.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    ffi::{CString, OsStr},
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use super::{child, prepared::ExecDefaults};
use crate::{call::FileRequest, files, sandbox::held};

/// A value that cannot be passed to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an argument, path or environment value holds a NUL byte, which no process can be given")]
pub struct NulByte;

/// Exit code of a process whose program is not there, as shells have it.
pub(crate) const NOT_FOUND: i32 = 127;

/// Search path of programs when there is no `PATH`.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// First word of a request to read or change files, which is done without another program. No program has this name: no
/// name of a file has a slash at its end.
const FILE_WORKER: &str = "file-worker/";
const FILE_WORKER_BYTES: &[u8] = FILE_WORKER.as_bytes();

/// An idle process has two output pipes; a program may want both streams in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputStreams {
    /// Standard error goes where standard output goes.
    Joined,
    /// As the process was started.
    AsTheyAre,
}

impl OutputStreams {
    fn text(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::AsTheyAre => "as-they-are",
        }
    }
}

/// Encodes a request: the number of variables and of words with what becomes of the output, the directory, the file for
/// standard input or nothing, the variables, the words; each ended by NUL.
pub(crate) fn encode_exec_request(
    directory: &Path,
    stdin: Option<&Path>,
    streams: OutputStreams,
    environment: &BTreeMap<String, String>,
    words: &[String],
) -> Result<Vec<u8>, NulByte> {
    let variables: Vec<String> = environment
        .iter()
        .filter(|(name, _)| is_variable_name(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let head = format!("{} {} {}", variables.len(), words.len(), streams.text());
    let mut request = Vec::new();
    let stdin = stdin.map_or(&b""[..], |path| path.as_os_str().as_bytes());
    let parts = [head.as_bytes(), directory.as_os_str().as_bytes(), stdin];
    let texts = variables.iter().chain(words).map(String::as_bytes);
    for part in parts.into_iter().chain(texts) {
        if part.contains(&0) {
            return Err(NulByte);
        }
        request.extend_from_slice(part);
        request.push(0);
    }
    Ok(request)
}

/// Encodes a request that the process carries out itself: to read or change files.
pub(crate) fn encode_file_request(directory: &Path, request: &FileRequest) -> Result<Vec<u8>, NulByte> {
    // A request is plain data and can always be written.
    let request = serde_json::to_string(request).unwrap_or_default();
    encode_exec_request(
        directory,
        None,
        OutputStreams::Joined,
        &BTreeMap::new(),
        &[FILE_WORKER.to_owned(), request],
    )
}

/// A shell takes this as the name of a variable.
pub(crate) fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// The program to become.
#[derive(Debug, PartialEq, Eq)]
struct ExecRequest<'a> {
    directory: &'a Path,
    /// Empty if there is none.
    stdin: &'a Path,
    streams: OutputStreams,
    variables: Vec<&'a [u8]>,
    words: Vec<&'a [u8]>,
}

impl<'a> ExecRequest<'a> {
    /// Decodes a request; `None` if it is incomplete.
    fn decode(text: &'a [u8]) -> Option<Self> {
        let mut parts = text.strip_suffix(b"\0")?.split(|byte| *byte == 0);
        let mut head = std::str::from_utf8(parts.next()?).ok()?.split(' ');
        let variables: usize = head.next()?.parse().ok()?;
        let words: usize = head.next()?.parse().ok()?;
        let streams = head.next()?;
        let streams = [OutputStreams::Joined, OutputStreams::AsTheyAre]
            .into_iter()
            .find(|known| known.text() == streams)?;
        let request = Self {
            directory: Path::new(OsStr::from_bytes(parts.next()?)),
            stdin: Path::new(OsStr::from_bytes(parts.next()?)),
            streams,
            variables: parts.by_ref().take(variables).collect(),
            words: parts.collect(),
        };
        (request.variables.len() == variables && request.words.len() == words && words > 0).then_some(request)
    }
}

/// The reason why the process did not become the program, and the exit code that a shell would use for it.
#[derive(Debug)]
pub(super) struct NotStarted {
    pub(super) code: i32,
    pub(super) reason: String,
}

/// The line that a process prints whose program is not there.
pub(crate) fn not_found_line(name: &str) -> String {
    format!("{}{}", child::MESSAGE_PREFIX, not_found(name))
}

fn not_found(name: &str) -> String {
    format!("{name}: command not found")
}

/// Waits for a request and becomes the program it names.
pub(super) fn exec_requested(defaults: &ExecDefaults, script: OwnedFd) -> Result<Infallible, NotStarted> {
    const DIRECTORY: i32 = 1;
    const CANNOT_RUN: i32 = 126;
    let not_started = |code, reason: String| NotStarted { code, reason };
    let mut text = Vec::new();
    io::Read::read_to_end(&mut std::fs::File::from(script), &mut text)
        .map_err(|error| not_started(CANNOT_RUN, format!("no request came: {error}")))?;
    let request = ExecRequest::decode(&text).ok_or_else(|| {
        not_started(
            CANNOT_RUN,
            "the server went away before it had said what to run".into(),
        )
    })?;
    if request.streams == OutputStreams::Joined {
        rustix::stdio::dup2_stderr(rustix::stdio::stdout())
            .map_err(|error| not_started(CANNOT_RUN, format!("its output: {error}")))?;
    }
    std::env::set_current_dir(request.directory)
        .map_err(|error| not_started(DIRECTORY, format!("{}: {error}", request.directory.display())))?;
    if !request.stdin.as_os_str().is_empty() {
        std::fs::File::open(request.stdin)
            .and_then(|file| Ok(rustix::stdio::dup2_stdin(file)?))
            .map_err(|error| not_started(CANNOT_RUN, format!("its standard input: {error}")))?;
    }
    if let [FILE_WORKER_BYTES, request] = request.words[..] {
        serve_files(request);
    }
    let environment = environment(defaults, &request);
    let words = c_strings(&request.words);
    let name = request.words.first().copied().unwrap_or_default();
    let mut denied = None;
    for file in candidates(name, &environment) {
        let Ok(path) = CString::new(file.as_os_str().as_bytes()) else {
            continue;
        };
        let mut error = child::exec(&path, &words, &environment);
        if error.raw_os_error() == Some(libc::ENOEXEC) {
            // A script that does not name its interpreter is run by the shell.
            let mut script = defaults
                .arguments
                .first()
                .cloned()
                .into_iter()
                .collect::<Vec<_>>();
            script.push(path);
            script.extend_from_slice(words.get(1..).unwrap_or_default());
            error = child::exec(&defaults.shell, &script, &environment);
        }
        // A file that is there but cannot run is the answer if no later directory has one that can.
        if denied.is_none() && (file.exists() || error.raw_os_error() != Some(libc::ENOENT)) {
            denied = Some(not_started(CANNOT_RUN, format!("{}: {error}", file.display())));
        }
    }
    let name = String::from_utf8_lossy(name);
    Err(denied.unwrap_or_else(|| not_started(NOT_FOUND, not_found(&name))))
}

/// Reads or changes files as asked, prints the answer, and ends the process.
fn serve_files(request: &[u8]) -> ! {
    held::open_process_to_others();
    // A file that grows too large is an error to clean up after, not a reason to die.
    // SAFETY: setting a signal to be ignored touches no memory.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let answer = match serde_json::from_slice(request) {
        Ok(request) => files::serve(&request),
        Err(error) => files::FileAnswer::refused(&error),
    };
    let printed = io::Write::write_all(&mut io::stdout(), answer.text.as_bytes());
    let code = if printed.is_ok() { answer.exit_code } else { 1 };
    child::exit_now(code)
}

/// The environment of every command, with the variables of the request.
fn environment(defaults: &ExecDefaults, request: &ExecRequest<'_>) -> Vec<CString> {
    let directory = [b"PWD=", request.directory.as_os_str().as_bytes()].concat();
    let mut variables = BTreeMap::new();
    let common = defaults.environment.iter().map(|variable| variable.to_bytes());
    for variable in common
        .chain([&*directory])
        .chain(request.variables.iter().copied())
    {
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

/// The parts of a request, which was split at NUL bytes, hold none.
fn c_strings(texts: &[&[u8]]) -> Vec<CString> {
    texts.iter().filter_map(|text| CString::new(*text).ok()).collect()
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
