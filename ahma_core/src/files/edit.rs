//! Exact replacements in a text: all of them or none.

use std::borrow::Cow;

use memchr::memmem;

use crate::call::TextEdit;

use super::{
    similar::nearest_places,
    text::{line_ending, line_number, lines},
};

/// Line numbers named when a text is not unique.
const MAX_NAMED_LINES: usize = 8;

/// An edited text, and which of its lines are new.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited {
    pub(super) content: Vec<u8>,
    /// First and last new line of each replacement, counted from 1; for a deletion, the line it was in.
    pub(super) changed: Vec<(usize, usize)>,
}

/// Applies the edits one after another, each to the result of those before it. An error is for the caller.
pub(super) fn apply(content: &[u8], edits: &[TextEdit]) -> Result<Edited, String> {
    let mut edited = Edited {
        content: content.to_vec(),
        changed: Vec::new(),
    };
    for (index, edit) in edits.iter().enumerate() {
        apply_one(&mut edited, edit).map_err(|reason| match edits.len() {
            1 => reason,
            count => format!("edit {} of {count}: {reason}; nothing was changed", index + 1),
        })?;
    }
    Ok(edited)
}

fn apply_one(edited: &mut Edited, edit: &TextEdit) -> Result<(), String> {
    if edit.old.is_empty() {
        return Err(
            "`old` is empty: name the text to replace, or write the whole file with file_write".into(),
        );
    }
    if edit.old == edit.new {
        return Err("`old` and `new` are the same".into());
    }
    let (old, new, places) = find(&edited.content, edit);
    match places.as_slice() {
        [] => return Err(not_found(&edited.content, edit)),
        [_] => {}
        [first, second] if edit.all && second - first < old.len() => {
            return Err(format!(
                "`old` overlaps itself at line {}: it is not clear what to replace",
                line_number(&edited.content, *first)
            ));
        }
        _ if edit.all => {}
        several => return Err(not_unique(&edited.content, several)),
    }
    replace(edited, &places, old.len(), new.as_bytes());
    Ok(())
}

/// The texts in the line ending of the file and the places of the old one; as they were given if that finds nothing.
fn find<'e>(content: &[u8], edit: &'e TextEdit) -> (Cow<'e, str>, Cow<'e, str>, Vec<usize>) {
    let ending = line_ending(content);
    let (old, new) = (with_ending(&edit.old, ending), with_ending(&edit.new, ending));
    let places = find_all(content, &old);
    if !places.is_empty() {
        return (old, new, places);
    }
    let places = find_all(content, &edit.old);
    (Cow::Borrowed(&edit.old), Cow::Borrowed(&edit.new), places)
}

/// Every place that does not overlap the one before it; a single one is not unique if it overlaps another.
fn find_all(content: &[u8], text: &str) -> Vec<usize> {
    let mut places: Vec<usize> = memmem::find_iter(content, text.as_bytes()).collect();
    if let [only] = places[..]
        && let Some(next) = memmem::find(&content[only + 1..], text.as_bytes())
    {
        places.push(only + 1 + next);
    }
    places
}

fn with_ending<'t>(text: &'t str, ending: &str) -> Cow<'t, str> {
    if !text.contains('\n') || (ending == "\n" && !text.contains("\r\n")) {
        return Cow::Borrowed(text);
    }
    let plain = text.replace("\r\n", "\n");
    Cow::Owned(if ending == "\n" {
        plain
    } else {
        plain.replace('\n', ending)
    })
}

/// Replaces the text at each place and keeps the line ranges of earlier edits right.
fn replace(edited: &mut Edited, places: &[usize], old_len: usize, new: &[u8]) {
    let newlines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    let old = std::mem::take(&mut edited.content);
    let added = newlines(new);
    let (mut copied, mut old_line, mut line) = (0, 1, 1);
    let mut ranges = Vec::with_capacity(places.len());
    let mut shifts = Vec::with_capacity(places.len());
    for place in places {
        let kept = &old[copied..*place];
        let replaced = &old[*place..place + old_len];
        old_line += newlines(kept);
        line += newlines(kept);
        // A text that ends with a newline leaves the line after it as it was.
        let last = line + added - usize::from(new.ends_with(b"\n"));
        ranges.push((line, last.max(line)));
        old_line += newlines(replaced);
        line += added;
        shifts.push((old_line, line));
        edited.content.extend_from_slice(kept);
        edited.content.extend_from_slice(new);
        copied = place + old_len;
    }
    edited.content.extend_from_slice(&old[copied..]);
    for range in &mut edited.changed {
        let moved = |number: usize| {
            let before = shifts.partition_point(|(old_line, _)| *old_line <= number);
            match before.checked_sub(1).map(|index| shifts[index]) {
                Some((old_line, line)) => number - old_line + line,
                None => number,
            }
        };
        *range = (moved(range.0), moved(range.1));
    }
    edited.changed.extend(ranges);
    edited.changed.sort_unstable();
}

fn not_found(content: &[u8], edit: &TextEdit) -> String {
    let wanted = lines(edit.old.as_bytes());
    let places = nearest_places(content, &wanted);
    let advice = if places.is_empty() {
        "; read the file again"
    } else {
        ""
    };
    format!("`old` does not occur in the file{advice}{places}")
}

fn not_unique(content: &[u8], places: &[usize]) -> String {
    let named: Vec<String> = places
        .iter()
        .take(MAX_NAMED_LINES)
        .map(|place| line_number(content, *place).to_string())
        .collect();
    let more = if places.len() > MAX_NAMED_LINES {
        ", …"
    } else {
        ""
    };
    format!(
        "`old` occurs {} times (lines {}{more}): add lines around it to make it unique, or set `all: true`",
        places.len(),
        named.join(", ")
    )
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
