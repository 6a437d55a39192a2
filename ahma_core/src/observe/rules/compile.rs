//! From a `stream` block to [`StreamRules`]: collects every mistake, not just the first.

use std::collections::BTreeMap;

use regex::Regex;

use super::{
    Action, CheckedLimits, CompiledRule, Expected, FieldCondition, FindingSource, ItemPath, ProgressSource,
    Reading, RuleProblem, Selector, StdioNeed, StreamRules, TextSource,
    field::{Field, XmlPath},
    template::Template,
};
use crate::{
    mtdf::stream::{
        Condition, Emit, FindingTemplate, Framing, Limits, PhaseEntry, Preset, Rule, Scalar, StreamBlock,
        StreamName, Streams, TemplateValue,
    },
    observe::{Severity, Source, preset, progress::Phase},
};

/// Compiles a block, or names everything that is wrong with it.
pub fn compile(block: &StreamBlock) -> Result<StreamRules, Vec<RuleProblem>> {
    let mut problems = Problems::default();
    let reading = reading(block, &mut problems);
    let framing = match reading {
        Reading::Framed(framing) => framing,
        Reading::Sarif => Framing::JsonDocument,
    };
    let own_rules = block.rules.iter().enumerate();
    let mut rules: Vec<(CompiledRule, Option<ItemPath>)> = own_rules
        .filter_map(|(index, rule)| compile_rule(rule, framing, &mut problems.at(&format!("/rules/{index}"))))
        .collect();
    match block.preset {
        Some(Preset::Junit) => {
            let junit = preset::junit_rules();
            rules.extend(
                junit
                    .iter()
                    .filter_map(|rule| compile_rule(rule, framing, &mut problems.at("/preset"))),
            );
        }
        Some(Preset::Sarif) => {}
        None if block.rules.is_empty() => {
            problems.add("/rules", "no rules and no `preset`, so nothing would be seen")
        }
        None => {}
    }
    let compiled = StreamRules {
        reading,
        json_groups: json_groups(&rules),
        phases: phases(&block.phases, &mut problems).into(),
        append_args: append_args(&block.append_args, &mut problems),
        env: environment(&block.env, &mut problems),
        stdio: stdio(block, framing, &mut problems),
        limits: limits(block.limits.unwrap_or_default(), &mut problems),
        rules: rules.into_iter().map(|(rule, _)| rule).collect(),
    };
    if problems.found.is_empty() {
        Ok(compiled)
    } else {
        Err(problems.found)
    }
}

/// Mistakes found so far, and the place that is being looked at.
#[derive(Default)]
struct Problems {
    found: Vec<RuleProblem>,
}

struct ProblemsAt<'a> {
    problems: &'a mut Problems,
    place: &'a str,
}

impl Problems {
    fn add(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.found.push(RuleProblem {
            pointer: pointer.into(),
            message: message.into(),
        });
    }

    fn at<'a>(&'a mut self, place: &'a str) -> ProblemsAt<'a> {
        ProblemsAt {
            problems: self,
            place,
        }
    }
}

impl ProblemsAt<'_> {
    fn add(&mut self, below: &str, message: impl Into<String>) {
        self.problems.add(format!("{}{below}", self.place), message);
    }
}

fn reading(block: &StreamBlock, problems: &mut Problems) -> Reading {
    let (preset_name, preset_framing, reading) = match block.preset {
        None => return Reading::Framed(block.framing.unwrap_or_default()),
        Some(Preset::Sarif) => ("sarif", Framing::JsonDocument, Reading::Sarif),
        Some(Preset::Junit) => ("junit", Framing::Xml, Reading::Framed(Framing::Xml)),
    };
    if block.framing.is_some_and(|framing| framing != preset_framing) {
        let message = format!("preset `{preset_name}` brings its own framing; remove `framing`");
        problems.add("/framing", message);
    }
    reading
}

/// What the templates and conditions of a rule refer to.
#[derive(Clone, Copy)]
enum Language<'a> {
    Text(&'a Regex),
    Json,
    Xml,
}

