//! Bytes that a reader holds: no more than it may, and no half characters.

/// Drops an unfinished character at the end, left there by a cut or by bytes that are still to come.
pub(super) fn whole_characters(bytes: &[u8]) -> &[u8] {
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
pub(super) fn extend_up_to(buffer: &mut Vec<u8>, bytes: &[u8], max_bytes: usize) -> bool {
    let room = max_bytes.saturating_sub(buffer.len());
    buffer.extend_from_slice(&bytes[..bytes.len().min(room)]);
    bytes.len() <= room
}
