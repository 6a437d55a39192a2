//! Reads the tools directory. What the files mean is not its business.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::mtdf;

/// A tool file as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceFile {
    /// The file's name, without the directory.
    pub(super) name: String,
    /// Its text, or why there is none.
    pub(super) text: Result<String, String>,
}

/// What stands in the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Directory {
    /// In the order of their names.
    Files(Vec<SourceFile>),
    Missing,
    Unreadable(String),
}

/// Far more than a tool file needs, and little enough to hold many of them.
const LARGEST_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Reads every tool file directly in `directory`; sub-folders are left alone.
pub(super) async fn read(directory: &Path) -> Directory {
    let directory = directory.to_owned();
    // One trip to the blocking pool for all of them: a trip for each file costs more than reading it.
    match tokio::task::spawn_blocking(move || read_all(&directory)).await {
        Ok(Ok(files)) => Directory::Files(files),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Directory::Missing,
        Ok(Err(error)) => Directory::Unreadable(error.to_string()),
        Err(error) => Directory::Unreadable(error.to_string()),
    }
}

pub(super) fn is_tool_file(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| mtdf::is_tool_file(&name.to_string_lossy()))
}

fn read_all(directory: &Path) -> io::Result<Vec<SourceFile>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)?
        .map(|entry| Ok(entry?.path()))
        .filter(|path| path.as_ref().map_or(true, |path| is_tool_file(path)))
        .collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths.iter().filter_map(|path| read_one(path)).collect())
}

/// None if it is no plain file (reading a pipe would never end), or if it was removed after it was listed.
fn read_one(path: &Path) -> Option<SourceFile> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let text = fs::metadata(path).and_then(|metadata| {
        if !metadata.is_file() {
            return Ok(None);
        }
        if metadata.len() > LARGEST_FILE_BYTES {
            return Err(io::Error::other(format!(
                "it is larger than {LARGEST_FILE_BYTES} bytes"
            )));
        }
        fs::read_to_string(path).map(Some)
    });
    match text {
        Ok(text) => Some(SourceFile {
            name,
            text: Ok(text?),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(SourceFile {
            name,
            text: Err(format!("the file cannot be read: {error}")),
        }),
    }
}
