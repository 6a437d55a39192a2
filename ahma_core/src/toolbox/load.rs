//! Reads the tools directory, without interpreting the files.
//!
//! A running command can put links where tool files are looked for. They are not followed, because a complaint about a
//! file quotes its content. Only what was there at the start may be a link.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::DirEntry,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::MetadataExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Dir, Mode, OFlags},
    io::Errno,
};

use crate::{
    mtdf,
    sandbox::{
        held, real_path,
        regular_file::{read_opened_file, read_regular_file},
    },
};

/// A tool file as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceFile {
    /// The file's name, without the directory.
    pub(super) name: String,
    /// Its text, or why there is none.
    pub(super) text: Result<String, String>,
}

/// Far more than a tool file needs, and little enough to hold many of them.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The tools directory, and the links that led to it and from it when the server started.
#[derive(Debug, Clone)]
pub(super) struct ToolsDirectory {
    /// Without links, as far as it existed.
    directory: PathBuf,
    /// Files that are links, with where these lead.
    links: BTreeMap<OsString, PathBuf>,
}

impl ToolsDirectory {
    /// Looks at the directory before any command has run.
    pub(super) fn new(directory: &Path) -> Self {
        let directory = real_path(directory);
        let links = std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| Some((entry.file_name(), std::fs::read_link(entry.path()).ok()?)))
            .collect();
        Self { directory, links }
    }

    /// Reads every tool file directly in the directory, in the order of their names; subdirectories are left alone.
    pub(super) async fn read(&self) -> io::Result<Vec<SourceFile>> {
        let source = self.clone();
        // One trip to the blocking pool for all of them: a trip for each file costs more than reading it.
        tokio::task::spawn_blocking(move || source.read_all()).await?
    }

    /// A number that changes when a file is written, added or removed.
    pub(super) async fn version(&self) -> u64 {
        let directory = self.directory.clone();
        let look = move || {
            let mut hasher = DefaultHasher::new();
            let mut entries: Vec<_> = std::fs::read_dir(directory)
                .into_iter()
                .flatten()
                .flatten()
                .collect();
            entries.sort_by_key(DirEntry::file_name);
            for entry in entries {
                entry.file_name().hash(&mut hasher);
                if let Ok(found) = entry.metadata() {
                    (found.ino(), found.ctime(), found.ctime_nsec()).hash(&mut hasher);
                }
            }
            hasher.finish()
        };
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }

    fn read_all(&self) -> io::Result<Vec<SourceFile>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = held::open_without_links(&self.directory, flags);
        let directory = opened.map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => io::Error::other(
                "a link has come on the way to it since the server was started; start it again to follow that",
            ),
            _ => error,
        })?;
        let mut names: Vec<OsString> = Dir::read_from(&directory)?
            .map(|entry| Ok(OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned()))
            .filter(|name| name.as_ref().map_or(true, |name| is_tool_file(Path::new(name))))
            .collect::<io::Result<_>>()?;
        names.sort();
        let files = names.iter().filter_map(|name| self.read_one(&directory, name));
        Ok(files.collect())
    }

    /// None if it is no plain file (reading a pipe would never end), or if it was removed after it was listed.
    fn read_one(&self, directory: &OwnedFd, name: &OsStr) -> Option<SourceFile> {
        let text = self
            .open(directory, name)
            .and_then(|file| read_opened_file(file, MAX_FILE_BYTES))
            .and_then(text);
        if let Err(error) = &text
            && matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::InvalidInput
            )
        {
            return None;
        }
        Some(SourceFile {
            name: name.to_string_lossy().into_owned(),
            text: text.map_err(|error| format!("the file cannot be read: {error}")),
        })
    }

    fn open(&self, directory: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match rustix::fs::openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            // By where it led then: it may be another link by now.
            Err(Errno::LOOP) => match self.links.get(name) {
                Some(target) => Ok(rustix::fs::openat(directory, target, flags, Mode::empty())?),
                None => Err(io::Error::other(
                    "it is a link that has come since the server was started; start it again to follow that",
                )),
            },
            opened => Ok(opened?),
        }
    }
}

/// The text of one tool file, read as the server reads those of its directory, for programs that check files beforehand.
pub fn read_tool_file(path: &Path) -> io::Result<String> {
    read_regular_file(path, MAX_FILE_BYTES).and_then(text)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!("it is not UTF-8 text (byte {at})");
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

pub(super) fn is_tool_file(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| mtdf::is_tool_file(&name.to_string_lossy()))
}
