//! Verification that a trail is as it was written.

use std::fs::File;
use std::path::Path;

use serde_json::Value;

use super::trail::{KEPT_FILES, hash_of, lines_of, origin, predecessor};

/// A defect of a trail.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("it is empty, so everything in it may have been removed")]
    Empty,
    #[error("line 1 does not follow from {before}: lines were removed or added there, or line 1 was changed")]
    Beginning { before: String },
    #[error(
        "line {line} does not follow from line {}: one of the two was changed, or a line was removed or added there",
        line - 1
    )]
    Broken { line: usize },
    #[error(
        "line {line} is unfinished: the server ended while it wrote it, or the end of the file was cut off; if the server starts again it notes this and goes on"
    )]
    Unfinished { line: usize },
    #[error("line {line} is not an audit line: {reason}")]
    Unreadable { line: usize, reason: String },
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl AuditError {
    /// Number of intact lines from the beginning.
    pub fn intact_lines(&self) -> usize {
        match self {
            // What the last of them says may have been changed: the line that would tell is the broken one.
            Self::Broken { line } | Self::Unfinished { line } | Self::Unreadable { line, .. } => {
                line.saturating_sub(2)
            }
            Self::Empty | Self::Beginning { .. } | Self::Io(_) => 0,
        }
    }
}

/// Checks a file of a trail and gives back its number of lines.
///
/// Its first line must begin a trail, or follow from the last line of the file set aside before it. Of the oldest file
/// that is kept this cannot be verified: the one before it is gone.
pub fn verify_audit(path: &Path) -> Result<usize, AuditError> {
    let (before, number) = predecessor(path);
    let begins_anywhere = number == KEPT_FILES && !before.exists();
    let mut expected = origin(&before)?;
    let mut count = 0;
    for line in lines_of(File::open(path)?) {
        let line = line?;
        count += 1;
        if line.is_unfinished() {
            return Err(AuditError::Unfinished { line: count });
        }
        let value: Value = serde_json::from_slice(&line.text).map_err(|error| AuditError::Unreadable {
            line: count,
            reason: error.to_string(),
        })?;
        let follows = value["previous"] == expected.as_str();
        match count {
            1 if !follows && !begins_anywhere => {
                let before = match before.exists() {
                    true => before.display().to_string(),
                    false => "the beginning of a trail".to_owned(),
                };
                return Err(AuditError::Beginning { before });
            }
            2.. if !follows => return Err(AuditError::Broken { line: count }),
            _ => expected = hash_of(&line.text),
        }
    }
    match count {
        0 => Err(AuditError::Empty),
        count => Ok(count),
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
