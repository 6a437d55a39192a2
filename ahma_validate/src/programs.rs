//! Programs that are not on this machine: a warning, because the file may be for another one.

use std::{collections::BTreeSet, fs, path::PathBuf};

use ahma_common::nearest;
use ahma_core::mtdf::{AvailabilityCheck, LeafAction, Problem, Slot, ToolDef, ToolSource, warning_at};

/// Warns of programs that are not found, where the file says nothing for that case.
pub(crate) fn missing(tools: &[ToolDef], sources: &[ToolSource], directories: &[PathBuf]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for tool in tools {
        let Some(source) = sources.iter().find(|source| source.name == tool.file) else {
            continue;
        };
        let mut seen = BTreeSet::new();
        for leaf in &tool.leaves {
            let LeafAction::Command(template) = &leaf.action else {
                continue;
            };
            let Some(Slot::Word(program)) = template.slots.first() else {
                continue;
            };
            let is_looked_for = (leaf.probes.iter())
                .any(|probe| matches!(&**probe, AvailabilityCheck::Find { program: wanted, .. } if wanted == program));
            let is_told = leaf.install_instructions.is_some() || !template.path_dirs.is_empty();
            if !is_looked_for || is_told || is_there(program, directories) {
                continue;
            }
            let place = match leaf.pointer.strip_prefix("/tools/") {
                Some(rest) => format!("/tools/{}/command", rest.split('/').next().unwrap_or_default()),
                None => "/command".to_owned(),
            };
            if seen.insert(place.clone()) {
                let message = format!("there is no program `{program}` on the PATH");
                let names = names(directories);
                let hint = match nearest(program, names.iter().map(String::as_str)).first() {
                    Some(near) => format!(
                        "did you mean `{near}`? If not, say in `install_instructions` where to get it"
                    ),
                    None => "say in `install_instructions` where to get it".to_owned(),
                };
                problems.extend(warning_at(source, &place, message, hint));
            }
        }
    }
    problems
}

fn is_there(program: &str, directories: &[PathBuf]) -> bool {
    directories
        .iter()
        .any(|directory| directory.join(program).is_file())
}

fn names(directories: &[PathBuf]) -> BTreeSet<String> {
    let entries = directories.iter().flat_map(fs::read_dir).flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}
