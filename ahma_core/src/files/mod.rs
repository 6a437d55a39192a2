//! Reading and changing files for a model: numbered lines, exact edits, patches.
//!
//! Everything here runs in a confined process, so the kernel decides which paths can be reached and nothing here
//! checks that again. A request becomes new file contents by pure functions (`edit`, `patch`); `commit` then puts all
//! of them in place or none. `worker` is the way in.

mod commit;
mod edit;
mod patch;
mod patch_apply;
mod read;
mod similar;
mod text;
mod worker;

pub(crate) use worker::{FileAnswer, serve};
