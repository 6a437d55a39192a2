//! Regular expressions that are checked when a tool file is loaded and built when they are first used.
//!
//! Building takes up to a millisecond where checking takes microseconds, and most tools of a directory are never called.

use std::sync::OnceLock;

use regex::{Captures, Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind};

/// Building a longer pattern may fail for its size, so it is tried at once. In bytes of its text, and in letters that it
/// matches with its counted repetitions written out.
const MAX_DEFERRED_LENGTH: usize = 400;

/// Memory limit of a built pattern. Far above the need of any pattern that is built later: it grows only with its length
/// written out, by at most some ten kilobytes for a class of letters.
const MAX_BUILT_BYTES: usize = 32 * 1024 * 1024;

/// A pattern that is known to be right.
#[derive(Debug)]
pub(super) struct Pattern {
    text: String,
    /// Of every group, the whole match being the first.
    group_names: Vec<Option<String>>,
    built: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Checks a pattern; the error says what is wrong with it.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let parsed = regex_syntax::parse(text).map_err(|error| last_line(&error.to_string()))?;
        let mut group_names = vec![None];
        collect_group_names(&parsed, &mut group_names);
        let pattern = Self {
            text: text.to_owned(),
            group_names,
            built: OnceLock::new(),
        };
        if text.len().max(written_out(&parsed)) > MAX_DEFERRED_LENGTH {
            let regex = build(text).map_err(|error| last_line(&error.to_string()))?;
            let _ = pattern.built.set(Some(regex));
        }
        Ok(pattern)
    }

    pub(super) fn captures<'a>(&self, line: &'a str) -> Option<Captures<'a>> {
        let regex = self.built.get_or_init(|| build(&self.text).ok());
        regex.as_ref()?.captures(line)
    }

    /// The longest part of a line that a beginning of the pattern matches. Slow: for authors.
    pub(super) fn matched_prefix<'a>(&self, line: &'a str) -> Option<&'a str> {
        let mut parts = Vec::new();
        flatten(&regex_syntax::parse(&self.text).ok()?, &mut parts);
        (1..=parts.len()).rev().find_map(|length| {
            let beginning = Hir::concat(parts[..length].to_vec()).to_string();
            let found = build(&beginning).ok()?.find(line)?;
            Some(found.as_str())
        })
    }

    #[cfg(test)]
    pub(super) fn is_built(&self) -> bool {
        self.built.get().is_some()
    }

    pub(super) fn group_names(&self) -> impl Iterator<Item = Option<&str>> {
        self.group_names.iter().map(Option::as_deref)
    }

    /// Number of groups, including the whole match.
    pub(super) fn group_count(&self) -> usize {
        self.group_names.len()
    }
}

fn build(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).size_limit(MAX_BUILT_BYTES).build()
}

/// Length of a pattern with its counted repetitions written out.
fn written_out(part: &Hir) -> usize {
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(1);
            written_out(&repetition.sub).saturating_mul(times as usize)
        }
        HirKind::Capture(capture) => written_out(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(written_out).fold(0, usize::saturating_add)
        }
    }
}

/// The crate draws the pattern over several lines; the last one says what is wrong.
fn last_line(error: &str) -> String {
    let line = error.lines().last().unwrap_or_default().trim();
    line.trim_start_matches("error: ").to_owned()
}

/// The pieces of a pattern that follow each other, single characters where there are some.
fn flatten(part: &Hir, parts: &mut Vec<Hir>) {
    match part.kind() {
        HirKind::Concat(inner) => inner.iter().for_each(|part| flatten(part, parts)),
        HirKind::Capture(capture) => flatten(&capture.sub, parts),
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => parts.extend(
                text.chars()
                    .map(|letter| Hir::literal(letter.to_string().into_bytes())),
            ),
            Err(_) => parts.push(part.clone()),
        },
        HirKind::Empty
        | HirKind::Class(_)
        | HirKind::Look(_)
        | HirKind::Repetition(_)
        | HirKind::Alternation(_) => parts.push(part.clone()),
    }
}

/// Groups in the order of their numbers. The parser bounds how deep a pattern nests.
fn collect_group_names(part: &Hir, names: &mut Vec<Option<String>>) {
    match part.kind() {
        HirKind::Capture(capture) => {
            let index = capture.index as usize;
            if names.len() <= index {
                names.resize(index + 1, None);
            }
            names[index] = capture.name.as_deref().map(str::to_owned);
            collect_group_names(&capture.sub, names);
        }
        HirKind::Repetition(repetition) => collect_group_names(&repetition.sub, names),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().for_each(|part| collect_group_names(part, names));
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {}
    }
}
