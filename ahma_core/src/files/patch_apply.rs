//! Finding the lines of a patch in a file and replacing them.
//!
//! A hunk is looked for nearest to where it says, first to the letter, then with differences in white space; lines
//! that only give context stay as the file has them.

use super::{
    patch::{Hunk, HunkLine},
    similar::nearest_places,
    text::line_ending,
};

/// A line of the file with its own ending; the last may have none.
#[derive(Debug, Clone)]
struct FileLine {
    text: Vec<u8>,
    ending: Vec<u8>,
}

type Comparison = fn(&[u8], &[u8]) -> bool;

/// Ways to compare a line with the wanted one, strictest first.
const COMPARISONS: [Comparison; 3] = [
    |line, wanted| line == wanted,
    |line, wanted| line.trim_ascii_end() == wanted.trim_ascii_end(),
    |line, wanted| line.trim_ascii() == wanted.trim_ascii(),
];

/// A patched text, and which of its lines are new.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Patched {
    pub(super) content: Vec<u8>,
    /// First and last line of each hunk's new text, counted from 1.
    pub(super) changed: Vec<(usize, usize)>,
}

/// Applies the hunks in order; each is looked for below the one before it. An error is for the caller.
pub(super) fn apply(content: &[u8], hunks: &[Hunk]) -> Result<Patched, String> {
    let ending = line_ending(content).as_bytes();
    let mut lines = split(content);
    let has_final_newline = lines.last().is_none_or(|line| !line.ending.is_empty());
    let mut changed = Vec::new();
    let mut below = 0;
    // Lines added so far less those removed: how far later hunks have moved.
    let mut shift = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let old: Vec<&[u8]> = hunk.lines.iter().filter_map(old_text).collect();
        let at = find(&lines, hunk, &old, below, shift)
            .ok_or_else(|| not_found(content, &lines, hunk, &old, index + 1, hunks.len()))?;
        let new = new_lines(&lines[at..at + old.len()], hunk, ending);
        shift += new.len() as isize - old.len() as isize;
        below = at + new.len();
        changed.push((at + 1, below.max(at + 1)));
        let reaches_end = at + old.len() == lines.len();
        lines.splice(at..at + old.len(), new);
        if reaches_end {
            finish(&mut lines, hunk, has_final_newline, ending);
        }
    }
    let last = lines.len().saturating_sub(1);
    let content = lines
        .iter_mut()
        .enumerate()
        .fold(Vec::new(), |mut content, (index, line)| {
            content.append(&mut line.text);
            match (line.ending.is_empty(), index < last) {
                (true, true) => content.extend_from_slice(ending),
                _ => content.append(&mut line.ending),
            }
            content
        });
    Ok(Patched { content, changed })
}

fn split(content: &[u8]) -> Vec<FileLine> {
    let lines = content.split_inclusive(|byte| *byte == b'\n').map(|line| {
        let text = match line.strip_suffix(b"\n") {
            Some(text) => text.strip_suffix(b"\r").unwrap_or(text),
            None => line,
        };
        FileLine {
            text: text.to_vec(),
            ending: line[text.len()..].to_vec(),
        }
    });
    lines.collect()
}

fn old_text(line: &HunkLine) -> Option<&[u8]> {
    match line {
        HunkLine::Context(text) | HunkLine::Remove(text) => Some(text.as_bytes()),
        HunkLine::Add(_) => None,
    }
}

/// Index of the line at which the hunk's old lines start.
fn find(lines: &[FileLine], hunk: &Hunk, old: &[&[u8]], below: usize, shift: isize) -> Option<usize> {
    let below = match &hunk.anchor {
        Some(anchor) => below + position(&lines[below..], anchor.as_bytes())? + 1,
        None => below,
    };
    let hint = hunk.line.map(|line| {
        // With no old lines the hint names the line before the new ones.
        let index = line.saturating_sub(usize::from(!old.is_empty()));
        index
            .saturating_add_signed(shift)
            .clamp(below, lines.len().max(below))
    });
    if old.is_empty() {
        return Some(match (hint, &hunk.anchor) {
            (Some(hint), _) => hint,
            (None, Some(_)) if !hunk.at_end => below,
            _ => lines.len(),
        });
    }
    let last = lines.len().checked_sub(old.len())?;
    COMPARISONS.iter().find_map(|same| {
        let fits = |at: &usize| (0..old.len()).all(|index| same(&lines[at + index].text, old[index]));
        let mut places = (below..=last).filter(fits);
        match hint {
            _ if hunk.at_end => places.next_back(),
            Some(hint) => places.min_by_key(|at| at.abs_diff(hint)),
            None => places.next(),
        }
    })
}

/// Index of the first line that is `wanted`, or contains it if none is.
fn position(lines: &[FileLine], wanted: &[u8]) -> Option<usize> {
    let wanted = wanted.trim_ascii();
    let exact = lines.iter().position(|line| line.text.trim_ascii() == wanted);
    exact.or_else(|| {
        lines
            .iter()
            .position(|line| memchr::memmem::find(&line.text, wanted).is_some())
    })
}

/// The lines that replace `matched`: context as the file has it, new lines with the file's ending.
fn new_lines(matched: &[FileLine], hunk: &Hunk, ending: &[u8]) -> Vec<FileLine> {
    let mut matched = matched.iter();
    let mut new = Vec::new();
    for line in &hunk.lines {
        match line {
            HunkLine::Context(_) => new.extend(matched.next().cloned()),
            HunkLine::Remove(_) => drop(matched.next()),
            HunkLine::Add(text) => new.push(FileLine {
                text: text.clone().into_bytes(),
                ending: ending.to_vec(),
            }),
        }
    }
    new
}

/// Gives the last line the ending that the patch asks for, or the one that the file had.
fn finish(lines: &mut [FileLine], hunk: &Hunk, had_final_newline: bool, ending: &[u8]) {
    let Some(last) = lines.last_mut() else { return };
    if hunk.no_final_newline || (!had_final_newline && hunk.line.is_none()) {
        last.ending.clear();
    } else if last.ending.is_empty() && had_final_newline {
        last.ending = ending.to_vec();
    }
}

fn not_found(
    content: &[u8],
    lines: &[FileLine],
    hunk: &Hunk,
    old: &[&[u8]],
    number: usize,
    of: usize,
) -> String {
    let new: Vec<&[u8]> = hunk
        .lines
        .iter()
        .filter_map(|line| match line {
            HunkLine::Context(text) | HunkLine::Add(text) => Some(text.as_bytes()),
            HunkLine::Remove(_) => None,
        })
        .collect();
    let is_there = |wanted: &[&[u8]]| {
        !wanted.is_empty()
            && lines.windows(wanted.len()).any(|window| {
                window
                    .iter()
                    .zip(wanted)
                    .all(|(line, wanted)| line.text == *wanted)
            })
    };
    let which = if of == 1 {
        String::new()
    } else {
        format!("hunk {number} of {of}: ")
    };
    match &hunk.anchor {
        Some(anchor) if position(lines, anchor.as_bytes()).is_none() => {
            format!("{which}no line is `{anchor}`, as its `@@` line says")
        }
        _ if is_there(&new) && new != old => format!("{which}its new lines are in the file already"),
        _ => format!(
            "{which}its lines do not occur in the file{}",
            nearest_places(content, old)
        ),
    }
}

#[cfg(test)]
#[path = "patch_apply_tests.rs"]
mod tests;
