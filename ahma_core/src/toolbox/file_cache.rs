//! The parsed tool files, each with its last valid version.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    num::NonZero,
    panic::resume_unwind,
    thread::available_parallelism,
};

use super::load::SourceFile;
use crate::mtdf::{Checked, Problem, ToolDef, ToolSource, check_file, check_together};

/// Fewer files are checked sooner than a thread for them starts to pay.
const FILES_FOR_A_THREAD: usize = 8;

/// Remembers every file, so that unchanged ones are not checked again and broken ones fall back.
#[derive(Debug, Default)]
pub(super) struct FileCache {
    current: BTreeMap<String, FileVersion>,
    good: BTreeMap<String, FileVersion>,
}

/// One text of a file and the result of its check.
#[derive(Debug, Clone)]
struct FileVersion {
    text: String,
    checked: Checked,
}

/// Tools of all files, as far as they can be used.
#[derive(Debug, Default)]
pub(super) struct LoadedTools {
    pub(super) tools: Vec<ToolDef>,
    pub(super) problems: Vec<Problem>,
    /// Files whose last good version is used instead of the present one.
    pub(super) stale: Vec<String>,
    /// The texts in use.
    pub(super) sources: Vec<ToolSource>,
}

impl FileCache {
    /// Takes in what the directory holds now, in the order of the names. Files that are gone are forgotten.
    pub(super) fn refresh(&mut self, files: Vec<SourceFile>) -> LoadedTools {
        let current = self.versions(&files);
        self.good.retain(|name, _| current.contains_key(name));

        let mut loaded = LoadedTools::default();
        let mut stale = BTreeSet::new();
        let mut chosen = current.clone();
        for (name, version) in &mut chosen {
            if version.checked.tool.is_none()
                && let Some(good) = self.good.get(name)
            {
                loaded.problems.append(&mut version.checked.problems);
                *version = good.clone();
                stale.insert(name.clone());
            }
        }
        let (mut tools, problems) = together(&chosen);
        loaded.problems.extend(problems);

        // An edit may be fine by itself and still break the set, by taking another tool's name for instance.
        let in_use: HashSet<&str> = tools.iter().map(|tool| tool.file.as_str()).collect();
        let culprits: Vec<String> = (chosen.iter())
            .filter(|(name, version)| version.checked.tool.is_some() && !in_use.contains(name.as_str()))
            .filter(|(name, version)| self.good.get(*name).is_some_and(|good| good.text != version.text))
            .map(|(name, _)| name.clone())
            .collect();
        if !culprits.is_empty() {
            for name in culprits {
                chosen.insert(name.clone(), self.good[&name].clone());
                stale.insert(name);
            }
            let (again, problems) = together(&chosen);
            tools = again;
            let known = std::mem::take(&mut loaded.problems);
            loaded.problems = problems
                .into_iter()
                .filter(|problem| !known.contains(problem))
                .collect();
            loaded.problems.extend(known);
        }
        loaded
            .problems
            .sort_by(|left, right| (&left.file, left.line).cmp(&(&right.file, right.line)));

        for tool in &tools {
            if let Some(version) = chosen.get(&tool.file).filter(|_| !stale.contains(&tool.file)) {
                self.good.insert(tool.file.clone(), version.clone());
            }
        }
        self.current = current;
        let in_use: HashSet<&str> = tools.iter().map(|tool| tool.file.as_str()).collect();
        let sources = chosen.iter().filter(|(name, _)| in_use.contains(name.as_str()));
        loaded.sources = sources.map(|(name, version)| source(name, version)).collect();
        loaded.tools = tools;
        loaded.stale = stale.into_iter().collect();
        loaded
    }

    /// Checks the files that are new or changed, on several processors if there are many: a client waits for its list of tools.
    fn versions(&self, files: &[SourceFile]) -> BTreeMap<String, FileVersion> {
        let processors = available_parallelism().map_or(1, NonZero::get);
        let threads = processors.min(files.len() / FILES_FOR_A_THREAD).max(1);
        let share = |thread| -> Vec<(String, FileVersion)> {
            let files = files.iter().skip(thread).step_by(threads);
            files
                .map(|file| (file.name.clone(), self.version(file)))
                .collect()
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map(|thread| scope.spawn(move || share(thread)))
                .collect();
            let mut versions = BTreeMap::from_iter(share(0));
            for other in others {
                versions.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            versions
        })
    }

    fn version(&self, file: &SourceFile) -> FileVersion {
        match &file.text {
            Ok(text) => match self.current.get(&file.name) {
                Some(known) if known.text == *text => known.clone(),
                _ => FileVersion {
                    checked: check_file(&file.name, text),
                    text: text.clone(),
                },
            },
            Err(reason) => {
                let problems = vec![Problem::of_file(file.name.clone(), reason.clone())];
                FileVersion {
                    text: String::new(),
                    checked: Checked { tool: None, problems },
                }
            }
        }
    }
}

fn together(versions: &BTreeMap<String, FileVersion>) -> (Vec<ToolDef>, Vec<Problem>) {
    let sources: Vec<ToolSource> = (versions.iter())
        .map(|(name, version)| source(name, version))
        .collect();
    let report = check_together(
        &sources,
        versions.values().map(|version| version.checked.clone()).collect(),
    );
    (report.tools, report.problems)
}

fn source(name: &str, version: &FileVersion) -> ToolSource {
    ToolSource {
        name: name.to_owned(),
        text: version.text.clone(),
    }
}

#[cfg(test)]
#[path = "file_cache_tests.rs"]
mod tests;
