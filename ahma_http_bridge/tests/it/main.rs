//! The bridge as its clients see it, in front of a real child process.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

mod harness;

mod auth;
mod binary;
mod browser;
mod contract;
mod exposure;
mod fuzz;
mod hostile;
mod isolation;
mod layers;
mod load;
mod misbehaving;
mod modern;
mod oauth;
mod peers;
mod proxies;
mod shared;
mod sse_legacy;
mod streams;
mod tls;
