//! Facts about a run that rules may use besides its output.

use std::path::PathBuf;

use super::{CallArguments, Finding};

/// The call that a run belongs to.
#[derive(Debug, Clone, Default)]
pub struct RunContext {
    /// For `{$name}` in templates.
    pub arguments: CallArguments,
    /// Locations are relative to it.
    pub directory: Option<PathBuf>,
}

impl RunContext {
    /// Makes the location relative, as everything else is that a caller names.
    pub(super) fn settle(&self, finding: &mut Finding) {
        let Some(location) = &mut finding.location else {
            return;
        };
        let path = location.strip_prefix("file://").unwrap_or(location);
        let directory = self.directory.as_ref().and_then(|directory| directory.to_str());
        let below = directory.and_then(|directory| path.strip_prefix(directory)?.strip_prefix('/'));
        let settled = below.unwrap_or(path);
        let settled = settled.strip_prefix("./").unwrap_or(settled);
        if !settled.is_empty() && settled.len() != location.len() {
            *location = settled.to_owned();
        }
    }
}
