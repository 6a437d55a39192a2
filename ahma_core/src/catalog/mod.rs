//! The tools that are offered: names, descriptions, input schemas.
//!
//! Built from valid tool files and never changed afterwards; a reload builds a new one.
//! Knows no protocol: the `mcp` layer turns a [`Tool`] into what goes over the wire.

mod build;
mod builtin;
mod familiar_names;
mod input_schema;
mod search;
mod signature;
mod tool;

#[cfg(test)]
mod catalog_tests;

pub(crate) use input_schema::object_schema;
pub use search::SearchIndex;
pub use signature::{Described, arguments, usage};
pub use tool::{Catalog, CatalogSettings, Expose, Tool};
