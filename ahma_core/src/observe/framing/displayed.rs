//! Text as a terminal would show it in the end.

use std::borrow::Cow;

use super::LineReader;

/// Drops what was redrawn and all escape sequences: of a progress bar only its last state is left. Line ends stay.
pub fn displayed(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        shown.push_str(&last_state(line));
        shown.push_str(end);
    }
    Cow::Owned(shown)
}

fn last_state(line: &str) -> String {
    let mut reader = LineReader::new(line.len());
    let mut input = line.as_bytes();
    let mut last = String::new();
    while let Some(state) = reader.next_line(&mut input) {
        last = state.into_owned();
    }
    reader.finish().map_or(last, Cow::into_owned)
}
