//! The console: pages for a person who wants to see what agents run, look into it, and stop it.
//!
//! What they show comes from the history, which every server of this user writes, so one console shows them all; a server
//! that has the console at `/` adds its sessions, and a front end of a cluster has its pool instead ([`pool`], [`pooled`]).
//! `ahma_http_bridge` lets people in and keeps everyone else out: a page
//! is only ever rendered for an [`Operator`](ahma_http_bridge::Operator), but for [`welcome`].
//!
//! The admin API reads the history by the same rules ([`archive`]).
//!
//! A page is complete without JavaScript. With it, parts that change come again as server-sent events ([`live`]): the
//! server looks for what others have written to the history, and calls pay nothing for that. What commands printed is
//! hostile: [`terminal`] makes text of it, and [`maud`] escapes whatever it is given.

mod archive;
mod audit;
mod buckets;
mod history;
mod layout;
mod live;
mod machine;
mod now;
mod operation;
mod output;
mod plot;
mod pool;
mod pooled;
mod query;
mod routes;
mod source;
mod terminal;
mod tools;
mod welcome;

pub use routes::{Console, ConsoleSettings};
