//! One rule of a `stream` block: which pieces it looks at, and what it makes of them.

use std::collections::BTreeMap;

use super::{
    ItemPath,
    compile::Problems,
    field::{AroundPath, Field, XmlPath},
    pattern::Pattern,
    stream_rules::{
        CompiledRule, Expected, FieldCondition, FindingSource, ProgressSource, RuleAction, Selector,
    },
    template::{Template, TextSource},
};
use crate::observe::{
    Severity,
    stream_block::{
        Condition, ConditionValue, Emit, FindingTemplate, Framing, Rule, StreamName, TemplateValue,
    },
};

/// The kind of piece that the templates and conditions of a rule refer to.
#[derive(Clone, Copy)]
enum PieceKind<'a> {
    Text {
        line: &'a Pattern,
        /// Of the next line, or of the one that ends a block.
        next: Option<&'a Pattern>,
        is_block: bool,
    },
    Json {
        is_item: bool,
    },
    Xml,
    /// Cannot be told, because the pattern is wrong: any reference may be right.
    Unknown,
}

/// Compiles one rule, and the path of the list that it looks at, if it does.
pub(super) fn compile_rule(
    rule: &Rule,
    framing: Framing,
    problems: &mut Problems,
) -> Option<(CompiledRule, Option<ItemPath>)> {
    check_parts(rule, problems);
    let selected = selector(rule, framing, problems);
    let language = match selected.as_ref().map(|(selector, _)| selector) {
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
    let action = action(rule, language, problems);
    let (selector, each) = selected?;
    let compiled = CompiledRule {
        on: rule.on,
        selector,
        action: action?,
    };
    problems.is_empty().then_some((compiled, each))
}

/// Finds out which pieces a rule looks at, from the framing and the fields it has.
fn selector(rule: &Rule, framing: Framing, problems: &mut Problems) -> Option<(Selector, Option<ItemPath>)> {
    let is_text = match framing {
        Framing::Lines => true,
        Framing::JsonLines => rule.pattern.is_some(),
        // Stderr is always lines.
        Framing::JsonDocument | Framing::Xml => rule.on == Some(StreamName::Stderr),
    };
    let is_xml = framing == Framing::Xml && !is_text;
    let mut forbid = |is_there: bool, field: &str, reason: &str| {
        if is_there {
            problems.add(format!("/{field}"), format!("`{field}` {reason}"));
        }
    };
    if is_text {
        let reason = "does not go with lines of text; use `match`";
        forbid(!rule.conditions.is_empty(), "where", reason);
        forbid(rule.each.is_some(), "each", reason);
        forbid(rule.element.is_some(), "element", reason);
    } else {
        let reason =
            "looks at lines of text, which this framing has only on stderr: add `\"on\": \"stderr\"`";
        forbid(rule.pattern.is_some(), "match", reason);
        for (field, value) in [
            ("next", &rule.next),
            ("until", &rule.until),
            ("collect", &rule.collect),
        ] {
            forbid(value.is_some(), field, "goes with `match`, for lines of text");
        }
        forbid(
            rule.each.is_some() && is_xml,
            "each",
            "is for JSON; use `element`",
        );
        forbid(
            rule.element.is_some() && !is_xml,
            "element",
            "is for XML; use `where` or `each`",
        );
    }
    let selector = if is_text {
        text_selector(rule, problems)?
    } else if is_xml {
        let element = rule.element.clone().unwrap_or_default();
        if element.is_empty() || element.contains(|c: char| c.is_whitespace() || "/@<>".contains(c)) {
            problems.add("/element", "`element` must be the name of an XML element");
        }
        Selector::Xml {
            element,
            conditions: conditions(rule, PieceKind::Xml, problems),
        }
    } else {
        Selector::Json {
            conditions: conditions(
                rule,
                PieceKind::Json {
                    is_item: rule.each.is_some(),
                },
                problems,
            ),
        }
    };
    let each = rule.each.as_ref().and_then(|pointer| {
        let path = ItemPath::parse(pointer);
        if path.is_none() {
            problems.add(
                "/each",
                format!("`{pointer}` is not a JSON pointer; it must be empty or begin with `/`"),
            );
        }
        path
    });
    Some((selector, each))
}

fn text_selector(rule: &Rule, problems: &mut Problems) -> Option<Selector> {
    let Some(text) = &rule.pattern else {
        problems.add("", "a rule for lines of text needs `match`");
        return None;
    };
    let line = pattern(text, "/match", problems);
    let optional = |text: &Option<String>, pointer: &str, problems: &mut Problems| match text {
        None => Some(None),
        Some(text) => pattern(text, pointer, problems).map(Some),
    };
    let next = optional(&rule.next, "/next", problems);
    let until = optional(&rule.until, "/until", problems);
    let collect = optional(&rule.collect, "/collect", problems);
    let (line, next, until, collect) = (line?, next?, until?, collect?);
    for (pointer, other) in [("/next", &next), ("/until", &until)] {
        for name in other.iter().flat_map(Pattern::group_names).flatten() {
            if line.group_names().flatten().any(|other| other == name) {
                problems.add(
                    pointer,
                    format!("group `{name}` is in `match` too; give it another name"),
                );
            }
        }
    }
    if next.is_some() && until.is_some() {
        problems.add(
            "/until",
            "`until` does not go with `next`; it sees the next line, too",
        );
    }
    match (until, collect) {
        (Some(until), collect) => Some(Selector::Block { line, until, collect }),
        (None, Some(_)) => {
            problems.add("/collect", "`collect` needs `until`, which ends the block");
            None
        }
        (None, None) => Some(Selector::Text { line, next }),
    }
}

fn pattern(text: &str, pointer: &str, problems: &mut Problems) -> Option<Pattern> {
    let pattern = Pattern::new(text);
    if let Err(reason) = &pattern {
        problems.add(pointer, format!("bad regular expression: {reason}"));
    }
    pattern.ok()
}

fn conditions(rule: &Rule, language: PieceKind<'_>, problems: &mut Problems) -> Vec<FieldCondition> {
    let mut compiled = Vec::new();
    for (name, condition) in &rule.conditions {
        let pointer = format!("/where/{}", name.replace('~', "~0").replace('/', "~1"));
        let expected = match condition {
            Condition::Exists(condition) if condition.exists => Expected::Present,
            Condition::Exists(_) => Expected::Absent,
            Condition::OneOf(values) => Expected::OneOf(values.iter().map(scalar_text).collect()),
            Condition::Is(value) => Expected::OneOf(vec![scalar_text(value)]),
        };
        if matches!(&expected, Expected::OneOf(values) if values.is_empty()) {
            problems.add(pointer.as_str(), "an empty list never holds");
        }
        match field(name, language) {
            Ok(field) => compiled.push(FieldCondition { field, expected }),
            Err(message) => problems.add(pointer.as_str(), message),
        }
    }
    compiled
}

fn scalar_text(value: &ConditionValue) -> String {
    match value {
        ConditionValue::Bool(value) => value.to_string(),
        ConditionValue::Number(value) => value.to_string(),
        ConditionValue::String(value) => value.clone(),
    }
}

/// The field that a reference names in this kind of rule.
fn field(reference: &str, language: PieceKind<'_>) -> Result<Field, String> {
    match language {
        _ if reference == "." => Ok(Field::Whole),
        _ if reference.starts_with('$') => match &reference[1..] {
            "" => Err("`$` needs the name of an argument: `{$target}`".to_owned()),
            name => Ok(Field::Argument(name.to_owned())),
        },
        PieceKind::Json { .. } if reference.starts_with('/') => Ok(Field::Pointer(reference.to_owned())),
        PieceKind::Json { is_item: true } if reference.starts_with("../") => AroundPath::parse(reference)
            .map(Field::Around)
            .ok_or_else(|| format!("`{reference}` names no field: write `../name`")),
        PieceKind::Json { is_item: false } if reference.starts_with("../") => Err(format!(
            "`{reference}` needs `each`, whose items have objects around them"
        )),
        PieceKind::Json { .. } => Err(format!("`{reference}` is not a JSON pointer; begin it with `/`")),
        PieceKind::Unknown => Ok(Field::Whole),
        PieceKind::Xml => XmlPath::parse(reference).map(Field::Path).ok_or_else(|| {
            format!("`{reference}` is not a path like `@attribute`, `child/@attribute` or `child`")
        }),
        PieceKind::Text { is_block: true, .. } if reference == "lines" => Ok(Field::Lines),
        PieceKind::Text { line, next, .. } => group(reference, line, next),
    }
}

/// A group by its name, or by its number in `match`.
fn group(reference: &str, line: &Pattern, next: Option<&Pattern>) -> Result<Field, String> {
    let named = |pattern: &Pattern| pattern.group_names().position(|name| name == Some(reference));
    let numbered = || {
        reference
            .parse()
            .ok()
            .filter(|number| *number < line.group_count())
    };
    let found = named(line).map(Field::Group);
    let found = found.or_else(|| next.and_then(named).map(Field::NextGroup));
    found.or_else(|| numbered().map(Field::Group)).ok_or_else(|| {
        let names: Vec<_> = line
            .group_names()
            .chain(next.into_iter().flat_map(Pattern::group_names))
            .flatten()
            .collect();
        match names.is_empty() {
            true => {
                format!("`{reference}` is not a group of `match`, which has none: write `(?P<{reference}>…)`")
            }
            false => format!(
                "`{reference}` is not a group of `match`; it has {}",
                names.join(", ")
            ),
        }
    })
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

fn action(rule: &Rule, language: PieceKind<'_>, problems: &mut Problems) -> Option<RuleAction> {
    let mut text = |value: &Option<TemplateValue>, name: &str| {
        value
            .as_ref()
            .and_then(|value| text_source(value, language, name, problems))
    };
    Some(match rule.emit {
        Emit::Ignore => RuleAction::Ignore,
        Emit::Noise => RuleAction::Noise,
        Emit::Summary => {
            if rule.text.is_none() && !matches!(language, PieceKind::Text { .. }) {
                problems.add("", "a summary of JSON or XML needs `text`");
            }
            let source = rule.text.as_ref();
            RuleAction::Summary(source.and_then(|text| text_source(text, language, "/text", problems)))
        }
        Emit::Progress | Emit::Phase => RuleAction::Progress(Box::new(ProgressSource {
            percent: text(&rule.percent, "/percent"),
            phase: text(&rule.phase, "/phase"),
            current: text(&rule.current, "/current"),
            total: text(&rule.total, "/total"),
            eta_seconds: text(&rule.eta_seconds, "/eta_seconds"),
            count: rule.count,
        })),
        Emit::Finding => RuleAction::Finding(Box::new(finding(rule.finding.as_ref()?, language, problems))),
    })
}

fn finding(template: &FindingTemplate, language: PieceKind<'_>, problems: &mut Problems) -> FindingSource {
    let mut text = |value: &Option<TemplateValue>, name: &str| {
        let pointer = format!("/finding/{name}");
        value
            .as_ref()
            .and_then(|value| text_source(value, language, &pointer, problems))
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
    language: PieceKind<'_>,
    pointer: &str,
    problems: &mut Problems,
) -> Option<TextSource> {
    let (text, map, default) = match value {
        TemplateValue::Text(text) => (text, BTreeMap::new(), None),
        TemplateValue::Mapped(mapped) => (&mapped.from, mapped.map.clone(), mapped.default.clone()),
    };
    match Template::parse(text, |reference| field(reference, language)) {
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
