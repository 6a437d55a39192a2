//! Makes a configured program safe to start next to a sandbox.
//!
//! The program runs outside the sandbox, with the user's privileges. So nothing that a command can write may decide what it is:
//! not a directory of PATH that it can write to, and not the working directory, which `npx` and `python -m` look into first.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use ahma_http_mcp_client::config::StdioCommand;

use crate::toolbox::first_executable;

/// The surroundings of a program.
#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) scope: PathBuf,
    /// The real directories that commands can write to, the scope among them.
    pub(super) writable: Vec<PathBuf>,
    /// The value of PATH.
    pub(super) path: OsString,
    /// The file this process was started from.
    pub(super) this_program: Option<PathBuf>,
}

/// The outcome of the check of a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Prepared {
    Ready,
    /// It can be started, and this should be known.
    Doubtful(String),
    /// It is this very program: mounting it would start it again, for ever.
    Ourselves,
    NotFound(String),
}

/// A directory that no command can write to.
const NEUTRAL_DIRECTORY: &str = "/";

/// Makes a nested `ahma_mcp`, however it is started, mount nothing.
const NO_MORE_MOUNTS: (&str, &str) = ("AHMA_NO_MCP_CONFIG", "1");

pub(super) fn prepare(command: &mut StdioCommand, around: &Surroundings) -> Prepared {
    let directories = around.safe_path();
    let found = match command.program.contains('/') {
        true => Some(around.scope.join(&command.program)),
        false => first_executable(&directories, &command.program),
    };
    let Some(program) = found else {
        return Prepared::NotFound(format!(
            "`{}` is not on PATH; directories of PATH that commands can write to are ignored",
            command.program
        ));
    };
    let real = program.canonicalize();
    if real.is_ok() && real.ok() == around.this_program {
        return Prepared::Ourselves;
    }
    command.program = program.to_string_lossy().into_owned();
    if let Ok(path) = std::env::join_paths(&directories) {
        let path = path.to_string_lossy().into_owned();
        command.env.entry("PATH".to_owned()).or_insert(path);
    }
    let (name, value) = NO_MORE_MOUNTS;
    command.env.insert(name.to_owned(), value.to_owned());
    command
        .working_directory
        .get_or_insert_with(|| NEUTRAL_DIRECTORY.into());
    match around.first_writable(command) {
        Some(path) => Prepared::Doubtful(format!(
            "runs {path} outside the sandbox, and commands in the sandbox can change that file; move it out of their reach"
        )),
        None => Prepared::Ready,
    }
}

impl Surroundings {
    /// The directories of PATH that no command can write to.
    fn safe_path(&self) -> Vec<PathBuf> {
        std::env::split_paths(&self.path)
            .filter(|directory| directory.is_absolute())
            .filter(|directory| {
                let real = directory.canonicalize();
                real.is_ok_and(|real| !self.is_writable(&real))
            })
            .collect()
    }

    /// The first file of the command line that a command can write to.
    fn first_writable<'a>(&self, command: &'a StdioCommand) -> Option<&'a str> {
        let directory = command.working_directory.as_deref().unwrap_or(Path::new("/"));
        let mut words = std::iter::once(&command.program).chain(&command.args);
        let is_writable = |word: &&String| {
            let real = directory.join(word).canonicalize();
            real.is_ok_and(|real| real.is_file() && self.is_writable(&real))
        };
        words.find(is_writable).map(String::as_str)
    }

    fn is_writable(&self, real: &Path) -> bool {
        self.writable.iter().any(|writable| real.starts_with(writable))
    }
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
