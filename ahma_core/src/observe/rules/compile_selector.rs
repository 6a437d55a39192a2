//! The pieces that a rule of a `stream` block looks at, and the fields that it may name in them.

use super::{
    ItemPath,
    compile::Problems,
    field::{AroundPath, Field, XmlPath},
    pattern::Pattern,
    stream_rules::{Expected, FieldCondition, Selector},
};
use crate::observe::stream_block::{Condition, ConditionValue, Framing, Rule, StreamName};

/// The kind of piece that the templates and conditions of a rule refer to.
#[derive(Clone, Copy)]
pub(super) enum PieceKind<'a> {
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

/// The selector of a rule, by the framing and the fields it has.
pub(super) fn selector(
    rule: &Rule,
    framing: Framing,
    problems: &mut Problems,
) -> Option<(Selector, Option<ItemPath>)> {
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

fn conditions(rule: &Rule, kind: PieceKind<'_>, problems: &mut Problems) -> Vec<FieldCondition> {
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
        match field(name, kind) {
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
pub(super) fn field(reference: &str, kind: PieceKind<'_>) -> Result<Field, String> {
    match kind {
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
