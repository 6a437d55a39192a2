//! Reasons why rules matched nothing in a recording, for an author who tries them.

use ahma_common::words::shorten;

use super::{
    StreamName, StreamRules,
    framing::LineReader,
    replay::{RecordedPiece, pieces},
    rules::{RuleKind, RuleSight},
};

/// A rule that matched nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedRule {
    /// Counted from 0, as JSON pointers do.
    pub index: usize,
    pub reason: String,
}

/// A line that rules for text look at.
struct RecordedLine {
    /// Line of the recording, counted from 1.
    number: usize,
    source: StreamName,
    text: String,
}

/// The rules that match nothing in a recording, and why.
pub fn unmatched(rules: &StreamRules, recording: &str) -> Vec<UnmatchedRule> {
    let recorded = pieces(rules, recording);
    let lines = lines(&recorded);
    let stdout: String = (recorded.iter())
        .filter(|piece| piece.source == StreamName::Stdout)
        .map(|piece| piece.text.as_ref())
        .collect();
    let described = rules.sights().into_iter().enumerate();
    let reasons = described.filter_map(|(index, sight)| {
        let reason = match &sight.kind {
            RuleKind::Text { .. } => text_reason(rules, index, &sight, &lines),
            RuleKind::Json => rules.json_miss(index, &stdout, lines.iter().map(|line| line.text.as_str())),
            RuleKind::Xml { element } => xml_reason(element, &stdout),
        };
        reason.map(|reason| UnmatchedRule { index, reason })
    });
    reasons.collect()
}

fn lines(recorded: &[RecordedPiece<'_>]) -> Vec<RecordedLine> {
    let mut readers = [LineReader::new(1 << 20), LineReader::new(1 << 20)];
    let mut found = Vec::new();
    for piece in recorded {
        let reader = &mut readers[usize::from(piece.source == StreamName::Stderr)];
        let mut input = piece.text.as_bytes();
        while let Some(line) = reader.next_line(&mut input) {
            found.push(RecordedLine {
                number: piece.number,
                source: piece.source,
                text: line.into_owned(),
            });
        }
    }
    let sources = [StreamName::Stdout, StreamName::Stderr];
    for (reader, source) in readers.iter_mut().zip(sources) {
        let number = recorded.last().map_or(0, |piece| piece.number);
        found.extend(reader.finish().map(|line| RecordedLine {
            number,
            source,
            text: line.into_owned(),
        }));
    }
    found
}

/// The reason why a rule for lines fires for none; nothing if it does.
fn text_reason(
    rules: &StreamRules,
    index: usize,
    sight: &RuleSight,
    lines: &[RecordedLine],
) -> Option<String> {
    let RuleKind::Text { has_next } = sight.kind else {
        return None;
    };
    let is_seen = |line: &&RecordedLine| sight.on.is_none_or(|on| on == line.source);
    let seen: Vec<&RecordedLine> = lines.iter().filter(is_seen).collect();
    let mut shadowed = None;
    let mut half = None;
    for (place, line) in seen.iter().enumerate() {
        if !rules.first_line_matches(index, &line.text) {
            continue;
        }
        if let Some(first) = rules.taken_before(index, line.source, &line.text) {
            shadowed.get_or_insert((line.number, first));
            continue;
        }
        let following = seen[place + 1..].iter().find(|next| next.source == line.source);
        match following {
            _ if !has_next => return None,
            Some(next) if rules.next_line_matches(index, &next.text) => return None,
            next => _ = half.get_or_insert((line.number, next.map(|next| next.text.clone()))),
        }
    }
    if let Some((number, next)) = half {
        let next = next.map_or("the last one".to_owned(), |next| {
            format!("followed by `{}`", short(&next))
        });
        return Some(format!(
            "line {number} matches `match`, but it is {next}, which `next` does not match"
        ));
    }
    if let Some((number, first)) = shadowed {
        return Some(format!("line {number} matches, but rule {first} takes it first"));
    }
    if let Some(on) = sight.on {
        let other = lines
            .iter()
            .find(|line| line.source != on && rules.first_line_matches(index, &line.text));
        if let Some(other) = other {
            return Some(format!(
                "line {} matches, but it is on {} and the rule looks at {} only (a plain text counts as stdout; `ahma_mcp record` keeps both streams)",
                other.number,
                name(other.source),
                name(on)
            ));
        }
    }
    if seen.is_empty() {
        let on = sight.on.map_or("any stream", name);
        return Some(format!("it was never tried: the recording has no line of {on}"));
    }
    let near = seen
        .iter()
        .filter_map(|line| Some((rules.matched_prefix(index, &line.text)?, line)))
        .max_by_key(|(matched, _)| matched.len());
    Some(match near {
        Some((matched, line)) if !matched.trim().is_empty() => format!(
            "nearest is line {}, which it matches as far as `{}`, but not `{}`",
            line.number,
            short(matched),
            short(&line.text[line.text.find(matched).unwrap_or(0) + matched.len()..])
        ),
        _ => format!("none of {} lines is like it", seen.len()),
    })
}

fn xml_reason(element: &str, stdout: &str) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for tag in stdout.split('<').skip(1) {
        let end = tag.find(|letter: char| letter.is_whitespace() || "/>".contains(letter));
        let name = &tag[..end.unwrap_or(tag.len())];
        if !name.is_empty() && !name.starts_with(['!', '?']) && !names.contains(&name) {
            names.push(name);
        }
    }
    let is_it = |name: &&str| *name == element || name.rsplit(':').next() == Some(element);
    if names.iter().any(is_it) {
        return None;
    }
    names.truncate(8);
    Some(match names.is_empty() {
        true => "the recording has no XML on stdout".to_owned(),
        false => format!("no element `{element}`; there are `{}`", names.join("`, `")),
    })
}

fn name(source: StreamName) -> &'static str {
    match source {
        StreamName::Stdout => "stdout",
        StreamName::Stderr => "stderr",
    }
}

fn short(text: &str) -> String {
    shorten(text.to_owned(), 60)
}

#[cfg(test)]
#[path = "unmatched_tests.rs"]
mod tests;
