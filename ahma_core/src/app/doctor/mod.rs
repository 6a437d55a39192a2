//! `ahma_mcp doctor`: checks everything that a user may have to fix, with instructions.
//!
//! Nothing is changed, and one failed check never hides the others. The sandbox is judged by the same self-test that runs at
//! every start. Start with `run`.

mod check;
#[cfg(feature = "cluster")]
mod cluster;
mod machine;
mod project;
mod run;

pub(super) use run::run;
