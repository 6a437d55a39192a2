//! Integration tests of `ahma_core`.

mod streams;
