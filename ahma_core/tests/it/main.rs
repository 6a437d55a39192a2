//! The integration tests of `ahma_core`: real programs, real kernel.

mod endings;
mod engine;
mod operations;
mod output;
mod processes;
mod sequences;
mod streams;
