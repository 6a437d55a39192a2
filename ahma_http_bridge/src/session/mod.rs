//! Sessions of the legacy protocol revisions: who may use one, what it waits for, and its event streams.
//!
//! [`state`] decides, [`session`] does, [`hub`] and [`isolated`] say who hears a child, [`registry`] keeps
//! them all, [`guests`] serves clients that have none. Nothing here knows axum.

mod activity;
mod asked;
mod greeter;
mod guests;
mod handshake;
mod hub;
mod isolated;
mod outward;
mod registry;
mod roots;
#[expect(clippy::module_inception, reason = "the session itself, beside its parts")]
mod session;
mod state;
mod subscriptions;
mod waiting;

pub(crate) use activity::{Activity, Uses};
pub(crate) use greeter::Greeter;
pub(crate) use guests::{Guests, Lent};
pub(crate) use hub::Hub;
pub(crate) use isolated::{Isolated, Nursery};
pub(crate) use outward::Outward;
pub(crate) use registry::{OpenError, Sessions};
pub(crate) use roots::RootsRule;
pub(crate) use session::{Greeting, Service, Session, SessionError, SessionParams, Transport};
pub(crate) use state::EndReason;
pub(crate) use waiting::Place;