fn compile_rule(
    rule: &Rule,
    framing: Framing,
    problems: &mut ProblemsAt<'_>,
) -> Option<(CompiledRule, Option<ItemPath>)> {
    let before = problems.problems.found.len();
    let (selector, each) = selector(rule, framing, problems)?;
    let language = match &selector {
        Selector::Text(regex) => Language::Text(regex),
        Selector::Json { .. } => Language::Json,
        Selector::Xml { .. } => Language::Xml,
    };
    let action = action(rule, language, problems);
    let on = rule.on.map(|on| match on {
        StreamName::Stdout => Source::Stdout,
        StreamName::Stderr => Source::Stderr,
    });
    let is_sound = problems.problems.found.len() == before;
    is_sound.then_some((
        CompiledRule {
            on,
            selector,
            action: action?,
        },
        each,
    ))
}

/// Finds out which pieces a rule looks at, from the framing and the fields it has.
fn selector(
    rule: &Rule,
    framing: Framing,
    problems: &mut ProblemsAt<'_>,
) -> Option<(Selector, Option<ItemPath>)> {
    let before = problems.problems.found.len();
    let is_text = match framing {
        Framing::Lines => true,
        Framing::JsonLines => rule.pattern.is_some(),
        // Stderr is always lines.
        Framing::JsonDocument | Framing::Xml => rule.on == Some(StreamName::Stderr),
    };
    let is_xml = framing == Framing::Xml && !is_text;
    let mut forbid = |is_there: bool, field: &str, reason: &str| {
        if is_there {
            problems.add(&format!("/{field}"), format!("`{field}` {reason}"));
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
        Selector::Text(pattern(rule, problems)?)
    } else if is_xml {
        let element = rule.element.clone().unwrap_or_default();
        if element.is_empty() || element.contains(|c: char| c.is_whitespace() || "/@<>".contains(c)) {
            problems.add("/element", "`element` must be the name of an XML element");
        }
        Selector::Xml {
            element,
            conditions: conditions(rule, Language::Xml, problems),
        }
    } else {
        Selector::Json {
            conditions: conditions(rule, Language::Json, problems),
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
    (problems.problems.found.len() == before).then_some((selector, each))
}

fn pattern(rule: &Rule, problems: &mut ProblemsAt<'_>) -> Option<Regex> {
    let Some(pattern) = &rule.pattern else {
        problems.add("", "a rule for lines of text needs `match`");
        return None;
    };
    match Regex::new(pattern) {
        Ok(regex) => Some(regex),
        Err(error) => {
            // The crate draws the pattern over several lines; the last one says what is wrong.
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim();
            problems.add(
                "/match",
                format!("bad regular expression: {}", reason.trim_start_matches("error: ")),
            );
            None
        }
    }
}

fn conditions(rule: &Rule, language: Language<'_>, problems: &mut ProblemsAt<'_>) -> Vec<FieldCondition> {
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
            problems.add(&pointer, "an empty list never holds");
        }
        match field(name, language) {
            Ok(field) => compiled.push(FieldCondition { field, expected }),
            Err(message) => problems.add(&pointer, message),
        }
    }
    compiled
}

fn scalar_text(value: &Scalar) -> String {
    match value {
        Scalar::Bool(value) => value.to_string(),
        Scalar::Number(value) => value.to_string(),
        Scalar::String(value) => value.clone(),
    }
}

/// Which field a reference names in this kind of rule.
fn field(reference: &str, language: Language<'_>) -> Result<Field, String> {
    match language {
        _ if reference == "." => Ok(Field::Whole),
        Language::Json if reference.starts_with('/') => Ok(Field::Pointer(reference.to_owned())),
        Language::Json => Err(format!("`{reference}` is not a JSON pointer; begin it with `/`")),
        Language::Xml => XmlPath::parse(reference).map(Field::Path).ok_or_else(|| {
            format!("`{reference}` is not a path like `@attribute`, `child/@attribute` or `child`")
        }),
        Language::Text(regex) => {
            let by_name = regex.capture_names().position(|name| name == Some(reference));
            let by_number = || {
                reference
                    .parse()
                    .ok()
                    .filter(|number| *number < regex.captures_len())
            };
            by_name.or_else(by_number).map(Field::Group).ok_or_else(|| {
                let names: Vec<_> = regex.capture_names().flatten().collect();
                match names.is_empty() {
                    true => format!(
                        "`{reference}` is no group of `match`, which has none: write `(?P<{reference}>…)`"
                    ),
                    false => format!(
                        "`{reference}` is no group of `match`; it has {}",
                        names.join(", ")
                    ),
                }
            })
        }
    }
}

fn action(rule: &Rule, language: Language<'_>, problems: &mut ProblemsAt<'_>) -> Option<Action> {
    let Some(emit) = rule.emit else {
        problems.add("", "a rule needs `emit`: progress, phase, finding or ignore");
        return None;
    };
    let has_numbers = rule.percent.is_some() || rule.current.is_some() || rule.total.is_some() || rule.count;
    let has_progress = has_numbers || rule.phase.is_some() || rule.eta_seconds.is_some();
    let emit_name = match emit {
        Emit::Progress => "progress",
        Emit::Phase => "phase",
        Emit::Finding => "finding",
        Emit::Ignore => "ignore",
    };
    if emit != Emit::Finding && rule.finding.is_some() {
        problems.add(
            "/finding",
            format!("`finding` does not go with `\"emit\": \"{emit_name}\"`"),
        );
    }
    match emit {
        Emit::Progress if !has_progress => {
            problems.add(
                "",
                "a progress rule needs `percent`, `current`, `total`, `count`, `phase` or `eta_seconds`",
            );
        }
        Emit::Phase if rule.phase.is_none() => problems.add("", "a phase rule needs `phase`"),
        Emit::Phase if has_numbers => {
            problems.add("", "a phase rule has no numbers; use `\"emit\": \"progress\"`")
        }
        Emit::Finding if rule.finding.is_none() => problems.add("", "a finding rule needs `finding`"),
        Emit::Finding | Emit::Ignore if has_progress => {
            problems.add(
                "",
                format!("a rule with `\"emit\": \"{emit_name}\"` says nothing about progress"),
            );
        }
        _ => {}
    }
    let mut text = |value: &Option<TemplateValue>, name: &str| {
        value
            .as_ref()
            .and_then(|value| text_source(value, language, name, problems))
    };
    Some(match emit {
        Emit::Ignore => Action::Ignore,
        Emit::Progress | Emit::Phase => Action::Progress(Box::new(ProgressSource {
            percent: text(&rule.percent, "/percent"),
            phase: text(&rule.phase, "/phase"),
            current: text(&rule.current, "/current"),
            total: text(&rule.total, "/total"),
            eta_seconds: text(&rule.eta_seconds, "/eta_seconds"),
            count: rule.count,
        })),
        Emit::Finding => Action::Finding(Box::new(finding(rule.finding.as_ref()?, language, problems))),
    })
}

fn finding(
    template: &FindingTemplate,
    language: Language<'_>,
    problems: &mut ProblemsAt<'_>,
) -> FindingSource {
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
            let message = format!("`{word}` is no severity; use critical, high, medium, low or info");
            problems.add("/finding/severity", message);
        }
    }
    compiled
}

