//! The part of an output that a result carries: head and tail, with one line between that says exactly what is missing.

use serde::{Deserialize, Serialize};

use super::{EndState, Loss, LossCause, OperationId, log::count_newlines};

/// The part of an output that is worth more where not all can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExcerptFocus {
    /// Both ends, as of a long list.
    Ends,
    /// Mostly the end, where errors are.
    End,
}

impl ExcerptFocus {
    /// The focus of a result.
    pub(crate) fn of(end: EndState) -> Self {
        match end {
            EndState::Completed => Self::Ends,
            EndState::Failed | EndState::Cancelled | EndState::TimedOut | EndState::Interrupted => Self::End,
        }
    }

    /// Bytes of `budget` for the head.
    fn head_bytes(self, budget: usize) -> usize {
        match self {
            Self::Ends => budget / 2,
            Self::End => budget / 5,
        }
    }
}

/// An output so many times longer than an answer is searched, not read.
const MUCH_LONGER: u64 = 10;

/// Bytes shown of a successful output that is much longer than an answer.
const GLIMPSE_BYTES: usize = 1_200;

/// Room for the line between head and tail, whatever numbers it holds.
const MARKER_BYTES: usize = 400;

/// Output as a result shows it, decoded lossily.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    pub text: String,
    /// Of the whole output; an unfinished last line counts.
    pub total_lines: u64,
    pub total_bytes: u64,
    pub left_out: Option<LeftOut>,
}

/// Output that an answer does not carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub bytes: u64,
    // Those of which at least one byte is left out.
    pub lines: u64,
    /// The first line left out; `output` takes it as `from_line`.
    pub from_line: u64,
    // It may be inside that line.
    /// The first byte left out; `output` takes it as `from_byte`.
    pub from_byte: u64,
}

/// Both ends of an output, each at least as long as the excerpt may be, or the whole of it.
#[derive(Debug)]
pub(super) struct HeadAndTail<'a> {
    pub(super) head: &'a [u8],
    pub(super) tail: &'a [u8],
    pub(super) total_bytes: u64,
    pub(super) newlines: u64,
    pub(super) total_lines: u64,
    pub(super) loss: Option<Loss>,
}

/// Makes an excerpt of at most `max_bytes`.
pub(super) fn cut(ends: HeadAndTail<'_>, max_bytes: usize, focus: ExcerptFocus, id: &OperationId) -> Excerpt {
    let whole = ends.head.len() as u64 == ends.total_bytes;
    if whole && shown_len(ends.head) <= max_bytes {
        return Excerpt {
            text: String::from_utf8_lossy(ends.head).into_owned(),
            total_lines: ends.total_lines,
            total_bytes: ends.total_bytes,
            left_out: None,
        };
    }

    let is_much_longer = ends.total_bytes > MUCH_LONGER * max_bytes as u64;
    let max_bytes = match focus {
        ExcerptFocus::Ends if is_much_longer => max_bytes.min(GLIMPSE_BYTES),
        ExcerptFocus::Ends | ExcerptFocus::End => max_bytes,
    };
    let budget = max_bytes.saturating_sub(MARKER_BYTES);
    let head = &ends.head[..head_cut(ends.head, focus.head_bytes(budget))];
    let tail_start = tail_cut(ends.tail, budget - shown_len(head));
    let tail = &ends.tail[tail_start..];

    let newlines_before_tail = ends.newlines - count_newlines(tail);
    // The last byte left out may itself be the newline that ends its line.
    let ends_line = tail_start > 0 && ends.tail[tail_start - 1] == b'\n';
    let last_line = newlines_before_tail + u64::from(!ends_line);
    let from_line = count_newlines(head) + 1;
    let left_out = LeftOut {
        bytes: ends.total_bytes - head.len() as u64 - tail.len() as u64,
        lines: last_line.max(from_line) - from_line + 1,
        from_line,
        from_byte: head.len() as u64,
    };

    let mut text = String::from_utf8_lossy(head).into_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let goes_on = match head.last() {
        None | Some(b'\n') => format!("\"from_line\": {from_line}"),
        // From the line on would be what was just shown.
        Some(_) => format!("\"from_byte\": {}", left_out.from_byte),
    };
    text.push_str(&marker(&left_out, ends.loss.as_ref(), id, &goes_on));
    text.push_str(&String::from_utf8_lossy(tail));
    Excerpt {
        text,
        total_lines: ends.total_lines,
        total_bytes: ends.total_bytes,
        left_out: Some(left_out),
    }
}

/// The marker is a line of its own, and ends with this.
const MARKER_END: &str = " ...]\n";

impl Excerpt {
    /// The part behind what is left out; all of it if that is nothing.
    pub(crate) fn end(&self) -> &str {
        let behind = self.text.rsplit_once(MARKER_END).map(|(_, end)| end);
        match &self.left_out {
            Some(_) => behind.filter(|end| !end.is_empty()).unwrap_or(&self.text),
            None => &self.text,
        }
    }
}

