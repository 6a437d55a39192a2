//! Single rules on single lines, to explain to an author why a rule does not match.

use serde_json::{Value, value::RawValue};

use super::{
    StreamRules,
    field::{Content, Field},
    stream_rules::{RuleAction, Selector},
};
use crate::observe::StreamName;

/// The input of a rule.
#[derive(Debug, Clone)]
pub(crate) struct RuleSight {
    pub(crate) on: Option<StreamName>,
    pub(crate) kind: RuleKind,
}

/// The kind of piece that a rule looks at.
#[derive(Debug, Clone)]
pub(crate) enum RuleKind {
    Text { has_next: bool },
    Json,
    Xml { element: String },
}

impl StreamRules {
    /// Input of each rule of the block, without those of a preset.
    pub(crate) fn sights(&self) -> Vec<RuleSight> {
        let sight = |rule: &super::stream_rules::CompiledRule| RuleSight {
            on: rule.on,
            kind: match &rule.selector {
                Selector::Text { next, .. } => RuleKind::Text {
                    has_next: next.is_some(),
                },
                Selector::Block { .. } => RuleKind::Text { has_next: false },
                Selector::Json { .. } => RuleKind::Json,
                Selector::Xml { element, .. } => RuleKind::Xml {
                    element: element.clone(),
                },
            },
        };
        self.rules[..self.own_rules].iter().map(sight).collect()
    }

    pub(crate) fn first_line_matches(&self, index: usize, line: &str) -> bool {
        match &self.rules[index].selector {
            Selector::Text { line: pattern, .. } | Selector::Block { line: pattern, .. } => {
                pattern.captures(line).is_some()
            }
            Selector::Json { .. } | Selector::Xml { .. } => false,
        }
    }

    pub(crate) fn next_line_matches(&self, index: usize, line: &str) -> bool {
        match &self.rules[index].selector {
            Selector::Text { next: Some(next), .. } => next.captures(line).is_some(),
            _ => false,
        }
    }

    /// The rule before this one that keeps a line from it.
    pub(crate) fn taken_before(&self, index: usize, source: StreamName, line: &str) -> Option<usize> {
        (0..index).find(|earlier| {
            let rule = &self.rules[*earlier];
            let stops = matches!(rule.action, RuleAction::Ignore | RuleAction::Noise);
            stops && rule.on.is_none_or(|on| on == source) && self.first_line_matches(*earlier, line)
        })
    }

    /// The part of a line that the beginning of the pattern matches.
    pub(crate) fn matched_prefix<'l>(&self, index: usize, line: &'l str) -> Option<&'l str> {
        match &self.rules[index].selector {
            Selector::Text { line: pattern, .. } | Selector::Block { line: pattern, .. } => {
                pattern.matched_prefix(line)
            }
            Selector::Json { .. } | Selector::Xml { .. } => None,
        }
    }

    /// The reason why a rule for JSON matches no value; nothing if it does.
    pub(crate) fn json_miss<'t>(
        &self,
        index: usize,
        document: &'t str,
        lines: impl Iterator<Item = &'t str>,
    ) -> Option<String> {
        let Selector::Json { conditions } = &self.rules[index].selector else {
            return None;
        };
        let each = self.json_groups.iter().find(|(_, rules)| rules.contains(&index));
        let each = each.and_then(|(each, _)| each.as_ref());
        let roots: Vec<&RawValue> = std::iter::once(document)
            .chain(lines)
            .filter_map(|text| serde_json::from_str(text.trim()).ok())
            .filter(|root: &&RawValue| root.get().starts_with(['{', '[']))
            .collect();
        if roots.is_empty() {
            return Some("it was never tried: the recording has no JSON on stdout".to_owned());
        }
        let mut near: Option<(usize, String)> = None;
        let mut tried = 0;
        for root in roots {
            let items = each.map_or_else(|| vec![root], |each| each.items(root));
            for item in items {
                let Ok(value) = serde_json::from_str::<Value>(item.get()) else {
                    continue;
                };
                tried += 1;
                let content = Content::Json {
                    value: &value,
                    around: &[],
                };
                let failing: Vec<_> = (conditions.iter())
                    .filter(|condition| !condition.holds(&content))
                    .collect();
                // None fails: it matches.
                let first = failing.first()?;
                if near.as_ref().is_none_or(|(fewest, _)| failing.len() < *fewest) {
                    let place = match &first.field {
                        Field::Pointer(pointer) => pointer.clone(),
                        _ => ".".to_owned(),
                    };
                    let found = content.get(&first.field);
                    let found = found.map_or("missing".to_owned(), |text| format!("`{text}`"));
                    near = Some((
                        failing.len(),
                        format!("in the nearest value, `{place}` is {found}"),
                    ));
                }
            }
        }
        Some(match near {
            Some((_, reason)) => format!("`where` holds for none of {tried} values; {reason}"),
            None => "`each` leads to no list with items".to_owned(),
        })
    }
}
