//! From bytes to frames: lines, JSON documents, XML elements.
//!
//! All readers here are pulled: they eat from a slice until a frame is complete and hand out a borrow of it. How the bytes
//! were cut into chunks never changes the frames, and each reader holds a bounded number of bytes.

mod displayed;
mod json_document;
mod line_tracker;
mod lines;
mod xml_elements;
mod xml_tokens;

pub use displayed::displayed;
pub(crate) use json_document::{CUT_OFF, DocumentReader};
pub use line_tracker::LineTracker;
pub(crate) use lines::LineReader;
pub(crate) use xml_elements::{Element, ElementReader};

#[cfg(test)]
mod json_document_tests;
#[cfg(test)]
mod line_tracker_tests;
#[cfg(test)]
mod lines_tests;
#[cfg(test)]
mod xml_elements_tests;

/// Drops an unfinished character at the end, left there by a cut or by bytes that are still to come.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let start_of_last = bytes.iter().rposition(|byte| byte & 0xC0 != 0x80).unwrap_or(0);
    let wanted = match bytes.get(start_of_last) {
        Some(0xC0..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF7) => 4,
        _ => 1,
    };
    if bytes.len() - start_of_last < wanted {
        &bytes[..start_of_last]
    } else {
        bytes
    }
}

/// Adds as many bytes as the limit allows; false when some had to be left out.
fn extend_up_to(buffer: &mut Vec<u8>, bytes: &[u8], max_bytes: usize) -> bool {
    let room = max_bytes.saturating_sub(buffer.len());
    buffer.extend_from_slice(&bytes[..bytes.len().min(room)]);
    bytes.len() <= room
}