fn marker(left_out: &LeftOut, loss: Option<&Loss>, id: &OperationId, goes_on: &str) -> String {
    let LeftOut {
        bytes,
        lines,
        from_line,
        from_byte: _,
    } = left_out;
    let place = match lines {
        1 => format!("{bytes} bytes of line {from_line}"),
        _ => format!("lines {from_line} to {}", from_line + lines - 1),
    };
    let lost = match loss {
        None => String::new(),
        Some(Loss {
            bytes,
            cause: LossCause::Quota,
        }) => {
            format!("; {bytes} bytes before the end were over the quota and are not kept")
        }
        Some(Loss {
            bytes,
            cause: LossCause::Storage(_),
        }) => {
            format!("; {bytes} bytes before the end could not be stored")
        }
    };
    format!(
        "[... {place} left out{lost}; \
         to read them: output {{\"operation_id\": \"{id}\", {goes_on}}}{MARKER_END}"
    )
}

/// The cut before which at most `budget` bytes are shown: at a line border if that costs less
/// than half of it, else between two characters.
pub(super) fn head_cut(bytes: &[u8], budget: usize) -> usize {
    let cut = fitting_prefix(bytes, budget);
    if cut == bytes.len() {
        return cut;
    }
    match memchr::memrchr(b'\n', &bytes[..cut]) {
        Some(newline) if newline + 1 >= cut / 2 => newline + 1,
        _ => cut,
    }
}

/// The cut after which at most `budget` bytes are shown; see [`head_cut`].
pub(super) fn tail_cut(bytes: &[u8], budget: usize) -> usize {
    let cut = fitting_suffix(bytes, budget);
    if cut == 0 || bytes[cut - 1] == b'\n' {
        return cut;
    }
    let tail = &bytes[cut..];
    match memchr::memchr(b'\n', tail) {
        Some(newline) if newline + 1 < tail.len() && newline < tail.len() / 2 => cut + newline + 1,
        _ => cut,
    }
}

/// Length of the longest prefix that, decoded lossily, takes at most `budget` bytes.
pub(super) fn fitting_prefix(bytes: &[u8], budget: usize) -> usize {
    let mut room = budget;
    let mut length = 0;
    // A character never shrinks by decoding, so nothing past `budget` can fit.
    for chunk in bytes[..bytes.len().min(budget + 4)].utf8_chunks() {
        let valid = chunk.valid();
        if valid.len() > room {
            return length
                + (0..=room)
                    .rev()
                    .find(|&end| valid.is_char_boundary(end))
                    .unwrap_or(0);
        }
        length += valid.len();
        room -= valid.len();
        if !chunk.invalid().is_empty() {
            if room < char::REPLACEMENT_CHARACTER.len_utf8() {
                return length;
            }
            length += chunk.invalid().len();
            room -= char::REPLACEMENT_CHARACTER.len_utf8();
        }
    }
    length
}

/// Start of the longest suffix that, decoded lossily, takes at most `budget` bytes.
fn fitting_suffix(bytes: &[u8], budget: usize) -> usize {
    let mut start = match bytes.len().saturating_sub(budget) {
        0 => 0,
        inside => character_start(bytes, inside),
    };
    let mut surplus = shown_len(&bytes[start..]).saturating_sub(budget);
    for chunk in bytes[start..].utf8_chunks() {
        if surplus == 0 {
            break;
        }
        let valid = chunk.valid();
        if surplus < valid.len() {
            return start
                + (surplus..valid.len())
                    .find(|&at| valid.is_char_boundary(at))
                    .unwrap_or(valid.len());
        }
        surplus -= valid.len();
        start += valid.len();
        if surplus > 0 && !chunk.invalid().is_empty() {
            surplus = surplus.saturating_sub(char::REPLACEMENT_CHARACTER.len_utf8());
            start += chunk.invalid().len();
        }
    }
    start
}

/// The nearest place from `at` on that is not in the middle of a character.
pub(super) fn character_start(bytes: &[u8], at: usize) -> usize {
    // At most three continuation bytes follow the first byte of a character.
    let is_inside = |byte: &&u8| **byte & 0xC0 == 0x80;
    at + bytes[at..].iter().take(3).take_while(is_inside).count()
}

/// Length of the lossy decoding.
fn shown_len(bytes: &[u8]) -> usize {
    bytes
        .utf8_chunks()
        .map(|chunk| {
            let replaced = if chunk.invalid().is_empty() {
                0
            } else {
                char::REPLACEMENT_CHARACTER.len_utf8()
            };
            chunk.valid().len() + replaced
        })
        .sum()
}

#[cfg(test)]
#[path = "excerpt_tests.rs"]
mod tests;
