//! Checks a set of tool files together: names that meet, and sequences that call other tools.

use std::collections::{BTreeMap, HashMap, HashSet};

use ahma_common::nearest;

use super::{
    accept::{self, ArgumentProblem},
    check::{Checked, check_draft, located},
    problem::{Mistake, Problem, ProblemSeverity, child},
    step_arguments,
    tool::{BUILT_IN_TOOLS, Leaf, LeafAction, SHELL_TOOL, SequenceTemplate, StepTemplate, ToolDef},
    value::listed,
};

/// More steps than this, with those of inner sequences, are a mistake: each step is planned before the first one runs.
const MAX_STEPS: usize = 256;

/// One tool file that was read.
#[derive(Debug, Clone)]
pub struct ToolSource {
    /// Name of the file in problems.
    pub name: String,
    pub text: String,
}

/// Returns whether a file of a tools directory is a tool file. Hidden files are leftovers of editors.
pub fn is_tool_file(name: &str) -> bool {
    name.ends_with(".json") && !name.starts_with('.')
}

/// Result of a check of several files.
#[derive(Debug, Clone, Default)]
pub struct SetReport {
    /// The tools of the files without errors, in the order of the sources.
    pub tools: Vec<ToolDef>,
    /// Of all files, in the order of the sources.
    pub problems: Vec<Problem>,
}

/// Checks every file on its own, then all of them together. A file with an error never stops the others.
pub fn check_set(sources: &[ToolSource]) -> SetReport {
    let (checked, drafts): (Vec<Checked>, Vec<Option<ToolDef>>) = sources
        .iter()
        .map(|source| check_draft(&source.name, &source.text))
        .unzip();
    let mut report = check_together(sources, checked);
    let drafts = sources.iter().zip(drafts);
    for (source, draft) in drafts.filter_map(|(source, draft)| Some((source, draft?))) {
        let steps = steps_of_draft(&draft, &report);
        report.problems.extend(located(&source.name, &source.text, steps));
    }
    report.problems.sort_by_cached_key(|problem| {
        let of_file = sources.iter().position(|source| source.name == problem.file);
        (of_file, problem.line, problem.column)
    });
    report
}

/// The second half of [`check_set`], for callers that keep what [`check_file`](super::check_file) said about unchanged files.
/// Both lists are in the same order.
pub fn check_together(sources: &[ToolSource], checked: Vec<Checked>) -> SetReport {
    let mut problems: Vec<Vec<Problem>> = Vec::with_capacity(checked.len());
    let mut tools: Vec<Option<ToolDef>> = Vec::with_capacity(checked.len());
    for file in checked {
        problems.push(file.problems);
        tools.push(file.tool);
    }
    // Each round may take files out, and what relied on them is found in the next.
    loop {
        let mistakes = together(&tools);
        if mistakes.is_empty() {
            break;
        }
        for (index, mistakes) in mistakes {
            if mistakes
                .iter()
                .any(|mistake| mistake.severity == ProblemSeverity::Error)
            {
                tools[index] = None;
            }
            problems[index].extend(located(&sources[index].name, &sources[index].text, mistakes));
        }
    }
    SetReport {
        tools: tools.into_iter().flatten().collect(),
        problems: problems.into_iter().flatten().collect(),
    }
}

/// A warning about a place in a file that only its caller could find. Without such a place it is about the whole file.
pub fn warning_at(source: &ToolSource, pointer: &str, message: String, hint: String) -> Option<Problem> {
    let mistake = Mistake::warning(pointer, message).hint(hint);
    located(&source.name, &source.text, vec![mistake]).pop()
}

/// Mistakes in the steps of a file that has errors, so that all of them are reported at once.
fn steps_of_draft(draft: &ToolDef, report: &SetReport) -> Vec<Mistake> {
    let known = Known::new(report.tools.iter().chain([draft]));
    let own: HashSet<&str> = draft.leaves.iter().map(|leaf| leaf.name.as_str()).collect();
    let mut mistakes = Vec::new();
    for leaf in draft.leaves.iter().filter(|leaf| leaf.enabled) {
        if let LeafAction::Sequence(sequence) = &leaf.action {
            mistakes.extend(known.sequence(leaf, sequence, &own));
        }
    }
    // Where something is wrong already, more would only repeat it.
    let is_known = |mistake: &Mistake| {
        let problems = report.problems.iter();
        (problems.filter(|problem| problem.file == draft.file)).any(|known| known.pointer == mistake.pointer)
    };
    mistakes.retain(|mistake| !is_known(mistake));
    mistakes
}

