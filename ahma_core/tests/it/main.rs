//! The integration tests of `ahma_core`: real programs, real kernel.

mod layers;
mod processes;
mod streams;
