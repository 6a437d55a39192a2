//! Results of availability checks that several servers share: those that one listener starts for its sessions.
//!
//! Sessions have the same tools, and checking eighteen programs takes longer than the rest of a session's start. So the first
//! server that needs a result runs the check, and others wait for it or find it. Results are files in a directory of the
//! listener that no command can reach.
//!
//! Only queries of a version are shared: their result depends on the program and on the toolchain files of the project, which
//! are parts of the key. Any other command may depend on anything.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::{availability::CheckResult, program_lookup::FileIdentity};
use crate::mtdf::AvailabilityCommand;

/// Flags that print the version of a program.
const VERSION_FLAGS: [&str; 3] = ["--version", "-version", "-V"];

/// Files at the top of a project that choose between versions of a program.
const TOOLCHAIN_FILES: [&str; 12] = [
    "rust-toolchain",
    "rust-toolchain.toml",
    ".cargo",
    ".python-version",
    ".tool-versions",
    "mise.toml",
    ".mise.toml",
    ".nvmrc",
    ".node-version",
    ".npmrc",
    ".ruby-version",
    ".java-version",
];

/// A program changes without its file when a module of it is installed or removed.
const LIFE_OF_SUCCESS: Duration = Duration::from_secs(600);

/// A missing program may be installed at any time. A call of the tool asks again, whatever is kept.
const LIFE_OF_FAILURE: Duration = Duration::from_secs(60);

/// The directory of results. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct KnownAnswers {
    directory: PathBuf,
}

/// Everything that a result depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CheckKey {
    text: String,
}

#[derive(Serialize)]
struct KeyParts<'a> {
    argv: &'a [String],
    environment: Vec<(&'a String, &'a String)>,
    success_codes: &'a [i32],
    search_path: &'a str,
    program: &'a FileIdentity,
    /// The project, if the result depends on it.
    scope: Option<&'a Path>,
    project: Vec<FileIdentity>,
}

#[derive(Serialize, Deserialize)]
struct KeptAnswer {
    key: String,
    /// The reason why the tool is not available.
    reason: Option<String>,
    at: SystemTime,
}

/// Held while a check runs, so that no other server runs it too.
#[derive(Debug)]
pub(super) struct Turn {
    _lock: fs::File,
}

impl CheckKey {
    /// None for a check whose result is not shared.
    pub(super) fn of(
        check: &AvailabilityCommand,
        program: &Path,
        scope: &Path,
        search_path: &str,
        own_directories: &[PathBuf],
    ) -> Option<Self> {
        if check.directory.is_some() || !asks_for_version(&check.argv) {
            return None;
        }
        let program = FileIdentity::of(program).ok()?;
        let toolchain_files = TOOLCHAIN_FILES.iter().map(|name| scope.join(name));
        let project: Vec<FileIdentity> = (own_directories.iter().cloned().chain(toolchain_files))
            .filter_map(|path| FileIdentity::of(&path).ok())
            .collect();
        let depends_on_scope = program.is_below(scope) || !project.is_empty();
        let parts = KeyParts {
            argv: &check.argv,
            environment: check.environment.iter().collect(),
            success_codes: &check.success_codes,
            search_path,
            program: &program,
            scope: depends_on_scope.then_some(scope),
            project,
        };
        let text = serde_json::to_string(&parts).ok()?;
        Some(Self { text })
    }

    fn file_name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.text.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }
}

/// By a flag, or by a subcommand of that name.
fn asks_for_version(argv: &[String]) -> bool {
    let words = argv.iter().skip(1).map(String::as_str);
    let mut subcommands = words.clone().take_while(|word| !word.starts_with('-'));
    words.clone().any(|word| VERSION_FLAGS.contains(&word)) || subcommands.any(|word| word == "version")
}

impl KnownAnswers {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    pub(super) fn get(&self, key: &CheckKey) -> Option<CheckResult> {
        let text = fs::read_to_string(self.directory.join(key.file_name())).ok()?;
        let entry: KeptAnswer = serde_json::from_str(&text).ok()?;
        let life = match entry.reason {
            None => LIFE_OF_SUCCESS,
            Some(_) => LIFE_OF_FAILURE,
        };
        let is_fresh = entry.at.elapsed().is_ok_and(|age| age < life);
        (entry.key == key.text && is_fresh).then(|| entry.reason.map_or(Ok(()), Err))
    }

    /// The right to run a check; none while another server runs it.
    pub(super) fn turn(&self, key: &CheckKey) -> io::Result<Option<Turn>> {
        let path = self.directory.join(format!("{}.lock", key.file_name()));
        let lock = fs::File::options().create(true).append(true).open(path)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Turn { _lock: lock })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps a result. A failure to write it only costs time.
    pub(super) fn keep(&self, key: &CheckKey, answer: &CheckResult, _turn: &Turn) {
        let entry = KeptAnswer {
            key: key.text.clone(),
            reason: answer.as_ref().err().cloned(),
            at: SystemTime::now(),
        };
        let path = self.directory.join(key.file_name());
        let new = path.with_extension("new");
        let written = serde_json::to_string(&entry)
            .map_err(io::Error::from)
            .and_then(|text| fs::write(&new, text))
            .and_then(|()| fs::rename(&new, &path));
        if let Err(error) = written {
            tracing::debug!(%error, "the result of an availability check is not kept");
        }
    }
}

#[cfg(test)]
#[path = "known_answers_tests.rs"]
mod tests;
