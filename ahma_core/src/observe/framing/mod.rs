//! From bytes to frames: lines, JSON documents, XML elements.
//!
//! All readers here are pulled: they eat from a slice until a frame is complete and hand out a borrow of it. How the bytes
//! were cut into chunks never changes the frames, and each reader holds a bounded number of bytes.

mod json_document;
mod lines;
mod xml_elements;
mod xml_tokens;

pub(crate) use json_document::{CUT_OFF, DocumentReader};
pub(crate) use lines::{LineReader, whole_characters};
pub use lines::{LineTracker, displayed};
pub(crate) use xml_elements::{Element, ElementReader};

#[cfg(test)]
mod json_document_tests;
#[cfg(test)]
mod line_tracker_tests;
#[cfg(test)]
mod lines_tests;
#[cfg(test)]
mod xml_elements_tests;
