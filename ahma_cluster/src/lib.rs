//! Operations of several hosts on NATS JetStream.
//!
//! A *front end* takes a call and appends it to the log of its *pool*; a *worker* of that pool claims it, runs it and
//! appends its end. Each operation is one subject of a stream, and its state is a pure fold ([`Folded`]) over the events
//! there, in the order of the stream: no record is updated, and to claim means to append a claim and to read back
//! whether it was the first that counts. The queue is only a hint, the log decides.
//!
//! Pure modules:
//! - [`names`](Pool): pools, subjects and streams;
//! - [`request`](Request): what a worker is asked to run, signed;
//! - [`event`](Event), [`fold`](Folded), `index`: the log, one operation of it, and all of them;
//! - [`frame`](Frame): output in numbered pieces;
//! - [`roster`](Roster): the workers that live;
//! - [`permissions`](Role): what each role may do at NATS.
//!
//! Modules that speak to NATS:
//! - [`link`](Link): the connection;
//! - [`streams`](create), [`inspect`](inspect()): the streams of a pool, their settings and their faults;
//! - [`tail`](Tail): every event, as it comes;
//! - [`output`](OutputPublisher): publishing and reading what a command prints;
//! - [`sessions`](SessionRecords): what front ends share of their clients;
//! - [`worker`](claim): jobs and claims;
//! - [`front`](FrontEnd): submitting and cancelling;
//! - [`steward`](watch_over): verdicts about workers that are gone.
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
