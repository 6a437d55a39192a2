//! Complaints of programs in their own words, and the paths they name.

use std::path::{Path, PathBuf};

use crate::call::normalise;

/// The complaint in a line of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Complaint {
    pub(super) kind: ComplaintKind,
    /// Something was to be made or changed.
    pub(super) of_writing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComplaintKind {
    Refused,
    /// Refused, and it was a change.
    ReadOnly,
    Missing,
}

impl Complaint {
    pub(super) fn is_refusal(self) -> bool {
        match self.kind {
            ComplaintKind::Refused | ComplaintKind::ReadOnly => true,
            ComplaintKind::Missing => false,
        }
    }
}

const REFUSALS: &[&str] = &[
    "permission denied",
    "operation not permitted",
    "device or resource busy",
    "eacces",
    "eperm",
];

const REFUSED_CHANGES: &[&str] = &["read-only file system", "erofs"];

const ABSENCES: &[&str] = &["no such file or directory", "enoent"];

/// Phrases of programs that failed to make or change something.
const ATTEMPTS_TO_WRITE: &[&str] = &[
    "cannot touch",
    "cannot create",
    "cannot make",
    "cannot move",
    "cannot remove",
    "could not write",
    "failed to create",
    "failed to write",
    "for writing",
    "mkdir",
    "unlink",
];

/// The complaint of a line in lower case.
pub(super) fn complaint(lower: &str) -> Option<Complaint> {
    let has = |words: &[&str]| words.iter().any(|words| lower.contains(words));
    let kind = if has(REFUSED_CHANGES) {
        ComplaintKind::ReadOnly
    } else if has(REFUSALS) {
        ComplaintKind::Refused
    } else if has(ABSENCES) {
        ComplaintKind::Missing
    } else {
        return None;
    };
    Some(Complaint {
        kind,
        of_writing: has(ATTEMPTS_TO_WRITE),
    })
}

/// The line ends as programs complain: with the system's words for an error, and perhaps its number.
pub(super) fn ends_with_complaint(line: &str) -> bool {
    let lower = line.trim_end().trim_end_matches('.').to_lowercase();
    let words = lower.split(" (os error").next().unwrap_or(&lower);
    [REFUSALS, REFUSED_CHANGES, ABSENCES]
        .concat()
        .iter()
        .any(|complaint| words.ends_with(complaint))
}

/// Paths in a line of output; relative ones as if the command ran at the top of the scope.
pub(super) fn paths<'a>(line: &'a str, scope: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
    let ends = |character: char| character.is_whitespace() || "'\"`‘’“”:,;()[]<>".contains(character);
    line.split(ends)
        .filter(|word| word.len() > 1)
        // No flag opens these: the first are no files of the host, and sockets are closed whatever their path.
        .filter(|word| {
            let is_special = ["//", "/dev/tcp/", "/dev/udp/", "/dev/fd/", "/proc/"]
                .iter()
                .any(|start| word.starts_with(start));
            !is_special && !word.ends_with(".sock")
        })
        .filter_map(move |word| match word.strip_prefix('/') {
            Some(_) => Some(PathBuf::from(word)),
            None if word.contains('/') || word.starts_with('.') => Some(normalise(&scope.join(word))),
            None => None,
        })
}
