//! The tool files of a project.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    path::Path,
};

use super::{
    change::{FileChange, read},
    run::say,
};
use crate::{
    app::{exit::Failure, packs::Pack, project::read_text},
    mtdf::{check_file, is_tool_file},
};

/// An existing file belongs to the user and is kept unless updates were asked for. A file whose tools another file already
/// describes is left out: duplicates are refused.
pub(super) fn changes(
    packs: &[Pack],
    directory: &Path,
    existing: ExistingFiles,
) -> Result<Vec<FileChange>, Failure> {
    let own = names_in(directory);
    let mut changes = Vec::new();
    let mut kept = Vec::new();
    for (name, text) in unique(packs) {
        let path = directory.join(name);
        let other_file = names_of(name, text)
            .into_iter()
            .find_map(|tool| own.get(&tool).filter(|known| *known != name));
        if let Some(known) = other_file.filter(|_| !path.exists()) {
            say(&format!("skipped {name}: {known} already has its tools"));
            continue;
        }
        let change = FileChange::of(path.clone(), read(&path)?, portable(text));
        match (existing, change) {
            (ExistingFiles::Keep, Some(_)) if path.exists() => kept.push(name),
            (_, change) => changes.extend(change),
        }
    }
    if !kept.is_empty() {
        say(&format!(
            "note: kept files that differ from this version: {}; --update-tools shows the differences",
            kept.join(", ")
        ));
    }
    Ok(changes)
}

/// Names and texts of the packs' files; some belong to several packs.
fn unique(packs: &[Pack]) -> BTreeMap<&'static str, &'static str> {
    let files = packs.iter().flat_map(Pack::files);
    files.map(|file| (file.name, file.text)).collect()
}

/// Treatment of existing files that differ from the shipped ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExistingFiles {
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
            let named = names_of(&file, &text);
            names.extend(named.into_iter().map(|name| (name, file.clone())));
        }
    }
    names
}

fn names_of(file: &str, text: &str) -> HashSet<String> {
    let tool = check_file(file, text).tool;
    let leaves = tool.iter().flat_map(|tool| &tool.leaves);
    leaves.map(|leaf| leaf.name.clone()).collect()
}
