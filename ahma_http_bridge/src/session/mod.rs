//! Sessions of the legacy protocol revisions, and the backends of clients that have none.
//!
//! | Client | State | Backend |
//! |---|---|---|
//! | with a session, shared backend | `Shared` until it ends | the one of the bridge |
//! | with a session of its own backend | every other state of [`state`] | its own, as soon as its scope is locked |
//! | without a session | none: each request stands alone | the shared one, or one of its principal ([`sessionless`]) |
//!
//! [`state`] decides for all sessions, [`session`] acts ([`from_client`] takes messages of the client, [`ending`] ends it),
//! [`hub`] and [`isolated`] receive the messages of a child, [`registry`] keeps all sessions. [`kept`] is the record of a
//! session that several bridges share, and [`take_over`] continues it. [`error`] names every reason why a request is not
//! answered, and whose fault it is. Nothing here knows axum or a status.

mod ending;
mod error;
mod event_stream;
mod from_client;
mod hub;
mod initialize_cache;
mod isolated;
mod kept;
mod negotiation;
mod open_call;
mod questions;
mod registry;
mod roots;
#[expect(clippy::module_inception, reason = "the session itself among its parts")]
mod session;
mod sessionless;
mod state;
mod streams;
mod subscriptions;
mod take_over;
mod waiting;

pub(crate) use error::{Fault, RequestError, RequestOutcome};
pub(crate) use event_stream::{Event, EventStream, Keep, Next, StreamReader};
pub(crate) use from_client::InitializeOutcome;
pub(crate) use hub::Hub;
pub(crate) use initialize_cache::InitializeCache;
pub(crate) use isolated::Isolated;
pub(crate) use kept::KeptSession;
pub(crate) use open_call::OpenCall;
pub(crate) use registry::{Sessions, TakenOver};
pub(crate) use roots::RootsRule;
pub(crate) use session::{ClientDetails, Service, Session, SessionParams, Transport};
pub(crate) use sessionless::{BackendLease, SessionlessBackends};
pub(crate) use state::EndReason;
pub(crate) use streams::BITS_OF_BRIDGE;
pub(crate) use waiting::WaitingRequest;
