//! Operations: one run of one plan, from queued to its one [`Outcome`].
//!
//! [`Engine`] takes a [`CommandPlan`](crate::call::CommandPlan) and gives back an [`Operation`] at once. Every operation
//! passes `queued → running → {completed, failed, cancelled, timed_out, interrupted}`, gets exactly one Outcome, and has
//! no process alive after it. What it printed is in its [`OutputLog`], up to the quota, however much that was.
//!
//! Decisions are synchronous values that can be tested as tables: `run` (how one process ends), `queue` (who may
//! run), `history` (who is forgotten), `excerpt` (what a result shows). The async part, `task`, only carries them out.
//!
//! This module never speaks a protocol and never starts a process itself; that is the work of `shell` and `jail`.

mod id;
mod outcome;
mod snapshot;
mod state;

mod engine;
mod handle;
mod history;
mod owner;
mod queue;
mod settings;

mod argument_files;
mod look;
mod observation;
mod run;
mod steps;
mod task;
mod verdict;

mod excerpt;
mod fresh;
mod grep;
mod log;
mod page;
mod pipes;
mod sight;
mod spool;
mod view;

pub use engine::{Engine, OperationChange};
pub use excerpt::{Excerpt, LeftOut};
pub use fresh::Fresh;
pub use handle::Operation;
pub use id::OperationId;
pub use log::{Loss, LossCause, OutputLog};
pub use look::directory_problem;
pub use outcome::{Background, Outcome, StepReport, StepState};
pub use owner::Owner;
pub use page::{OutputPage, OutputQuery, PageError, PageStart};
pub use settings::EngineSettings;
pub use snapshot::{Snapshot, StepPosition};
pub use state::{EndState, State};
pub use view::Gap;
