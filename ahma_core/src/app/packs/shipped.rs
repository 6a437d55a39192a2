//! The packs in the program, and those that fit a project.

use std::{fs, path::Path};

use serde::Deserialize;

use crate::app::exit::Failure;

/// Tool files for a language or a task.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::app) struct Pack {
    pub(in crate::app) name: String,
    /// Name for people; the plain name if left out.
    title: Option<String>,
    pub(super) description: String,
    /// Files whose presence shows that a project needs it.
    #[serde(default)]
    pub(super) signs: Vec<String>,
    /// Every project can use it.
    #[serde(default)]
    every_project: bool,
    /// The program its tools need on PATH, for packs that fit a project.
    pub(in crate::app) program: Option<String>,
    /// Files of other packs that belong here too.
    #[serde(default)]
    also: Vec<String>,
    /// Files whose rules are tested against recordings of their programs.
    #[serde(default)]
    pub(super) recorded: Vec<String>,
}

/// A tool file in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::app) struct PackFile {
    pub(in crate::app) name: &'static str,
    pub(in crate::app) text: &'static str,
}

impl Pack {
    pub(in crate::app) fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    pub(in crate::app) fn files(&self) -> impl Iterator<Item = PackFile> {
        FILES
            .iter()
            .filter(|(pack, name, _)| *pack == self.name || self.also.iter().any(|also| also == name))
            .map(|&(_, name, text)| PackFile { name, text })
    }

    /// Hidden files describe the tools around a project, not its language.
    pub(in crate::app) fn is_written_in(&self) -> bool {
        self.signs.iter().any(|sign| !sign.starts_with('.'))
    }
}

/// Pack, name and text of each tool file, sorted.
const FILES: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/packs.rs"));

const PACKS: &str = include_str!("../../../../packs/packs.json");

/// Directories that hold other people's projects.
const FOREIGN: [&str; 3] = ["node_modules", "target", "vendor"];

/// In alphabetical order.
pub(in crate::app) fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = FILES.iter().map(|(pack, ..)| *pack).collect();
    names.dedup();
    names
}

/// In the order of `packs.json`.
pub(super) fn all() -> Result<Vec<Pack>, Failure> {
    serde_json::from_str(PACKS).map_err(|error| Failure::internal("the list of packs cannot be read", &error))
}

/// The packs that fit a project, recognised by files in it and in its direct subdirectories, and those that are named.
pub(in crate::app) fn chosen(project: &Path, named: &[String]) -> Result<Vec<Pack>, Failure> {
    let mut places = vec![project.to_owned()];
    let entries = fs::read_dir(project).into_iter().flatten().flatten();
    places.extend(entries.filter_map(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let foreign = name.starts_with('.') || FOREIGN.contains(&name.as_ref());
        // Links are not followed: they may lead out of the project.
        let directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        (directory && !foreign).then(|| entry.path())
    }));
    let here = |sign: &String| places.iter().any(|place| place.join(sign).exists());
    let mut packs = all()?;
    packs.retain(|pack| pack.every_project || named.contains(&pack.name) || pack.signs.iter().any(here));
    Ok(packs)
}

/// Titles of the packs for languages, each with its sign.
pub(in crate::app) fn languages() -> Result<Vec<String>, Failure> {
    let described = |pack: &Pack| Some(format!("{} ({})", pack.title(), pack.signs.first()?));
    Ok(all()?
        .iter()
        .filter(|pack| pack.is_written_in())
        .filter_map(described)
        .collect())
}

#[cfg(test)]
#[path = "shipped_tests.rs"]
mod tests;
