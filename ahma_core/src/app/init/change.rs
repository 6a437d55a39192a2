//! A change of one file: shown, confirmed, made in one step.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use similar::TextDiff;

use super::run::say;
use crate::app::{exit::Failure, project::read_text};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileChange {
    pub(super) path: PathBuf,
    /// None if there is no such file yet.
    before: Option<String>,
    after: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeResult {
    Written,
    /// A dry run writes nothing.
    Shown,
    Refused,
}

impl FileChange {
    /// None if nothing changes.
    pub(super) fn of(path: PathBuf, before: Option<String>, after: String) -> Option<Self> {
        (before.as_ref() != Some(&after)).then_some(Self { path, before, after })
    }

    /// Makes the change, unless the file exists and `agree` rejects the diff.
    pub(super) fn make(
        &self,
        dry_run: bool,
        agree: impl FnOnce(&Self) -> bool,
    ) -> Result<ChangeResult, Failure> {
        let shown = self.path.display();
        if let Some(difference) = self.difference() {
            say(difference.trim_end());
        }
        if dry_run {
            let verb = if self.before.is_some() { "change" } else { "write" };
            say(&format!("would {verb} {shown}"));
            return Ok(ChangeResult::Shown);
        }
        if self.before.is_some() && !agree(self) {
            return Ok(ChangeResult::Refused);
        }
        self.write().map_err(|error| {
            Failure::user(format!("{shown} cannot be written: {error}"))
                .with_hint("check the owner and mode of its directory")
        })?;
        say(&format!("wrote {shown}"));
        Ok(ChangeResult::Written)
    }

    /// The diff of an existing file.
    fn difference(&self) -> Option<String> {
        let before = self.before.as_ref()?;
        let name = self.path.display().to_string();
        let difference = TextDiff::from_lines(before, &self.after);
        Some(
            difference
                .unified_diff()
                .header(&name, &format!("{name} (new)"))
                .to_string(),
        )
    }

    /// A reader sees the old text or the new, never half of one. A link keeps pointing where it does.
    fn write(&self) -> io::Result<()> {
        let target = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let directory = target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory)?;
        let draft = target.with_extension(format!("{}.new", std::process::id()));
        let written = (|| {
            let mut file = fs::File::create_new(&draft)?;
            file.write_all(self.after.as_bytes())?;
            if let Ok(metadata) = fs::metadata(&target) {
                file.set_permissions(metadata.permissions())?;
            }
            file.sync_all()?;
            fs::rename(&draft, &target)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written
    }
}

/// The text of a file; none if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<String>, Failure> {
    match read_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(
            Failure::user(format!("{} cannot be read: {error}", path.display()))
                .with_hint("move it out of the way, or make it readable text"),
        ),
    }
}
