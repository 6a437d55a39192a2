//! Running compiled rules on pieces of output.

use ahma_common::words::shorten;
use serde_json::{Value, value::RawValue};

use super::{
    ObjectFields, StreamRules,
    blocks::{LineContext, OpenBlock},
    field::{CallArguments, Content, Field, Piece},
    stream_rules::{
        CompiledRule, Expected, FieldCondition, FindingSource, ProgressSource, RuleAction, Selector,
    },
    template::TextSource,
};
use crate::observe::{
    Finding, Severity, StreamName,
    framing::{CUT_OFF, Element},
};

/// Identifiers, titles, phases: what is shown on one line.
const MAX_LINE_CHARS: usize = 500;

/// Descriptions and advice. A thousand findings of this length are still only megabytes.
const MAX_TEXT_CHARS: usize = 8_000;

/// Result of a rule that matched a piece.
#[derive(Debug, PartialEq)]
pub(crate) enum Sighting {
    Progress(ProgressReading),
    Finding(Finding),
    Summary(String),
}

/// Progress as one piece states it, before it is combined with earlier readings.
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

/// The call whose output rules look at, and the place for what they see.
pub(crate) struct RuleContext<'a> {
    pub(crate) arguments: &'a CallArguments,
    pub(crate) note: &'a mut dyn FnMut(Sighting),
}

impl RuleContext<'_> {
    /// Does with a piece what a rule that selected it says.
    pub(super) fn act(&mut self, action: &RuleAction, content: Content<'_>) -> RuleEffect {
        let arguments = self.arguments;
        act(action, &Piece { content, arguments }, self.note)
    }

    /// Applies rules in order, until one says that the piece is to be ignored. `content_for` gives the piece to a rule that
    /// selects it.
    fn apply<'r, 'p>(
        &mut self,
        rules: impl Iterator<Item = &'r CompiledRule>,
        content_for: impl Fn(&'r Selector) -> Option<Content<'p>>,
    ) {
        for rule in rules {
            let Some(content) = content_for(&rule.selector) else {
                continue;
            };
            match self.act(&rule.action, content) {
                RuleEffect::Ignore | RuleEffect::Hide => return,
                RuleEffect::GoOn(_) => {}
            }
        }
    }
}

/// Effect of the rules on a line, by which it is shown or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineUse {
    /// No rule has made anything of it.
    Plain,
    /// It has become something else, or is noise.
    Taken,
    /// So has the line before.
    TakenWithPrevious,
}

impl StreamRules {
    /// Looks at a line that has ended.
    pub(crate) fn look_at_line(
        &self,
        source: StreamName,
        line: &str,
        context: &mut LineContext,
        run: &mut RuleContext<'_>,
    ) -> LineUse {
        let mut line_use = self.continue_blocks(line, context, run);
        for (index, rule) in self.rules.iter().enumerate() {
            if !rule.listens_to(source) {
                continue;
            }
            if let Selector::Block { line: first, .. } = &rule.selector {
                if first.captures(line).is_some() {
                    context.blocks.push(OpenBlock::new(index, line));
                    line_use = LineUse::Taken;
                }
                continue;
            }
            let Some(content) = text_content(&rule.selector, line, context.previous.as_deref()) else {
                continue;
            };
            let is_pair = matches!(&content, Content::Text { next: Some(_), .. });
            match run.act(&rule.action, content) {
                RuleEffect::Ignore => break,
                RuleEffect::Hide => {
                    line_use = LineUse::Taken;
                    break;
                }
                RuleEffect::GoOn(Acted::No) => {}
                RuleEffect::GoOn(Acted::Yes) if is_pair => line_use = LineUse::TakenWithPrevious,
                RuleEffect::GoOn(Acted::Yes) if line_use == LineUse::Plain => line_use = LineUse::Taken,
                RuleEffect::GoOn(Acted::Yes) => {}
            }
        }
        context.previous = self.has_line_pairs().then(|| line.to_owned());
        line_use
    }

    /// Looks at a line that goes on, without taking it into any block.
    pub(crate) fn look_at_unfinished(
        &self,
        source: StreamName,
        line: &str,
        context: &LineContext,
        run: &mut RuleContext<'_>,
    ) {
        let rules = self.rules.iter().filter(|rule| rule.listens_to(source));
        let content_for = |selector: &Selector| text_content(selector, line, context.previous.as_deref());
        run.apply(rules, content_for);
    }

