//! Checks the text of one tool file.

use std::{collections::HashSet, sync::Arc};

use super::{
    file::ToolFile,
    locate::ParsedFile,
    problem::{Mistake, Problem, ProblemSeverity},
    schema::schema,
    shape,
    tool::{LeafAction, ToolDef},
    validate::validate,
};

/// Result of a check of one file.
#[derive(Debug, Clone)]
pub struct Checked {
    /// There unless one of the problems is an error.
    pub tool: Option<ToolDef>,
    /// In the order of the file.
    pub problems: Vec<Problem>,
}

/// Checks one file; `name` is how problems call it. Everything that is wrong is reported at once.
pub fn check_file(name: &str, text: &str) -> Checked {
    check_draft(name, text).0
}

/// As [`check_file`]. A file with errors gives the tool as far as it is readable, which is good for a look at its steps only.
pub(super) fn check_draft(name: &str, text: &str) -> (Checked, Option<ToolDef>) {
    let error = match serde_json::from_str::<ToolFile>(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        // What serde cannot ask for is left to the comparison with the schema.
        Ok(raw) if raw.tools.is_none() && (raw.command.is_none() || raw.description.is_none()) => None,
        Ok(raw) => {
            let (tool, mistakes) = validate(name, raw);
            let usable = mistakes
                .iter()
                .all(|mistake| mistake.severity == ProblemSeverity::Warning);
            let problems = located(name, text, mistakes);
            let (tool, draft) = if usable {
                (Some(tool), None)
            } else {
                (None, Some(tool))
            };
            return (Checked { tool, problems }, draft);
        }
        Err(error) => Some(error),
    };
    let refused = |problems| Checked { tool: None, problems };
    let document = match ParsedFile::parse(name, text) {
        Ok(document) => document,
        Err(problem) => return (refused(vec![*problem]), None),
    };
    let shape = shape::compare(schema(), &document.root);
    let mut mistakes = shape.mistakes;
    if mistakes.is_empty() {
        let problems = error.iter().map(|error| from_serde(name, error)).collect();
        return (refused(problems), None);
    }
    let mut draft = None;
    if let Some(Ok(raw)) = shape.repaired.map(serde_json::from_value) {
        let (tool, more) = validate(name, raw);
        draft = readable_steps(tool, &mistakes, &shape.made_up);
        mistakes.extend(
            more.into_iter()
                .filter(|mistake| !is_echo(&mistake.pointer, &document, &shape.made_up, &shape.robbed)),
        );
    }
    let problems = mistakes
        .into_iter()
        .map(|mistake| document.problem(name, mistake));
    (refused(in_order(problems)), draft)
}

/// The tool without the steps that are not as they were written. None if it is not known what its own tools are called.
fn readable_steps(mut tool: ToolDef, mistakes: &[Mistake], made_up: &HashSet<String>) -> Option<ToolDef> {
    let names_tool =
        |pointer: &str| matches!(pointer, "/name" | "/command" | "/tools") || names_part(pointer);
    if made_up.iter().any(|pointer| names_tool(pointer))
        || mistakes.iter().any(|mistake| names_tool(&mistake.pointer))
    {
        return None;
    }
    for leaf in tool.leaves.iter_mut().map(Arc::make_mut) {
        if let LeafAction::Sequence(sequence) = &mut leaf.action {
            sequence.steps.retain(|step| {
                let below = format!("{}/", step.pointer);
                let is_wrong = |pointer: &str| pointer == step.pointer || pointer.starts_with(&below);
                !mistakes.iter().any(|mistake| is_wrong(&mistake.pointer))
            });
        }
    }
    Some(tool)
}

/// Returns whether a pointer is to the name of a subcommand, or to one of the fields that name a tool of several.
fn names_part(pointer: &str) -> bool {
    let mut tokens = pointer.rsplit('/');
    matches!(
        (tokens.next(), tokens.nth(1)),
        (Some("name"), Some("subcommand" | "tools")) | (Some("command"), Some("tools"))
    )
}

/// Gives mistakes in a readable file their places.
pub(super) fn located(name: &str, text: &str, mistakes: Vec<Mistake>) -> Vec<Problem> {
    if mistakes.is_empty() {
        return Vec::new();
    }
    match ParsedFile::parse(name, text) {
        Ok(document) => in_order(
            mistakes
                .into_iter()
                .map(|mistake| document.problem(name, mistake)),
        ),
        Err(problem) => vec![*problem],
    }
}

/// Returns whether a mistake of meaning only repeats a mistake of shape.
fn is_echo(
    pointer: &str,
    document: &ParsedFile<'_>,
    made_up: &HashSet<String>,
    robbed: &HashSet<String>,
) -> bool {
    let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
    // Limits, defaults and choices mean nothing while the type beside them is unknown. And an object may only lack
    // what was taken from it, or what that stood in for; the root has too many members to be excused like that.
    let without_type = made_up.contains(&format!("{parent}/type"));
    let is_robbed = |object: &str| !object.is_empty() && robbed.contains(object);
    let incomplete = is_robbed(pointer) || (is_robbed(parent) && !document.has(pointer));
    made_up.contains(pointer) || without_type || incomplete
}

/// A value that serde refuses although it has the right shape, such as a number out of range.
fn from_serde(name: &str, error: &serde_json::Error) -> Problem {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    Problem {
        line: error.line().max(1),
        column: error.column().max(1),
        ..Problem::of_file(name, message)
    }
}

fn in_order(problems: impl Iterator<Item = Problem>) -> Vec<Problem> {
    let mut problems: Vec<Problem> = problems.collect();
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems.dedup();
    problems
}
