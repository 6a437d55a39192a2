//! The error for an unknown tool: the likeliest reason, and what to write instead.

use std::{collections::BTreeSet, path::Path};

use crate::{
    app::{
        exit::{Exit, Failure},
        project::EnclosingProject,
    },
    call::CallError,
    mcp,
    mtdf::{Problem, ProblemSeverity},
    toolbox::Toolbox,
};

/// `words` are those after the name.
pub(super) fn failure(
    toolbox: &Toolbox,
    enclosing: Option<&EnclosingProject>,
    name: &str,
    words: &[String],
) -> Failure {
    if name.starts_with('-') {
        return usage(
            format!("no tool is called `{name}`"),
            "ahma_mcp --help shows the flags of the server, ahma_mcp run TOOL --help those of a tool"
                .to_owned(),
        );
    }
    if mcp::builtin_tools().iter().any(|builtin| builtin.name == name) {
        return usage(
            format!("`{name}` is for the clients of a running server: it looks after their operations"),
            "a tool that is run here is waited for, and Ctrl-C stops it".to_owned(),
        );
    }
    if let Some(problem) = mistake_of(toolbox, name) {
        return usage(
            format!("`{name}` is not loaded, because its file has a mistake: {problem}"),
            format!(
                "edit {}; ahma_mcp doctor shows every mistake and its place",
                toolbox.directory.join(&problem.file).display()
            ),
        );
    }
    let joined = joined_name(toolbox, name, words);
    let nearest: Vec<String> = match joined {
        Some(joined) => vec![joined],
        None => (toolbox.catalog.nearest(name).into_iter())
            .filter(|near| toolbox.catalog.get(near).is_some())
            .map(str::to_owned)
            .collect(),
    };
    let broken: BTreeSet<&str> = errors(toolbox).map(|problem| problem.file.as_str()).collect();
    let hint = match (&toolbox.directory_problem, enclosing) {
        (Some(_), Some(whole)) => format!("there are no tool files here; {}", whole.advice()),
        (Some(problem), None) => format!(
            "there are no tool files in {}: {problem}; ahma_mcp init writes some, --tools-dir names another directory",
            toolbox.directory.display()
        ),
        (None, _) if !broken.is_empty() => format!(
            "not loaded because of mistakes: {}; ahma_mcp doctor shows each and its place",
            Vec::from_iter(broken).join(", ")
        ),
        (None, _) => {
            "ahma_mcp --mode list-tools --format text shows the tools, ahma_mcp doctor what is wrong with tool files"
                .to_owned()
        }
    };
    let unknown = CallError::UnknownTool {
        name: name.to_owned(),
        nearest,
    };
    usage(unknown.to_string(), hint)
}

fn usage(what: String, hint: String) -> Failure {
    Failure::new(Exit::Usage, what).with_hint(hint)
}

/// The first mistake of the file that the tool would come from: files have the name of their command.
fn mistake_of<'a>(toolbox: &'a Toolbox, name: &str) -> Option<&'a Problem> {
    errors(toolbox).find(|problem| {
        let stem = Path::new(&problem.file)
            .file_stem()
            .and_then(|stem| stem.to_str());
        let rest = stem.and_then(|stem| name.strip_prefix(stem));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    })
}

fn errors(toolbox: &Toolbox) -> impl Iterator<Item = &Problem> {
    (toolbox.problems.iter()).filter(|problem| problem.severity == ProblemSeverity::Error)
}

/// `git status` is the tool `git_status`.
fn joined_name(toolbox: &Toolbox, name: &str, words: &[String]) -> Option<String> {
    let mut joined = name.to_owned();
    let mut found = None;
    for word in words.iter().take_while(|word| !word.starts_with('-')) {
        joined = format!("{joined}_{}", word.replace('-', "_"));
        if toolbox.catalog.get(&joined).is_some() {
            found = Some(joined.clone());
        }
    }
    found
}
