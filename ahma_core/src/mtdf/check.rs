//! Checks the text of one tool file.

use std::collections::HashSet;

use super::{
    file::ToolFile,
    locate::Document,
    problem::{Mistake, Problem, Severity},
    schema::schema,
    shape,
    tool::ToolDef,
    validate::validate,
};

/// What a check of one file found.
#[derive(Debug, Clone)]
pub struct Checked {
    /// There unless one of the problems is an error.
    pub tool: Option<ToolDef>,
    /// In the order of the file.
    pub problems: Vec<Problem>,
}

/// Checks one file; `name` is how problems call it. Everything that is wrong is reported at once.
pub fn check_file(name: &str, text: &str) -> Checked {
    // Editors on Windows put a byte order mark before the text; it means nothing.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let error = match serde_json::from_str::<ToolFile>(text) {
        Ok(raw) => {
            let (tool, mistakes) = validate(name, raw);
            let usable = mistakes
                .iter()
                .all(|mistake| mistake.severity == Severity::Warning);
            return Checked {
                tool: usable.then_some(tool),
                problems: located(name, text, mistakes),
            };
        }
        Err(error) => error,
    };
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(not_json) => {
            return Checked {
                tool: None,
                problems: vec![not_json.problem(name, text)],
            };
        }
    };
    let shape = shape::compare(schema(), &document.root);
    let mut mistakes = shape.mistakes;
    if mistakes.is_empty() {
        return Checked {
            tool: None,
            problems: vec![from_serde(name, &error)],
        };
    }
    if let Some(Ok(raw)) = shape.repaired.map(serde_json::from_value) {
        let (_, more) = validate(name, raw);
        mistakes.extend(
            more.into_iter()
                .filter(|mistake| !is_echo(&mistake.pointer, &shape.made_up, &shape.robbed)),
        );
    }
    Checked {
        tool: None,
        problems: in_order(
            mistakes
                .into_iter()
                .map(|mistake| document.problem(name, mistake)),
        ),
    }
}

/// Gives mistakes in a readable file their places.
pub(super) fn located(name: &str, text: &str, mistakes: Vec<Mistake>) -> Vec<Problem> {
    if mistakes.is_empty() {
        return Vec::new();
    }
    match Document::parse(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        Ok(document) => in_order(
            mistakes
                .into_iter()
                .map(|mistake| document.problem(name, mistake)),
        ),
        Err(not_json) => vec![not_json.problem(name, text)],
    }
}

/// Whether a mistake of meaning only repeats a mistake of shape.
fn is_echo(pointer: &str, made_up: &HashSet<String>, robbed: &HashSet<String>) -> bool {
    let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
    // Limits, defaults and choices mean nothing while the type beside them is unknown. And an object may only lack
    // what was taken from it; the root has too many members to be excused like that.
    let without_type = made_up.contains(&format!("{parent}/type"));
    let incomplete = !pointer.is_empty() && robbed.contains(pointer);
    made_up.contains(pointer) || without_type || incomplete
}

/// What serde refuses although it has the right shape, such as a number out of range.
fn from_serde(name: &str, error: &serde_json::Error) -> Problem {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    Problem {
        file: name.into(),
        pointer: String::new(),
        line: error.line().max(1),
        column: error.column().max(1),
        length: 1,
        severity: Severity::Error,
        message: message.to_owned(),
        hint: None,
    }
}

fn in_order(problems: impl Iterator<Item = Problem>) -> Vec<Problem> {
    let mut problems: Vec<Problem> = problems.collect();
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems.dedup();
    problems
}
