//! The bridge as its clients see it, in front of a real child process.

mod harness;

mod contract;
mod hostile;
mod isolation;
mod load;
mod misbehaving;
mod modern;
mod shared;
mod sse_legacy;
mod streams;
