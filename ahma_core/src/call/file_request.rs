//! The request of a file tool, carried out by `files` in a confined process.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One call of a file tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum FileRequest {
    Read(ReadRequest),
    Write { path: PathBuf, content: String },
    Edit { path: PathBuf, edits: Vec<TextEdit> },
    Patch { patch: String },
}

/// Lines of one or several files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadRequest {
    pub paths: Vec<PathBuf>,
    /// First line shown, counted from 1.
    pub from_line: usize,
    pub max_lines: usize,
    /// Bytes of text for all paths together.
    pub max_bytes: usize,
}

/// One replacement in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextEdit {
    #[serde(alias = "old_string", alias = "old_str")]
    pub old: String,
    #[serde(alias = "new_string", alias = "new_str")]
    pub new: String,
    /// Replaces every occurrence; otherwise `old` must be unique.
    #[serde(default, alias = "replace_all")]
    pub all: bool,
}

impl FileRequest {
    /// The request on one line, without contents.
    pub(super) fn line(&self) -> String {
        match self {
            Self::Read(request) => {
                let paths: Vec<_> = request.paths.iter().map(|path| path.to_string_lossy()).collect();
                format!("file_read {}", paths.join(" "))
            }
            Self::Write { path, .. } => format!("file_write {}", path.display()),
            Self::Edit { path, .. } => format!("file_edit {}", path.display()),
            Self::Patch { .. } => "file_patch".into(),
        }
    }
}
