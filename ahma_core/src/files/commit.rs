//! Puts new contents of files in place: all of them, or none.
//!
//! Every new content is first written to a file next to its target, so that a full disk is noticed before anything is
//! changed. Then each is exchanged with its target in one step; if one fails, those before it are exchanged back.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{Access, AtFlags, CWD, RenameFlags};

/// Permission bits of a new file, before the umask.
const NEW_FILE_MODE: u32 = 0o666;

/// One file as it shall be.
#[derive(Debug)]
pub(super) struct PlannedChange {
    /// Real path of the file: a link is changed at its target.
    pub(super) path: PathBuf,
    pub(super) kind: ContentChange,
}

#[derive(Debug)]
pub(super) enum ContentChange {
    Create {
        content: Vec<u8>,
        executable: bool,
    },
    /// Refused if the file is no longer the one that was read.
    Replace {
        content: Vec<u8>,
        executable: Option<bool>,
        seen: FileStamp,
    },
    Remove {
        seen: FileStamp,
    },
}

/// Identity and time stamps of a file: differ as soon as another program writes or replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileStamp {
    inode: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    pub(super) fn of(metadata: &fs::Metadata) -> Self {
        Self {
            inode: (metadata.dev(), metadata.ino()),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// A change that could not be made; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommitError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} was changed by another program meanwhile: read it again", path.display())]
    Changed { path: PathBuf },
    /// A file could not be put back after another had failed.
    #[error("{reason}; and {} could not be put back: its old content is in {}", path.display(), kept.display())]
    NotUndone {
        reason: String,
        path: PathBuf,
        kept: PathBuf,
    },
}

/// Makes all changes or none.
pub(super) fn commit(changes: Vec<PlannedChange>) -> Result<(), CommitError> {
    let mut made_directories = Vec::new();
    let mut staged = Vec::new();
    let result =
        stage_all(&changes, &mut staged, &mut made_directories).and_then(|()| place_all(&changes, &staged));
    // Where a file could not be put back, its old content stays where the error says.
    if !matches!(result, Err(CommitError::NotUndone { .. })) {
        for stage in &staged {
            // After success it is the old content, after failure the new one; gone where a new file was put in place.
            let _ = fs::remove_file(stage);
        }
    }
    if result.is_err() {
        for directory in made_directories.iter().rev() {
            // Fails if something else was put there, which then stays.
            let _ = fs::remove_dir(directory);
        }
    }
    result
}

/// Writes every new content next to its target. A removed file gets the name it will have until the end.
fn stage_all(
    changes: &[PlannedChange],
    staged: &mut Vec<PathBuf>,
    made_directories: &mut Vec<PathBuf>,
) -> Result<(), CommitError> {
    for change in changes {
        let path = &change.path;
        let failed = |source| CommitError::Io {
            path: path.clone(),
            source,
        };
        if let ContentChange::Create { .. } = change.kind {
            make_directories(path.parent(), made_directories).map_err(failed)?;
        }
        let stage = stage_path(path);
        match &change.kind {
            ContentChange::Remove { .. } => staged.push(stage),
            ContentChange::Create { content, executable } => {
                let mut file = create(&stage, NEW_FILE_MODE).map_err(failed)?;
                staged.push(stage);
                write(&mut file, content).map_err(failed)?;
                if *executable {
                    set_executable(&file, file.metadata().map_err(failed)?.mode(), true).map_err(failed)?;
                }
            }
            ContentChange::Replace {
                content, executable, ..
            } => {
                // Replacing a file asks for no permission on the file itself; writing to it would have.
                rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)
                    .map_err(|error| failed(error.into()))?;
                let mode = fs::metadata(path).map_err(failed)?.mode();
                let mut file = create(&stage, 0o600).map_err(failed)?;
                staged.push(stage);
                write(&mut file, content).map_err(failed)?;
                set_executable(&file, mode, executable.unwrap_or(mode & 0o111 != 0)).map_err(failed)?;
            }
        }
    }
    Ok(())
}

/// Puts every staged file in place; undoes what was done when one fails.
fn place_all(changes: &[PlannedChange], staged: &[PathBuf]) -> Result<(), CommitError> {
    for (index, (change, stage)) in changes.iter().zip(staged).enumerate() {
        if let Err(error) = place(change, stage) {
            for (change, stage) in changes[..index].iter().zip(staged).rev() {
                undo(change, stage).map_err(|_| CommitError::NotUndone {
                    reason: error.to_string(),
                    path: change.path.clone(),
                    kept: stage.clone(),
                })?;
            }
            return Err(error);
        }
    }
    Ok(())
}

fn place(change: &PlannedChange, stage: &Path) -> Result<(), CommitError> {
    let path = &change.path;
    let failed = |source: io::Error| CommitError::Io {
        path: path.clone(),
        source,
    };
    match &change.kind {
        ContentChange::Create { .. } => rename(stage, path, RenameFlags::NOREPLACE).map_err(failed),
        ContentChange::Replace { seen, .. } => {
            check(path, *seen)?;
            exchange(stage, path).map_err(failed)
        }
        ContentChange::Remove { seen } => {
            check(path, *seen)?;
            rename(path, stage, RenameFlags::NOREPLACE).map_err(failed)
        }
    }
}

fn undo(change: &PlannedChange, stage: &Path) -> io::Result<()> {
    match change.kind {
        ContentChange::Create { .. } => fs::remove_file(&change.path),
        ContentChange::Replace { .. } => exchange(stage, &change.path),
        ContentChange::Remove { .. } => rename(stage, &change.path, RenameFlags::NOREPLACE),
    }
}

fn check(path: &Path, seen: FileStamp) -> Result<(), CommitError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if FileStamp::of(&metadata) == seen => Ok(()),
        _ => Err(CommitError::Changed {
            path: path.to_owned(),
        }),
    }
}

/// Exchanges two files in one step. Where the file system cannot, the new one replaces the target in one step, and the
/// old content is kept by a second name until then.
fn exchange(stage: &Path, path: &Path) -> io::Result<()> {
    match rename(stage, path, RenameFlags::EXCHANGE) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
            let old = stage_path(path);
            fs::hard_link(path, &old)?;
            fs::rename(stage, path)?;
            fs::rename(old, stage)
        }
        result => result,
    }
}

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(CWD, from, CWD, to, flags)?)
}

/// Makes the missing directories, outermost first.
fn make_directories(directory: Option<&Path>, made: &mut Vec<PathBuf>) -> io::Result<()> {
    let missing: Vec<&Path> = directory
        .into_iter()
        .flat_map(Path::ancestors)
        .take_while(|directory| !directory.as_os_str().is_empty() && !directory.exists())
        .collect();
    for directory in missing.into_iter().rev() {
        fs::create_dir(directory)?;
        made.push(directory.to_owned());
    }
    Ok(())
}

fn create(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
}

fn write(file: &mut File, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    // A file must not be empty after a power failure because its name was on disk before its content.
    file.sync_data()
}

fn set_executable(file: &File, mode: u32, executable: bool) -> io::Result<()> {
    let mode = mode & 0o7777;
    let mode = match executable {
        // Run permission for those who have read permission.
        true => mode | (mode & 0o444) >> 2,
        false => mode & !0o111,
    };
    file.set_permissions(Permissions::from_mode(mode))
}

/// A hidden name next to the target that no other program uses.
fn stage_path(path: &Path) -> PathBuf {
    path.with_file_name(format!(".ahma-{:016x}", rand::random::<u64>()))
}

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
