//! Running compiled rules on pieces of output.

use serde_json::{Value, value::RawValue};

use super::{
    Action, CompiledRule, Expected, FieldCondition, FindingSource, Pattern, ProgressSource, Selector,
    StreamRules, TextSource, field::Piece,
};
use crate::observe::{
    Finding, Severity, Source,
    framing::{CUT_OFF, Element},
};

/// Identifiers, titles, phases: what is shown on one line.
const MAX_LINE_CHARS: usize = 500;

/// Descriptions and advice. A thousand findings of this length are still only megabytes.
const MAX_TEXT_CHARS: usize = 8_000;

/// What a rule saw in a piece.
#[derive(Debug, PartialEq)]
pub(crate) enum Sighting {
    Progress(ProgressReading),
    Finding(Finding),
}

/// What a piece says about progress, before it is put together with what earlier ones said.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ProgressReading {
    pub(crate) percent: Option<f64>,
    pub(crate) phase: Option<String>,
    pub(crate) current: Option<u64>,
    pub(crate) total: Option<u64>,
    pub(crate) eta_seconds: Option<f64>,
    /// One more is done.
    pub(crate) is_counted: bool,
}

/// Whether later rules still see the piece.
enum Verdict {
    Seen(Option<Sighting>),
    Ignored,
}

impl StreamRules {
    /// Looks at a line. `previous` is the line before it, for rules that look at two.
    pub(crate) fn look_at_line(
        &self,
        source: Source,
        line: &str,
        previous: Option<&str>,
        note: &mut dyn FnMut(Sighting),
    ) {
        for rule in self.rules.iter().filter(|rule| rule.listens_to(source)) {
            let Selector::Text { line: pattern, next } = &rule.selector else {
                continue;
            };
            let piece = match next {
                None => one_line_piece(pattern, line),
                Some(next) => previous.and_then(|previous| two_line_piece(pattern, previous, next, line)),
            };
            match piece.map(|piece| rule.judge(&piece)) {
                Some(Verdict::Seen(sighting)) => sighting.into_iter().for_each(&mut *note),
                Some(Verdict::Ignored) => return,
                None => {}
            }
        }
    }

    /// Looks at a JSON text; false if it is not JSON, or not an object or list.
    pub(crate) fn look_at_json(&self, source: Source, text: &str, note: &mut dyn FnMut(Sighting)) -> bool {
        if !text.trim_start().starts_with(['{', '[']) {
            return false;
        }
        if self.json_groups.is_empty() {
            return serde_json::from_str::<&RawValue>(text).is_ok();
        }
        for (each, rules) in &self.json_groups {
            match each {
                None => {
                    let Ok(value) = serde_json::from_str(text) else {
                        return false;
                    };
                    self.look_at_value(source, &value, rules, note);
                }
                Some(path) => {
                    let Ok(root) = serde_json::from_str(text) else {
                        return false;
                    };
                    for item in path.items(root) {
                        let Ok(value) = serde_json::from_str(item.get()) else {
                            continue;
                        };
                        self.look_at_value(source, &value, rules, note);
                    }
                }
            }
        }
        true
    }

    fn look_at_value(&self, source: Source, value: &Value, rules: &[usize], note: &mut dyn FnMut(Sighting)) {
        // Half an item would give half a finding.
        if value.get(CUT_OFF).is_some() {
            return;
        }
        let piece = Piece::Json(value);
        for rule in rules
            .iter()
            .map(|index| &self.rules[*index])
            .filter(|rule| rule.listens_to(source))
        {
            let Selector::Json { conditions } = &rule.selector else {
                continue;
            };
            if !conditions.iter().all(|condition| condition.holds(&piece)) {
                continue;
            }
            match rule.judge(&piece) {
                Verdict::Seen(sighting) => sighting.into_iter().for_each(&mut *note),
                Verdict::Ignored => return,
            }
        }
    }

    pub(crate) fn look_at_element(
        &self,
        ancestors: &[Element],
        element: &Element,
        note: &mut dyn FnMut(Sighting),
    ) {
        let piece = Piece::Xml { ancestors, element };
        for rule in &self.rules {
            let Selector::Xml {
                element: name,
                conditions,
            } = &rule.selector
            else {
                continue;
            };
            let has_name = element.name == *name || element.local_name() == name;
            if !has_name || !conditions.iter().all(|condition| condition.holds(&piece)) {
                continue;
            }
            match rule.judge(&piece) {
                Verdict::Seen(sighting) => sighting.into_iter().for_each(&mut *note),
                Verdict::Ignored => return,
            }
        }
    }
}

