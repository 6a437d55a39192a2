//! Which tool files a project gets.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::Path,
};

use super::{
    change::{Change, read},
    say,
};
use crate::{
    app::{
        exit::Failure,
        project::{Language, read_text},
    },
    mtdf::{check_file, is_tool_file},
};

/// A file that is there is the user's own, whatever it says, unless he wants it to be as it comes with the program.
/// A file whose tools he has described elsewhere already is left out: both would be refused.
pub(super) fn changes(
    languages: &[Language],
    directory: &Path,
    existing: Existing,
) -> Result<Vec<Change>, Failure> {
    let own = names_in(directory);
    let mut changes = Vec::new();
    let mut kept = Vec::new();
    for (name, text) in languages.iter().flat_map(Language::tool_files) {
        let path = directory.join(name);
        let elsewhere = names_of(name, text)
            .into_iter()
            .find_map(|tool| own.get(&tool).filter(|known| *known != name));
        if let Some(known) = elsewhere.filter(|_| !path.exists()) {
            say(&format!("{known} has the tools of {name}, which is left out"));
            continue;
        }
        let change = Change::of(path.clone(), read(&path)?, portable(text));
        match (existing, change) {
            (Existing::Keep, Some(_)) if path.exists() => kept.push(name),
            (_, change) => changes.extend(change),
        }
    }
    if !kept.is_empty() {
        say(&format!(
            "note: not as they come with this version, and left as they are: {}; --update-tools shows the difference",
            kept.join(", ")
        ));
    }
    Ok(changes)
}

/// What becomes of tool files that differ from those that come with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    Keep,
    Update,
}

/// The schema that the shipped files refer to is not in the user's project.
fn portable(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("\"$schema\""));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The tools that the directory describes, with the file of each.
fn names_in(directory: &Path) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        if is_tool_file(&file)
            && let Ok(text) = read_text(&entry.path())
        {
            names.extend(
                names_of(&file, &text)
                    .into_iter()
                    .map(|name| (name, file.clone())),
            );
        }
    }
    names
}

fn names_of(file: &str, text: &str) -> HashSet<String> {
    let tool = check_file(file, text).tool;
    tool.iter()
        .flat_map(|tool| &tool.leaves)
        .map(|leaf| leaf.name.clone())
        .collect()
}
