//! Packs: the tool files that come with the program, sorted by purpose.
//!
//! They are data, the directory `packs` of the repository: `packs.json` says which there are and what a project for each
//! looks like. This code knows no tool by name. `shipped` has the files, `report` is `ahma_mcp packs`.

mod report;
mod shipped;

pub(super) use report::run;
pub(super) use shipped::{Pack, chosen, languages, names};
