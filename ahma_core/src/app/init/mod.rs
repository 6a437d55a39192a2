//! `ahma_mcp init`: the packs of tool files for a project, and the entry in its client's configuration.
//!
//! First all changes are computed, then each is made. An existing file is changed only after its diff was shown and
//! accepted; other entries and comments in it stay. Existing tool files belong to the user and are changed only on request.
//! A second run finds nothing to do. Start with `run`.

mod change;
mod entry;
mod run;
mod tool_files;

pub(super) use entry::find as find_entry;
pub(super) use run::run;
