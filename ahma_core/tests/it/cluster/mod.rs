//! A cluster on one machine: a real NATS server, real workers and front ends, real commands.

mod counting;
mod deaths;
mod following;
mod pool;
mod proxied;
mod setup;