fn one_line_piece<'a>(pattern: &Pattern, line: &'a str) -> Option<Piece<'a>> {
    let captures = pattern.captures(line)?;
    Some(Piece::Text {
        line,
        captures,
        next: None,
    })
}

fn two_line_piece<'a>(
    pattern: &Pattern,
    line: &'a str,
    next: &Pattern,
    following: &'a str,
) -> Option<Piece<'a>> {
    // The second pattern is the rarer one as a rule: it is the one that tells the pair from single lines.
    let next = next.captures(following)?;
    let captures = pattern.captures(line)?;
    Some(Piece::Text {
        line,
        captures,
        next: Some(next),
    })
}

impl CompiledRule {
    fn listens_to(&self, source: Source) -> bool {
        self.on.is_none_or(|on| on == source)
    }

    fn judge(&self, piece: &Piece<'_>) -> Verdict {
        match &self.action {
            Action::Ignore => Verdict::Ignored,
            Action::Progress(progress) => Verdict::Seen(progress.read(piece).map(Sighting::Progress)),
            Action::Finding(finding) => Verdict::Seen(finding.read(piece).map(Sighting::Finding)),
        }
    }
}

impl FieldCondition {
    fn holds(&self, piece: &Piece<'_>) -> bool {
        let value = piece.get(&self.field);
        match &self.expected {
            Expected::Present => value.is_some(),
            Expected::Absent => value.is_none(),
            Expected::OneOf(expected) => value.is_some_and(|value| expected.iter().any(|one| *one == value)),
        }
    }
}

impl ProgressSource {
    /// None if every value the rule asks for is missing or makes no sense.
    fn read(&self, piece: &Piece<'_>) -> Option<ProgressReading> {
        let number = |source: &Option<TextSource>| source.as_ref().and_then(|source| source.number(piece));
        let count =
            |source: &Option<TextSource>| number(source).filter(|number| *number >= 0.0).map(|n| n as u64);
        let reading = ProgressReading {
            percent: number(&self.percent),
            phase: self.phase.as_ref().and_then(|phase| one_line(phase, piece)),
            current: count(&self.current),
            total: count(&self.total),
            eta_seconds: self.eta_seconds.as_ref().and_then(|eta| eta.seconds(piece)),
            is_counted: self.count,
        };
        (reading != ProgressReading::default()).then_some(reading)
    }
}

impl FindingSource {
    /// None if nothing is said about it but how severe it is.
    fn read(&self, piece: &Piece<'_>) -> Option<Finding> {
        let line = |source: &Option<TextSource>| source.as_ref().and_then(|source| one_line(source, piece));
        let text = |source: &Option<TextSource>| {
            source
                .as_ref()
                .and_then(|source| source.text(piece, MAX_TEXT_CHARS))
        };
        let (kind, id, title) = (line(&self.kind), line(&self.id), line(&self.title));
        let (cve, cwe, location) = (line(&self.cve), line(&self.cwe), line(&self.location));
        let (description, remediation) = (text(&self.description), text(&self.remediation));
        let said = [
            &kind,
            &id,
            &title,
            &cve,
            &cwe,
            &location,
            &description,
            &remediation,
        ];
        if said.into_iter().all(Option::is_none) {
            return None;
        }
        let id = id
            .or_else(|| kind.clone())
            .unwrap_or_else(|| "finding".to_owned());
        Some(Finding {
            severity: self
                .severity
                .as_ref()
                .map_or(Severity::Info, |severity| severity.severity(piece)),
            title: title.unwrap_or_else(|| id.clone()),
            id,
            kind,
            cve,
            cwe,
            description,
            remediation,
            location,
        })
    }
}

fn one_line(source: &TextSource, piece: &Piece<'_>) -> Option<String> {
    let text = source.text(piece, MAX_LINE_CHARS)?;
    Some(if text.contains(['\n', '\r']) {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        text
    })
}