/// Errors that only show when the tools are seen together, by the index of the file.
fn together(tools: &[Option<ToolDef>]) -> BTreeMap<usize, Vec<Mistake>> {
    let mut mistakes: BTreeMap<usize, Vec<Mistake>> = BTreeMap::new();
    let leaves = || {
        let present = tools
            .iter()
            .enumerate()
            .filter_map(|(index, tool)| Some((index, tool.as_ref()?)));
        present.flat_map(|(index, tool)| tool.leaves.iter().map(move |leaf| (index, tool, leaf.as_ref())))
    };
    let mut by_name: HashMap<&str, Vec<(usize, &ToolDef, &Leaf)>> = HashMap::new();
    for (index, tool, leaf) in leaves().filter(|(_, _, leaf)| leaf.enabled) {
        by_name.entry(&leaf.name).or_default().push((index, tool, leaf));
    }
    for (name, owners) in by_name.iter().filter(|(_, owners)| owners.len() > 1) {
        for (index, _, leaf) in owners {
            let others = owners
                .iter()
                .filter(|(other, _, _)| other != index)
                .map(|(_, other, _)| other.file.as_str());
            let others = others.collect::<Vec<_>>().join("`, `");
            let mistake = Mistake::error(
                &leaf.name_pointer,
                format!("the tool `{name}` is also defined in `{others}`"),
            );
            mistakes
                .entry(*index)
                .or_default()
                .push(mistake.hint("give one of the files another `name`"));
        }
    }
    let known = Known::new(tools.iter().flatten());
    for (index, _, leaf) in leaves().filter(|(_, _, leaf)| leaf.enabled) {
        if let LeafAction::Sequence(sequence) = &leaf.action {
            let found = known.sequence(leaf, sequence, &HashSet::new());
            if !found.is_empty() {
                mistakes.entry(index).or_default().extend(found);
            }
        }
    }
    mistakes
}

/// All tools by name.
struct Known<'a> {
    enabled: HashMap<&'a str, &'a Leaf>,
    disabled: HashSet<&'a str>,
}

impl<'a> Known<'a> {
    fn new(tools: impl Iterator<Item = &'a ToolDef>) -> Self {
        let mut known = Self {
            enabled: HashMap::new(),
            disabled: HashSet::new(),
        };
        for leaf in tools.flat_map(|tool| &tool.leaves) {
            if leaf.enabled {
                known.enabled.entry(&leaf.name).or_insert(leaf);
            } else {
                known.disabled.insert(&leaf.name);
            }
        }
        known
    }

