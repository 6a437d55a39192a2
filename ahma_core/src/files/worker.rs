//! Carries out one request and says what it did in a few lines for the model.

use std::{
    fmt::Write as _,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use super::{
    commit::{ContentChange, FileStamp, PlannedChange, commit},
    edit,
    patch::{self, FilePatch, PatchAction},
    patch_apply, read,
    text::{FileText, lines},
};
use crate::call::{FileRequest, TextEdit};

/// Largest file that is edited.
const MAX_EDITED_BYTES: u64 = 16 * 1024 * 1024;
/// New lines shown of each changed place, and of all of them.
const MAX_SHOWN_OF_RANGE: usize = 6;
const MAX_SHOWN: usize = 24;

/// Text and exit code of one request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileAnswer {
    pub(crate) text: String,
    pub(crate) exit_code: i32,
}

impl FileAnswer {
    pub(crate) fn refused(reason: &dyn std::fmt::Display) -> Self {
        Self {
            text: format!("{reason}\n"),
            exit_code: 1,
        }
    }
}

/// Serves a request in the current directory.
pub(crate) fn serve(request: &FileRequest) -> FileAnswer {
    let done = match request {
        FileRequest::Read(request) => {
            let answer = read::read(request);
            return FileAnswer {
                text: answer.text,
                exit_code: i32::from(!answer.complete),
            };
        }
        FileRequest::Write { path, content } => write(path, content),
        FileRequest::Edit { path, edits } => edit_file(path, edits),
        FileRequest::Patch { patch } => apply_patch(patch),
    };
    match done {
        Ok(text) => FileAnswer { text, exit_code: 0 },
        Err(reason) => FileAnswer::refused(&reason),
    }
}

/// A file as it was read, to be changed.
#[derive(Debug)]
struct OpenedFile {
    /// The file's real place: links stay links.
    real_path: PathBuf,
    text: FileText,
    stamp: FileStamp,
    hard_links: u64,
}

impl OpenedFile {
    fn read(path: &Path) -> Result<Self, String> {
        use std::os::unix::fs::MetadataExt as _;
        let failed = |reason: &dyn std::fmt::Display| format!("{}: {reason}", path.display());
        let real_path = fs::canonicalize(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => failed(&"no such file; file_write creates one"),
            _ => failed(&error),
        })?;
        let file = fs::File::open(&real_path).map_err(|error| failed(&error))?;
        let metadata = file.metadata().map_err(|error| failed(&error))?;
        if !metadata.is_file() {
            return Err(failed(&"not a regular file"));
        }
        if metadata.len() > MAX_EDITED_BYTES {
            return Err(failed(
                &"larger than 16 MiB: change it with a program, such as sed, in sandboxed_shell",
            ));
        }
        let mut bytes = Vec::new();
        file.take(MAX_EDITED_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| failed(&error))?;
        let text = FileText::decode(bytes).map_err(|error| failed(&error))?;
        Ok(Self {
            real_path,
            text,
            stamp: FileStamp::of(&metadata),
            hard_links: metadata.nlink(),
        })
    }

    fn replaced_by(self, content: Vec<u8>, executable: Option<bool>) -> PlannedChange {
        let content = self.text.encode(content);
        PlannedChange {
            path: self.real_path,
            kind: ContentChange::Replace {
                content,
                executable,
                seen: self.stamp,
            },
        }
    }

    fn removed(self) -> PlannedChange {
        PlannedChange {
            path: self.real_path,
            kind: ContentChange::Remove { seen: self.stamp },
        }
    }

    fn link_note(&self) -> &'static str {
        match self.hard_links {
            0 | 1 => "",
            _ => " (it had other hard links, which keep the old content)",
        }
    }
}

fn write(path: &Path, content: &str) -> Result<String, String> {
    let count = lines(content.as_bytes()).len();
    let size = format!("{count} line{}", if count == 1 { "" } else { "s" });
    let (change, answer) = match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(format!("{}: not a regular file", path.display())),
        Ok(metadata) => {
            let real_path = fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let kind = ContentChange::Replace {
                content: content.as_bytes().to_vec(),
                executable: None,
                seen: FileStamp::of(&metadata),
            };
            let answer = format!("replaced {}: {size}\n", path.display());
            (
                PlannedChange {
                    path: real_path,
                    kind,
                },
                answer,
            )
        }
        Err(_) => {
            let answer = format!("created {}: {size}\n", path.display());
            (created(path, content.as_bytes().to_vec(), false)?, answer)
        }
    };
    commit(vec![change]).map_err(|error| error.to_string())?;
    Ok(answer)
}

