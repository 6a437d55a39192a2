//! Finds and reads the files to check.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use ahma_core::{
    mtdf::{Problem, ToolSource, is_tool_file},
    toolbox::read_tool_file,
};
use anyhow::{Context, Result};

/// Files of one directory: they are checked together.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) directory: PathBuf,
    /// All tool files of the directory, in the order of their names.
    pub(crate) sources: Vec<ToolSource>,
    /// The files whose problems are reported; the others only answer questions about names.
    pub(crate) asked_for: BTreeSet<String>,
    /// Files that the server could not read either.
    pub(crate) unreadable: Vec<Problem>,
}

/// Files of a directory to report on.
#[derive(Default)]
struct Wanted {
    whole_directory: bool,
    files: BTreeSet<PathBuf>,
}

/// Reads every tool file that `paths` name, with its neighbours.
pub(crate) fn gather(paths: &[PathBuf]) -> Result<Vec<Group>> {
    let mut directories: BTreeMap<PathBuf, Wanted> = BTreeMap::new();
    for path in paths {
        let is_directory = match fs::metadata(path) {
            Ok(metadata) => metadata.is_dir(),
            // A link that leads nowhere is there, and reported as a file that is.
            Err(_) if path.is_symlink() => false,
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        if is_directory {
            directories.entry(path.clone()).or_default().whole_directory = true;
        } else {
            let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
            directories
                .entry(directory)
                .or_default()
                .files
                .insert(path.clone());
        }
    }
    directories
        .into_iter()
        .map(|(directory, wanted)| read_group(&directory, wanted))
        .collect()
}

fn read_group(directory: &Path, wanted: Wanted) -> Result<Group> {
    let mut files = tool_files(directory)?;
    let mut group = Group {
        directory: directory.to_owned(),
        ..Group::default()
    };
    let asked_for = if wanted.whole_directory {
        files.union(&wanted.files).cloned().collect()
    } else {
        wanted.files
    };
    files.extend(asked_for.iter().cloned());
    for path in files {
        let name = path.display().to_string();
        let is_asked_for = asked_for.contains(&path);
        match read_tool_file(&path) {
            Ok(text) => group.sources.push(ToolSource {
                name: name.clone(),
                text,
            }),
            Err(error) if is_asked_for => group.unreadable.push(unreadable(&path, &error)),
            Err(_) => {}
        }
        if is_asked_for {
            group.asked_for.insert(name);
        }
    }
    Ok(group)
}

fn tool_files(directory: &Path) -> Result<BTreeSet<PathBuf>> {
    let listed = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let failed = || format!("cannot list {}", listed.display());
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(listed).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let name = entry.file_name();
        // Only folders are passed over. What else cannot be read was meant as a tool file and is reported.
        if is_tool_file(&name.to_string_lossy()) && !entry.path().is_dir() {
            files.insert(directory.join(name));
        }
    }
    Ok(files)
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    let leads_nowhere = error.kind() == io::ErrorKind::NotFound && path.is_symlink();
    let message = match leads_nowhere {
        true => "the file is a link that leads nowhere".to_owned(),
        false => format!("the file cannot be read: {error}"),
    };
    Problem::of_file(path.display().to_string(), message)
}
