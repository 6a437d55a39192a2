//! One live connection to a server: how it is established, and how a request travels over it.

pub(crate) mod changes;
pub(crate) mod connect;
mod failure;
pub(crate) mod progress;
pub(crate) mod request;
mod tap;

pub use connect::{Attempt, ConnectReport, Step};
pub(crate) use connect::{ConnectFailure, Connection, connect};
pub(crate) use failure::{CREDENTIALS_REFUSED, Failure, describe_call, reason_of};