    /// Looks at a JSON text; false if it is not JSON, or not an object or list.
    pub(crate) fn look_at_json(&self, source: StreamName, text: &str, run: &mut RuleContext<'_>) -> bool {
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
                    self.look_at_value(source, &value, &[], rules, run);
                }
                Some(path) => {
                    let Ok(root) = serde_json::from_str(text) else {
                        return false;
                    };
                    path.visit(root, &mut |item, around| {
                        if let Ok(value) = serde_json::from_str(item.get()) {
                            self.look_at_value(source, &value, around, rules, run);
                        }
                    });
                }
            }
        }
        true
    }

    fn look_at_value(
        &self,
        source: StreamName,
        value: &Value,
        around: &[ObjectFields<'_>],
        rules: &[usize],
        run: &mut RuleContext<'_>,
    ) {
        // Half an item would give half a finding.
        if value.get(CUT_OFF).is_some() {
            return;
        }
        let rules = rules.iter().map(|index| &self.rules[*index]);
        let content_for = |selector: &Selector| match selector {
            Selector::Json { conditions } => Content::Json { value, around }.if_all_hold(conditions),
            Selector::Text { .. } | Selector::Block { .. } | Selector::Xml { .. } => None,
        };
        let rules = rules.filter(|rule| rule.listens_to(source));
        run.apply(rules, content_for);
    }

    pub(crate) fn look_at_element(
        &self,
        ancestors: &[Element],
        element: &Element,
        run: &mut RuleContext<'_>,
    ) {
        let content_for = |selector: &Selector| match selector {
            Selector::Xml {
                element: name,
                conditions,
            } if element.name == *name || element.local_name() == name => {
                Content::Xml { ancestors, element }.if_all_hold(conditions)
            }
            Selector::Text { .. } | Selector::Block { .. } | Selector::Json { .. } | Selector::Xml { .. } => {
                None
            }
        };
        run.apply(self.rules.iter(), content_for);
    }
}

/// The line in front of a rule for one or two lines that selects it.
fn text_content<'p>(selector: &Selector, line: &'p str, previous: Option<&'p str>) -> Option<Content<'p>> {
    let Selector::Text { line: pattern, next } = selector else {
        return None;
    };
    // The second pattern is the rarer one as a rule: it is the one that tells the pair from single lines.
    let (line, next) = match next {
        None => (line, None),
        Some(next) => (previous?, Some(next.captures(line)?)),
    };
    let captures = pattern.captures(line)?;
    Some(Content::Text {
        line,
        captures,
        next,
        lines: "",
    })
}

/// Instruction to later rules about a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleEffect {
    GoOn(Acted),
    Ignore,
    /// As `Ignore`, and the piece is not worth showing.
    Hide,
}

/// A rule has made something of a piece, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acted {
    Yes,
    No,
}

fn act(action: &RuleAction, piece: &Piece<'_>, note: &mut dyn FnMut(Sighting)) -> RuleEffect {
    let sighting = match action {
        RuleAction::Ignore => return RuleEffect::Ignore,
        RuleAction::Noise => return RuleEffect::Hide,
        RuleAction::Summary(source) => match source {
            Some(source) => one_line(source, piece),
            None => piece
                .get(&Field::Whole)
                .map(|line| shorten(line.trim().to_owned(), MAX_LINE_CHARS)),
        }
        .map(Sighting::Summary),
        RuleAction::Progress(progress) => progress.read(piece).map(Sighting::Progress),
        RuleAction::Finding(finding) => finding.read(piece).map(Sighting::Finding),
    };
    match sighting {
        Some(sighting) => {
            note(sighting);
            RuleEffect::GoOn(Acted::Yes)
        }
        None => RuleEffect::GoOn(Acted::No),
    }
}

impl Content<'_> {
    fn if_all_hold(self, conditions: &[FieldCondition]) -> Option<Self> {
        let all_hold = conditions.iter().all(|condition| condition.holds(&self));
        all_hold.then_some(self)
    }
}

impl CompiledRule {
    fn listens_to(&self, source: StreamName) -> bool {
        self.on.is_none_or(|on| on == source)
    }
}

impl FieldCondition {
    pub(super) fn holds(&self, content: &Content<'_>) -> bool {
        let value = content.get(&self.field);
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
