//! Values that a command takes as a file: written before it starts, removed when it has ended.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use crate::call::{ArgumentFile, Command, Program};

/// The files of one command; removed on drop.
#[derive(Debug, Default)]
pub(super) struct ArgumentFiles {
    written: Vec<PathBuf>,
    /// The one for standard input, as the command sees it.
    pub(super) stdin: Option<PathBuf>,
}

impl ArgumentFiles {
    /// Writes the files of `command` into `directory` and gives the program with their paths as it sees them, below
    /// `visible`. Other commands can write in that directory, so a name that exists is never used.
    pub(super) async fn write(
        command: &Command,
        directory: PathBuf,
        visible: PathBuf,
    ) -> io::Result<(Self, Program)> {
        let program = command.program.clone();
        if command.files.is_empty() && command.stdin.is_none() {
            return Ok((Self::default(), program));
        }
        let (files, stdin) = (command.files.clone(), command.stdin.clone());
        let write = move || {
            let (mut files, program) = Self::write_all(&files, program, &directory, &visible)?;
            if let Some(text) = stdin {
                files.stdin = Some(visible.join(files.add(&directory, &text)?));
            }
            Ok((files, program))
        };
        tokio::task::spawn_blocking(write).await?
    }

    fn write_all(
        wanted: &[ArgumentFile],
        mut program: Program,
        directory: &Path,
        visible: &Path,
    ) -> io::Result<(Self, Program)> {
        let mut files = Self::default();
        for ArgumentFile { index, contents } in wanted {
            let name = files.add(directory, contents)?;
            if let Program::Argv(words) = &mut program
                && let Some(word) = words.get_mut(*index)
            {
                *word = visible.join(&name).to_string_lossy().into_owned();
            }
        }
        Ok((files, program))
    }

    /// Writes one file and gives its name.
    fn add(&mut self, directory: &Path, contents: &str) -> io::Result<String> {
        let name = format!("argument-{:016x}", rand::random::<u64>());
        let path = directory.join(&name);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        self.written.push(path);
        file.write_all(contents.as_bytes())?;
        Ok(name)
    }
}

impl Drop for ArgumentFiles {
    fn drop(&mut self) {
        for path in &self.written {
            // The command may have removed or moved it.
            if let Err(error) = fs::remove_file(path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(path = %path.display(), %error, "cannot remove an argument file");
            }
        }
    }
}

#[cfg(test)]
#[path = "argument_files_tests.rs"]
mod tests;
