//! From a `stream` block to [`StreamRules`]: collects every mistake, not just the first.

use std::collections::BTreeMap;

use super::{
    ArgumentReference, ItemPath, Reading, RuleProblem, StdioNeed, StreamRules,
    compile_rule::compile_rule,
    stream_rules::{CheckedLimits, CompiledRule, Selector},
    template::Template,
};
use crate::observe::{
    preset,
    progress::Phase,
    stream_block::{Framing, Limits, PhaseEntry, Preset, StreamBlock, StreamMode},
};

/// Compiles a block, or names everything that is wrong with it.
pub fn compile(block: &StreamBlock) -> Result<StreamRules, Vec<RuleProblem>> {
    let (compiled, problems) = compile_all(block);
    if problems.is_empty() {
        Ok(compiled)
    } else {
        Err(problems)
    }
}

/// The arguments of the call that the rules use, also where something else is wrong with them.
pub fn argument_references(block: &StreamBlock) -> Vec<ArgumentReference> {
    compile_all(block).0.argument_references
}

fn compile_all(block: &StreamBlock) -> (StreamRules, Vec<RuleProblem>) {
    let mut problems = Problems::default();
    let reading = reading(block, &mut problems);
    let framing = match reading {
        Reading::Framed(framing) => framing,
        Reading::Sarif => Framing::JsonDocument,
    };
    let own_rules = block.rules.iter().enumerate();
    let mut rules: Vec<(CompiledRule, Option<ItemPath>)> = own_rules
        .filter_map(|(index, rule)| {
            let mut own = Problems::default();
            let compiled = compile_rule(rule, framing, &mut own);
            problems.add_below(&format!("/rules/{index}"), own);
            compiled
        })
        .collect();
    match block.preset {
        Some(Preset::Junit) => {
            let junit = preset::junit_rules();
            rules.extend(
                junit
                    .iter()
                    .filter_map(|rule| compile_rule(rule, framing, &mut problems)),
            );
        }
        Some(Preset::Sarif) => {}
        None if block.rules.is_empty() => {
            problems.add("/rules", "no rules and no `preset`, so nothing would be seen")
        }
        None => {}
    }
    problems.found.extend(environment_problems(&block.env));
    let compiled = StreamRules {
        reading,
        json_groups: json_groups(&rules),
        phases: phases(&block.phases, &mut problems).into(),
        append_args: append_args(&block.append_args, &mut problems),
        env: block.env.clone(),
        stdio: stdio(block, &mut problems),
        show: block.show.unwrap_or_default(),
        limits: limits(block.limits.unwrap_or_default(), &mut problems),
        own_rules: block.rules.len().min(rules.len()),
        rules: rules.into_iter().map(|(rule, _)| rule).collect(),
        argument_references: std::mem::take(&mut problems.argument_references),
    };
    (compiled, problems.found)
}

/// Variables that no process can have; pointers are relative to the block or level with the `env`.
pub fn environment_problems(env: &BTreeMap<String, String>) -> Vec<RuleProblem> {
    let mut problems = Problems::default();
    for (name, value) in env {
        let pointer = format!("/env/{}", name.replace('~', "~0").replace('/', "~1"));
        if name.is_empty() || name.contains(['=', '\0']) {
            let message = format!("`{name}` cannot be the name of an environment variable");
            problems.add(pointer.as_str(), message);
        }
        if value.contains('\0') {
            problems.add(pointer, "a variable must not contain a NUL character");
        }
    }
    problems.found
}

/// Mistakes found so far, with pointers relative to what is compiled.
#[derive(Default)]
pub(super) struct Problems {
    found: Vec<RuleProblem>,
    /// Not known here whether they are one.
    argument_references: Vec<ArgumentReference>,
}

impl Problems {
    pub(super) fn add(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.found.push(RuleProblem {
            pointer: pointer.into(),
            message: message.into(),
        });
    }

    pub(super) fn note_arguments(&mut self, pointer: &str, template: &Template) {
        let references = template.arguments().map(|name| ArgumentReference {
            pointer: pointer.to_owned(),
            name: name.to_owned(),
        });
        self.argument_references.extend(references);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    fn add_below(&mut self, pointer: &str, others: Self) {
        for problem in others.found {
            self.add(format!("{pointer}{}", problem.pointer), problem.message);
        }
        let references = others.argument_references.into_iter();
        self.argument_references
            .extend(references.map(|reference| ArgumentReference {
                pointer: format!("{pointer}{}", reference.pointer),
                ..reference
            }));
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

/// Streams are kept apart, so that an unfinished line of one never spoils a line of the other.
fn stdio(block: &StreamBlock, problems: &mut Problems) -> StdioNeed {
    let rule_on_one_stream = block.rules.iter().position(|rule| rule.on.is_some());
    let is_merged_by = match (block.pty, block.streams) {
        (true, Some(StreamMode::Separate)) => {
            problems.add(
                "/streams",
                "a pseudo-terminal has only one stream; remove `pty` or `streams`",
            );
            return StdioNeed::Pty;
        }
        (true, _) => Some("`pty`"),
        (false, Some(StreamMode::Merged)) => Some("`\"streams\": \"merged\"`"),
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
        (false, Some(StreamMode::Merged)) => StdioNeed::Merged,
        (false, Some(StreamMode::Separate) | None) => StdioNeed::Separate,
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
