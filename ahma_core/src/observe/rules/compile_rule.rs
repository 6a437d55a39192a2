//! One rule of a `stream` block: what it makes of the pieces that it looks at.

use std::collections::BTreeMap;

use super::{
    ItemPath,
    compile::Problems,
    compile_selector::{PieceKind, field, selector},
    stream_rules::{CompiledRule, FindingSource, ProgressSource, RuleAction, Selector},
    template::{Template, TextSource},
};
use crate::observe::{
    Severity,
    stream_block::{Emit, FindingTemplate, Framing, Rule, TemplateValue},
};

/// Compiles one rule, and the path of the list that it looks at, if it does.
pub(super) fn compile_rule(
    rule: &Rule,
    framing: Framing,
    problems: &mut Problems,
) -> Option<(CompiledRule, Option<ItemPath>)> {
    check_parts(rule, problems);
    let selected = selector(rule, framing, problems);
    let kind = match selected.as_ref().map(|(selector, _)| selector) {
        Some(Selector::Text { line, next }) => PieceKind::Text {
            line,
            next: next.as_ref(),
            is_block: false,
        },
        Some(Selector::Block { line, until, .. }) => PieceKind::Text {
            line,
            next: Some(until),
            is_block: true,
        },
        Some(Selector::Json { .. }) => PieceKind::Json {
            is_item: rule.each.is_some(),
        },
        Some(Selector::Xml { .. }) => PieceKind::Xml,
        None => PieceKind::Unknown,
    };
    let action = action(rule, kind, problems);
    let (selector, each) = selected?;
    let compiled = CompiledRule {
        on: rule.on,
        selector,
        action: action?,
    };
    problems.is_empty().then_some((compiled, each))
}

/// Checks that a rule has what its `emit` needs, and nothing that it would not look at.
fn check_parts(rule: &Rule, problems: &mut Problems) {
    let has_numbers = rule.percent.is_some() || rule.current.is_some() || rule.total.is_some() || rule.count;
    let has_progress = has_numbers || rule.phase.is_some() || rule.eta_seconds.is_some();
    let mut require = |is_right: bool, message: &str| {
        if !is_right {
            problems.add("", message);
        }
    };
    match rule.emit {
        Emit::Progress => {
            let needs =
                "a progress rule needs `percent`, `current`, `total`, `count`, `phase` or `eta_seconds`";
            require(has_progress, needs);
            require(
                rule.finding.is_none(),
                "a progress rule does not look at `finding`",
            );
        }
        Emit::Phase => {
            require(rule.phase.is_some(), "a phase rule needs `phase`");
            require(
                !has_numbers,
                "a phase rule has no numbers; use `\"emit\": \"progress\"`",
            );
            require(rule.finding.is_none(), "a phase rule does not look at `finding`");
        }
        Emit::Finding => {
            require(rule.finding.is_some(), "a finding rule needs `finding`");
            require(
                !has_progress,
                "a finding rule does not look at progress; add a progress rule of its own",
            );
        }
        Emit::Ignore | Emit::Noise | Emit::Summary => {
            let message = match rule.emit {
                Emit::Ignore => "an ignore rule gives nothing; remove its templates",
                Emit::Noise => "a noise rule gives nothing; remove its templates",
                _ => "a summary rule gives a line; its template is `text`",
            };
            require(rule.finding.is_none() && !has_progress, message);
        }
    }
    require(
        rule.text.is_none() || rule.emit == Emit::Summary,
        "`text` is for a summary rule",
    );
    let says_nothing = matches!(rule.emit, Emit::Ignore | Emit::Noise);
    require(
        rule.until.is_none() || !says_nothing,
        "`until` is for rules that say something",
    );
}

fn action(rule: &Rule, kind: PieceKind<'_>, problems: &mut Problems) -> Option<RuleAction> {
    let mut text = |value: &Option<TemplateValue>, name: &str| {
        value
            .as_ref()
            .and_then(|value| text_source(value, kind, name, problems))
    };
    Some(match rule.emit {
        Emit::Ignore => RuleAction::Ignore,
        Emit::Noise => RuleAction::Noise,
        Emit::Summary => {
            if rule.text.is_none() && !matches!(kind, PieceKind::Text { .. }) {
                problems.add("", "a summary of JSON or XML needs `text`");
            }
            let source = rule.text.as_ref();
            RuleAction::Summary(source.and_then(|text| text_source(text, kind, "/text", problems)))
        }
        Emit::Progress | Emit::Phase => RuleAction::Progress(Box::new(ProgressSource {
            percent: text(&rule.percent, "/percent"),
            phase: text(&rule.phase, "/phase"),
            current: text(&rule.current, "/current"),
            total: text(&rule.total, "/total"),
            eta_seconds: text(&rule.eta_seconds, "/eta_seconds"),
            count: rule.count,
        })),
        Emit::Finding => RuleAction::Finding(Box::new(finding(rule.finding.as_ref()?, kind, problems))),
    })
}

fn finding(template: &FindingTemplate, kind: PieceKind<'_>, problems: &mut Problems) -> FindingSource {
    let mut text = |value: &Option<TemplateValue>, name: &str| {
        let pointer = format!("/finding/{name}");
        value
            .as_ref()
            .and_then(|value| text_source(value, kind, &pointer, problems))
    };
    let compiled = FindingSource {
        kind: text(&template.kind, "kind"),
        severity: text(&template.severity, "severity"),
        id: text(&template.id, "id"),
        cve: text(&template.cve, "cve"),
        cwe: text(&template.cwe, "cwe"),
        title: text(&template.title, "title"),
        description: text(&template.description, "description"),
        remediation: text(&template.remediation, "remediation"),
        location: text(&template.location, "location"),
    };
    if template.id.is_none() && template.title.is_none() {
        problems.add("/finding", "a finding needs `id` or `title`");
    }
    if let Some(severity) = &compiled.severity {
        let literal = severity.template.as_literal().filter(|_| severity.map.is_empty());
        let words = severity
            .map
            .values()
            .chain(&severity.default)
            .map(String::as_str)
            .chain(literal);
        for word in words.filter(|word| Severity::parse(word).is_none()) {
            let message = format!("`{word}` is not a severity; use critical, high, medium, low or info");
            problems.add("/finding/severity", message);
        }
    }
    compiled
}

fn text_source(
    value: &TemplateValue,
    kind: PieceKind<'_>,
    pointer: &str,
    problems: &mut Problems,
) -> Option<TextSource> {
    let (text, map, default) = match value {
        TemplateValue::Text(text) => (text, BTreeMap::new(), None),
        TemplateValue::Mapped(mapped) => (&mapped.from, mapped.map.clone(), mapped.default.clone()),
    };
    match Template::parse(text, |reference| field(reference, kind)) {
        Ok(template) => {
            problems.note_arguments(pointer, &template);
            Some(TextSource {
                template,
                map,
                default,
            })
        }
        Err(message) => {
            problems.add(pointer, message);
            None
        }
    }
}
