//! The HTTP surface: [`router`] lists the paths, and every other file is a handler or what several share ([`gate`], [`body`],
//! [`exchange`]). axum stays here and in `http`.

mod admin;
mod archived;
mod body;
pub(crate) mod console;
mod delete;
mod events;
mod exchange;
mod gate;
mod health;
mod legacy;
mod modern;
mod post;
mod router;
mod sse_legacy;

pub use router::OperatorSide;
pub(crate) use router::{refusing, router};
