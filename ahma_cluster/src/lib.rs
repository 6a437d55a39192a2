//! Operations of several hosts on NATS JetStream.
//!
//! A *front end* takes a call and appends it to the log of its *pool*; a *worker* of that pool claims it, runs it and
//! appends its end. Each operation is one subject of a stream, and its state is a pure fold ([`Folded`]) over the events
//! there, in the order of the stream: no record is updated, and to claim means to append a claim and to read back
//! whether it was the first that counts. The queue is only a hint, the log decides.
//!
//! Pure: [`names`](Pool), [`event`](Event), [`fold`](Folded), `index` (all operations), [`frame`](Frame), [`roster`](Roster), `request`. The rest speaks
//! to NATS: `link` (connection), `streams` (settings), `inspect` (their faults, and who is there), `tail` (every event, as it comes), `output` (publishing and reading
//! what a command prints), `sessions` (what front ends share of their clients), `worker` (jobs and claims), `front` (submitting and cancelling), `steward` (verdicts about workers
//! that are gone).
//!
//! This crate knows neither tools nor MCP: what an outcome or a progress report says is JSON that it passes on.

mod event;
mod fold;
mod frame;
mod index;
mod names;
mod permissions;
mod request;
mod roster;

mod link;
mod streams;

mod inspect;

mod output;
mod sessions;
mod tail;

mod front;
mod steward;
mod worker;

pub use event::{End, Event};
pub use fold::{Effect, EndCause, Folded, Stage};
pub use frame::{Assembler, Frame, FrameKind};
pub use front::{FrontEnd, OperationLog, SubmitError};
pub use index::Entry;
pub use inspect::{Copies, Heard, StreamReport, inspect, roll_call};
pub use link::{Credentials, Link, LinkError, LinkSettings};
pub use names::{BadPool, Pool, new_name, owner_of};
pub use output::{Goal, OutputPublisher, Piece, ReadEnd, read_output};
pub use permissions::{Role, RoleKey, account};
pub use request::{BadRequest, Request, RequestKeys, SignedRequest, Signer};
pub use roster::{Beat, Roster};
pub use sessions::{SessionRecord, SessionRecords};
pub use steward::watch_over;
pub use streams::{PoolLimits, PoolState, StreamState, check, check_log, create, state};
pub use tail::Tail;
pub use worker::{
    Claim, Control, ControlAnswer, Job, JobDelivery, Reported, claim, controls, keep_beating, next_job,
};
