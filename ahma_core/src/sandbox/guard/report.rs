//! Changes of protected paths that the guard found, and the sentences a result has about them.

use std::path::PathBuf;

/// Sentences in one result. The rest is counted.
const MAX_SENTENCES: usize = 20;

/// One protected path that a command changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedChange {
    pub path: PathBuf,
    pub kind: ChangeKind,
    /// Everything is as it was before.
    pub undone: bool,
    /// The command's version in the quarantine.
    pub quarantined: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    Created,
    Changed,
    Removed,
    /// It could not be looked at, now or before.
    Unknown,
}

impl ProtectedChange {
    /// The sentences of a result. Changes that were not undone come first: they need attention.
    pub fn sentences(changes: &[Self]) -> Vec<String> {
        let mut ordered: Vec<&Self> = changes.iter().collect();
        ordered.sort_by_key(|change| change.undone);
        let (told, rest) = ordered.split_at(ordered.len().min(MAX_SENTENCES));
        let mut sentences: Vec<String> = told.iter().map(|change| change.sentence()).collect();
        if !rest.is_empty() {
            let ending = if rest.iter().all(|change| change.undone) {
                "which was undone"
            } else {
                "and not all of that could be undone"
            };
            sentences.push(format!(
                "{} more protected files were changed, {ending}.",
                rest.len()
            ));
        }
        sentences
    }

    pub(super) fn sentence(&self) -> String {
        let path = self.path.display();
        let kept = self.quarantined.as_ref().map_or_else(String::new, |kept| {
            format!(" The command's version is kept at {}.", kept.display())
        });
        let what = match (self.kind, self.undone) {
            (ChangeKind::Created, true) => format!("the command created {path}; it was removed"),
            (ChangeKind::Created, false) => {
                format!("the command created {path}, and it could not be moved away; remove it yourself")
            }
            (ChangeKind::Changed, true) => format!("the command changed {path}; it was restored"),
            (ChangeKind::Changed, false) if self.quarantined.is_some() => {
                format!("the command changed {path}; it was moved away, and could not be restored as it was")
            }
            (ChangeKind::Changed, false) => {
                format!("the command changed {path}, and it could not be restored; look at it yourself")
            }
            (ChangeKind::Removed, true) => format!("the command removed {path}; it was restored"),
            (ChangeKind::Removed, false) => {
                format!("the command removed {path}, and it could not be restored as it was")
            }
            (ChangeKind::Unknown, _) => {
                format!("{path} could not be checked; look at it yourself")
            }
        };
        format!(
            "Protected file: {what}. Programs outside the sandbox act on it.{kept} \
             Start the server with --trust-workspace-config to allow this."
        )
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
