//! A cluster on one machine: a real NATS server, real workers and front ends, real commands.

mod admin;
mod console;
mod cost;
mod counting;
mod deaths;
mod following;
mod looking;
mod pool;
mod proxied;
mod sessions;
mod setup;
mod tls;