fn created(path: &Path, content: Vec<u8>, executable: bool) -> Result<PlannedChange, String> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => {
            Err(format!("{}: a link that leads nowhere", path.display()))
        }
        Ok(_) => Err(format!("{}: exists already", path.display())),
        Err(_) => Ok(PlannedChange {
            path: path.to_owned(),
            kind: ContentChange::Create { content, executable },
        }),
    }
}

fn edit_file(path: &Path, edits: &[TextEdit]) -> Result<String, String> {
    let file = OpenedFile::read(path)?;
    let edited =
        edit::apply(&file.text.content, edits).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut answer = format!("edited {}{}\n", path.display(), file.link_note());
    show_changed(&mut answer, &edited.content, &edited.changed);
    commit(vec![file.replaced_by(edited.content, None)]).map_err(|error| error.to_string())?;
    Ok(answer)
}

fn apply_patch(text: &str) -> Result<String, String> {
    let files = patch::parse(text).map_err(|error| error.to_string())?;
    let mut answer = String::new();
    let mut changes: Vec<PlannedChange> = Vec::new();
    let mut problems = Vec::new();
    for file in &files {
        match plan(file, &mut answer) {
            Ok(planned) => {
                for change in planned {
                    if changes.iter().any(|other| other.path == change.path) {
                        problems.push(format!("{}: changed twice in one patch", file.path));
                    }
                    changes.push(change);
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        problems.push("nothing was changed".into());
        return Err(problems.join("\n"));
    }
    commit(changes).map_err(|error| format!("{error}; nothing was changed"))?;
    Ok(answer)
}

/// The changes that the patch of one file asks for, and a line that says so.
fn plan(file: &FilePatch, answer: &mut String) -> Result<Vec<PlannedChange>, String> {
    let path = Path::new(&file.path);
    match &file.action {
        PatchAction::Add { content, executable } => {
            let change = created(path, content.clone().into_bytes(), *executable)?;
            let _ = writeln!(answer, "created {}", file.path);
            Ok(vec![change])
        }
        PatchAction::Delete => {
            // Not read as text: any file can be deleted.
            let metadata = fs::symlink_metadata(path).map_err(|error| format!("{}: {error}", file.path))?;
            if metadata.is_dir() {
                return Err(format!("{}: is a directory", file.path));
            }
            let _ = writeln!(answer, "deleted {}", file.path);
            Ok(vec![PlannedChange {
                path: path.to_owned(),
                kind: ContentChange::Remove {
                    seen: FileStamp::of(&metadata),
                },
            }])
        }
        PatchAction::Update {
            hunks,
            move_to,
            executable,
        } => {
            let opened = OpenedFile::read(path)?;
            let patched = patch_apply::apply(&opened.text.content, hunks)
                .map_err(|error| format!("{}: {error}", file.path))?;
            let _ = match move_to {
                Some(target) => writeln!(answer, "moved {} to {target}", file.path),
                None => writeln!(answer, "patched {}{}", file.path, opened.link_note()),
            };
            show_changed(answer, &patched.content, &patched.changed);
            let Some(target) = move_to else {
                return Ok(vec![opened.replaced_by(patched.content, *executable)]);
            };
            let was_executable = is_executable(&opened.real_path);
            let content = opened.text.encode(patched.content);
            let change = created(Path::new(target), content, executable.unwrap_or(was_executable))?;
            Ok(vec![change, opened.removed()])
        }
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

/// The changed lines with their new numbers, as many as help to check the change.
fn show_changed(answer: &mut String, content: &[u8], changed: &[(usize, usize)]) {
    let lines = lines(content);
    let mut left = MAX_SHOWN;
    for (index, (first, last)) in changed.iter().enumerate() {
        if left == 0 {
            let _ = writeln!(answer, "({} more places)", changed.len() - index);
            return;
        }
        let count = (last + 1 - first).min(MAX_SHOWN_OF_RANGE).min(left);
        for number in *first..first + count {
            if let Some(line) = lines.get(number - 1) {
                let _ = writeln!(answer, "{number}\t{}", String::from_utf8_lossy(line));
            }
        }
        left -= count;
        if last + 1 - first > count {
            let _ = writeln!(answer, "… to line {last}");
        }
    }
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