fn text_source(
    value: &TemplateValue,
    language: Language<'_>,
    pointer: &str,
    problems: &mut ProblemsAt<'_>,
) -> Option<TextSource> {
    let (text, map, default) = match value {
        TemplateValue::Text(text) => (text, BTreeMap::new(), None),
        TemplateValue::Mapped(mapped) => (&mapped.from, mapped.map.clone(), mapped.default.clone()),
    };
    match Template::parse(text, |reference| field(reference, language)) {
        Ok(template) => Some(TextSource {
            template,
            map,
            default,
        }),
        Err(message) => {
            problems.add(pointer, message);
            None
        }
    }
}

fn json_groups(rules: &[(CompiledRule, Option<ItemPath>)]) -> Vec<(Option<ItemPath>, Vec<usize>)> {
    let mut groups: Vec<(Option<ItemPath>, Vec<usize>)> = Vec::new();
    for (index, (rule, each)) in rules.iter().enumerate() {
        if !matches!(rule.selector, Selector::Json { .. }) {
            continue;
        }
        match groups.iter_mut().find(|(group, _)| group == each) {
            Some((_, members)) => members.push(index),
            None => groups.push((each.clone(), vec![index])),
        }
    }
    groups
}

fn phases(entries: &[PhaseEntry], problems: &mut Problems) -> Vec<Phase> {
    let mut weighted: Vec<(&str, f64)> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let (name, weight) = match entry {
            PhaseEntry::Name(name) => (name, 1.0),
            PhaseEntry::Weighted(phase) => (&phase.name, phase.weight.unwrap_or(1.0)),
        };
        if name.trim().is_empty() {
            problems.add(format!("/phases/{index}"), "a phase needs a name");
        }
        if weighted.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            problems.add(
                format!("/phases/{index}"),
                format!("phase `{name}` stands here twice"),
            );
        }
        if !(weight.is_finite() && weight > 0.0) {
            problems.add(
                format!("/phases/{index}/weight"),
                "a weight must be greater than 0",
            );
        }
        weighted.push((name, weight));
    }
    let total: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    let mut start = 0.0;
    let place = |(name, weight): (&str, f64)| {
        let share = weight * 100.0 / total;
        let phase = Phase {
            name: name.to_owned(),
            start,
            share,
        };
        start += share;
        phase
    };
    weighted.into_iter().map(place).collect()
}