    /// Mistakes in the steps of `leaf`. The arguments of the tools named in `drafts` are not known for certain.
    fn sequence(&self, leaf: &Leaf, sequence: &SequenceTemplate, drafts: &HashSet<&str>) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        for step in &sequence.steps {
            // Their values are known when the sequence is called.
            let is_open = |name: &str| {
                let value = step.arguments.get(name);
                !sequence.parameters.is_empty()
                    && value.is_some_and(|value| !step_arguments::references(value).is_empty())
            };
            if step.target == SHELL_TOOL {
                let problems = accept::shell_command(&step.arguments, &[])
                    .err()
                    .unwrap_or_default();
                let problems = problems.iter();
                mistakes.extend(problems.map(|problem| in_arguments(step, problem, &["command"])));
                continue;
            }
            let Some(target) = self.enabled.get(step.target.as_str()) else {
                mistakes.push(self.missing(step));
                continue;
            };
            match &target.action {
                LeafAction::Command(_)
                | LeafAction::Script
                | LeafAction::ReadOnlyScript
                | LeafAction::File(_)
                    if drafts.contains(target.name.as_str()) => {}
                LeafAction::Command(_)
                | LeafAction::Script
                | LeafAction::ReadOnlyScript
                | LeafAction::File(_) => mistakes.extend(arguments_of(step, target, is_open)),
                LeafAction::Sequence(_) => {
                    mistakes.extend(arguments_of(step, target, is_open));
                    if step.skip.is_some() {
                        let message = "a step that is a sequence cannot have a skip condition";
                        mistakes
                            .push(Mistake::error(&step.pointer, message).hint("give it to the inner steps"));
                    }
                    if let Some(cycle) = self.cycle(&leaf.name, target) {
                        mistakes.push(Mistake::error(
                            child(&step.pointer, "tool"),
                            format!("the sequence calls itself: {cycle}"),
                        ));
                    }
                }
            }
        }
        if mistakes.is_empty() && self.steps(sequence, MAX_STEPS).is_none() {
            let message =
                format!("the sequence has more than {MAX_STEPS} steps, counting those of inner sequences");
            mistakes.push(Mistake::error(child(&leaf.pointer, "sequence"), message));
        }
        mistakes
    }

    /// Reason for which there is nothing that the step could call. Blames `subcommand` where `tool` is right.
    fn missing(&self, step: &StepTemplate) -> Mistake {
        let StepTemplate { tool, target, .. } = step;
        let below = format!("{tool}_");
        let subcommand = target.strip_prefix(&below);
        let mut others: Vec<&str> = (self.enabled.keys())
            .filter_map(|name| name.strip_prefix(&below))
            .collect();
        others.sort_unstable();
        let tool_exists = !others.is_empty() || self.enabled.contains_key(tool.as_str());
        let blamed = if subcommand.is_some() && tool_exists {
            "subcommand"
        } else {
            "tool"
        };
        let error = |message: String| Mistake::error(child(&step.pointer, blamed), message);
        if self.disabled.contains(target.as_str()) {
            return error(format!("the tool `{target}` is disabled")).hint("enable it, or take out the step");
        }
        if BUILT_IN_TOOLS.contains(&target.as_str()) {
            return error(format!("the built-in tool `{target}` cannot be a step"));
        }
        match subcommand {
            Some(_) if tool_exists && others.is_empty() => {
                error(format!("the tool `{tool}` has no subcommands")).hint("leave `subcommand` out")
            }
            Some(subcommand) if tool_exists => {
                let mistake = error(format!("the tool `{tool}` has no subcommand `{subcommand}`"));
                mistake.hint(match nearest(subcommand, others.iter().copied()).first() {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it has {}", listed(&others)),
                })
            }
            None if tool_exists => error(format!("the tool `{tool}` is called by its subcommands"))
                .hint(format!("name one in `subcommand`: {}", listed(&others))),
            _ => {
                let near = nearest(tool, self.tools(subcommand));
                error(format!("no tool is called `{tool}`")).hint(match near.first() {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "its file may be missing or have problems of its own".to_owned(),
                })
            }
        }
    }

    /// Tools that have this subcommand.
    fn tools(&self, subcommand: Option<&str>) -> impl Iterator<Item = &str> {
        let ending = subcommand.map_or_else(String::new, |subcommand| format!("_{subcommand}"));
        let names = self.enabled.keys();
        names.filter_map(move |name| name.strip_suffix(ending.as_str()))
    }

    /// The way from `start` through `target` back to `start`, if there is one.
    fn cycle(&self, start: &str, target: &'a Leaf) -> Option<String> {
        let mut seen = HashSet::new();
        let mut ways = vec![vec![target]];
        while let Some(way) = ways.pop() {
            let last = way.last()?;
            if last.name == start {
                let names: Vec<&str> = way.iter().map(|leaf| leaf.name.as_str()).collect();
                return Some(format!("`{start}` → `{}`", names.join("` → `")));
            }
            if !seen.insert(last.name.as_str()) {
                continue;
            }
            if let LeafAction::Sequence(sequence) = &last.action {
                let next = sequence
                    .steps
                    .iter()
                    .filter_map(|step| self.enabled.get(step.target.as_str()));
                ways.extend(next.map(|leaf| [way.as_slice(), &[*leaf]].concat()));
            }
        }
        None
    }

    /// Number of steps left of `budget`, or `None` when it is used up. Only for sequences without cycles.
    fn steps(&self, sequence: &SequenceTemplate, budget: usize) -> Option<usize> {
        sequence.steps.iter().try_fold(budget, |budget, step| {
            match self.enabled.get(step.target.as_str()).map(|leaf| &leaf.action) {
                // Every level uses up a step, so that a cycle somewhere below ends as well.
                Some(LeafAction::Sequence(inner)) => self.steps(inner, budget.checked_sub(1)?),
                _ => budget.checked_sub(1),
            }
        })
    }
}

/// Mistakes in the arguments that a step gives to a tool, but for the values that are `open`.
fn arguments_of(step: &StepTemplate, target: &Leaf, is_open: impl Fn(&str) -> bool) -> Vec<Mistake> {
    let (_, problems) = accept::accept(target.parameters(), &step.arguments, &[]);
    let names: Vec<&str> = target
        .parameters()
        .map(|parameter| parameter.name.as_str())
        .collect();
    let is_known = |name: &str| names.contains(&name);
    let problems = problems
        .iter()
        .filter(|problem| !(is_known(&problem.argument) && is_open(&problem.argument)));
    problems
        .map(|problem| in_arguments(step, problem, &names))
        .collect()
}

/// A name that is not known is itself at fault, otherwise its value.
fn in_arguments(step: &StepTemplate, problem: &ArgumentProblem, names: &[&str]) -> Mistake {
    let pointer = child(&child(&step.pointer, "args"), &problem.argument);
    let mistake = Mistake::error(pointer, problem.to_string());
    if names.contains(&problem.argument.as_str()) {
        mistake
    } else if names.is_empty() {
        mistake.on_key()
    } else {
        mistake.on_key().hint(format!("it takes {}", listed(names)))
    }
}
