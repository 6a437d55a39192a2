//! Operations: one run of one plan, from queued to its one [`Outcome`].
//!
//! [`Engine`] takes a [`CommandPlan`](crate::call::CommandPlan) and gives back an [`Operation`] at once. Every operation
//! passes `queued → running → {completed, failed, cancelled, timed_out, interrupted}`, gets exactly one Outcome, and has
//! no process alive after it. What it printed is in its [`OutputLog`], up to the quota, however much that was.
//!
//! Decisions are synchronous values that can be tested as tables: `run` (how one process ends), `queue` (which may
//! run), `remembered` (which are forgotten), `excerpt` (what a result shows). The async parts, `task` and `worker`, only
//! carry them out.
//!
//! This module never speaks a protocol and never starts a process itself; that is the work of `shell` and `jail`.

mod id;
mod state;

mod cell;
mod cluster;
mod engine;
mod handle;
mod invocation;
mod queue;
mod remembered;
mod settings;
mod shown;

mod argument_files;
mod command_result;
mod observation;
mod readiness;
mod run;
mod scope_check;
mod steps;
mod task;
mod worker;

mod excerpt;
mod frames;
mod grep;
mod line_merge;
mod log;
mod log_view;
mod mirror;
mod page;
mod pipes;
mod progress_state;
mod spool;
mod spool_file;
mod tail_cursor;

pub use cluster::{Cluster, ClusterTask, LivingWorker, PoolFilter, PoolOperation, Whose, Workforce};
pub use engine::{Engine, OperationChange};
pub use excerpt::{Excerpt, ExcerptFocus, LeftOut};
pub use handle::Operation;
pub use id::{CallOrigin, ClientId, OperationId, Principal};
pub use log::{Loss, LossCause, OutputLog};
pub use log_view::OutputGap;
pub use page::{OutputPage, OutputQuery, PageError, PageStart};
pub use scope_check::preflight;
pub use settings::{EngineSettings, Journal, OutputTap};
pub use spool_file::SpoolFile;
pub use state::{
    Background, EndState, OperationState, Outcome, Snapshot, StepPosition, StepReport, StepState,
};
pub use tail_cursor::NewOutput;

pub(crate) use cell::{PlaceInQueue, RecalledOperation, RecordedCall};
pub(crate) use frames::{FrameStep, FrameWriter};
pub(crate) use invocation::rfc3339;
pub(crate) use log::RecalledOutput;
pub(crate) use mirror::Mirror;
pub(crate) use progress_state::RecalledProgress;
pub(crate) use spool_file::{COMPRESSED_EXTENSION, SpoolPlace};