fn append_args(arguments: &[String], problems: &mut Problems) -> Vec<String> {
    for (index, argument) in arguments.iter().enumerate() {
        if argument.contains('\0') {
            problems.add(format!("/append_args/{index}"), "an argument cannot hold a NUL");
        }
    }
    arguments.to_vec()
}

fn environment(env: &BTreeMap<String, String>, problems: &mut Problems) -> BTreeMap<String, String> {
    for (name, value) in env {
        let pointer = || format!("/env/{}", name.replace('~', "~0").replace('/', "~1"));
        if name.is_empty() || name.contains(['=', '\0']) {
            problems.add(
                pointer(),
                format!("`{name}` cannot be the name of an environment variable"),
            );
        }
        if value.contains('\0') {
            problems.add(pointer(), "a value cannot hold a NUL");
        }
    }
    env.clone()
}

/// Streams are kept apart when a rule asks for one of them, or when the other's text would stand inside a document.
fn stdio(block: &StreamBlock, framing: Framing, problems: &mut Problems) -> StdioNeed {
    let rule_on_one_stream = block.rules.iter().position(|rule| rule.on.is_some());
    let is_merged_by = match (block.pty, block.streams) {
        (true, Some(Streams::Separate)) => {
            problems.add(
                "/streams",
                "a pseudo-terminal has only one stream; remove `pty` or `streams`",
            );
            return StdioNeed::Pty;
        }
        (true, _) => Some("`pty`"),
        (false, Some(Streams::Merged)) => Some("`\"streams\": \"merged\"`"),
        (false, _) => None,
    };
    if let (Some(setting), Some(index)) = (is_merged_by, rule_on_one_stream) {
        problems.add(
            format!("/rules/{index}/on"),
            format!("{setting} makes one stream of both, so `on` cannot work"),
        );
    }
    match (block.pty, block.streams) {
        (true, _) => StdioNeed::Pty,
        (false, Some(Streams::Merged)) => StdioNeed::Merged,
        (false, Some(Streams::Separate)) => StdioNeed::Separate,
        (false, None) if rule_on_one_stream.is_some() || framing != Framing::Lines => StdioNeed::Separate,
        (false, None) => StdioNeed::Merged,
    }
}

fn limits(limits: Limits, problems: &mut Problems) -> CheckedLimits {
    let mut check = |name: &str, value: Option<usize>, default: usize, most: usize| {
        let value = value.unwrap_or(default);
        if value == 0 || value > most {
            problems.add(
                format!("/limits/{name}"),
                format!("`{name}` must be between 1 and {most}"),
            );
        }
        value
    };
    const MIB: usize = 1024 * 1024;
    CheckedLimits {
        findings: check("max_findings", limits.max_findings, 1_000, 100_000),
        frame_bytes: check("max_frame_bytes", limits.max_frame_bytes, MIB, 16 * MIB),
        document_bytes: check(
            "max_document_bytes",
            limits.max_document_bytes,
            64 * MIB,
            256 * MIB,
        ),
    }
}
