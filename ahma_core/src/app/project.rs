//! The languages of a project, recognised by its files, and the tool files for them.
//!
//! The rules are data, `.ahma/projects.json`; this code knows no tool by name.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{exit::Failure, settings::TOOLS_DIR};
use crate::sandbox::regular_file::read_regular_file;

/// A language or tool that projects use.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Language {
    pub(crate) name: String,
    /// Files whose presence tells; empty for what every project can use.
    signs: Vec<String>,
    /// The program its tools need on PATH.
    pub(crate) program: String,
    /// Names of shipped tool files.
    tools: Vec<String>,
}

impl Language {
    /// Names and texts of its tool files.
    pub(crate) fn tool_files(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let shipped = |name: &String| SHIPPED.iter().find(|(known, _)| known == name).copied();
        self.tools.iter().filter_map(shipped)
    }

    /// Hidden files say how a project is kept, not what it is made of.
    pub(crate) fn is_written_in(&self) -> bool {
        self.signs.iter().any(|sign| !sign.starts_with('.'))
    }
}

/// Every tool file that comes with the program, by name.
const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// Docker is not among them: its socket is closed to commands.
const LANGUAGES: &str = include_str!("../../../.ahma/projects.json");

/// Directories that hold other people's projects.
const FOREIGN: [&str; 3] = ["node_modules", "target", "vendor"];

/// Recognised by files in the project and its direct subdirectories.
pub(crate) fn languages(project: &Path) -> Result<Vec<Language>, Failure> {
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
    let mut languages = known()?;
    languages.retain(|language| {
        let here = |sign: &String| places.iter().any(|place| place.join(sign).exists());
        language.signs.is_empty() || language.signs.iter().any(here)
    });
    Ok(languages)
}

/// Names of all known languages, each with its sign.
pub(crate) fn known_languages() -> Result<Vec<String>, Failure> {
    let described = |language: &Language| Some(format!("{} ({})", language.name, language.signs.first()?));
    let known = known()?;
    Ok(known
        .iter()
        .filter(|language| language.is_written_in())
        .filter_map(described)
        .collect())
}

/// The project that a directory seems to be a part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnclosingProject {
    pub path: PathBuf,
    /// It has tool files; otherwise it is known by its repository only.
    pub is_set_up: bool,
}

/// None if the directory is a project by itself. A home is no project, whatever lies in it, and neither is anything
/// above one.
pub(crate) fn enclosing(directory: &Path, home: Option<&Path>) -> Option<EnclosingProject> {
    let is_set_up = |path: &Path| path.join(TOOLS_DIR).is_dir();
    let is_project = |path: &Path| is_set_up(path) || path.join(".git").exists();
    let is_home = |path: &Path| home == Some(path);
    if is_project(directory) || is_home(directory) {
        return None;
    }
    let above = directory.ancestors().skip(1).take_while(|path| !is_home(path));
    above
        .filter(|path| path.parent().is_some())
        .find(|path| is_project(path))
        .map(|path| EnclosingProject {
            path: path.to_owned(),
            is_set_up: is_set_up(path),
        })
}

fn known() -> Result<Vec<Language>, Failure> {
    serde_json::from_str(LANGUAGES)
        .map_err(|error| Failure::internal("the list of languages cannot be read", &error))
}

/// The first executable of that name in a directory of PATH.
pub(super) fn find_on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|candidate| {
            candidate.is_file() && rustix::fs::access(candidate, rustix::fs::Access::EXEC_OK).is_ok()
        })
}

/// The text of a file in the project. One that a command left there may be anything.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    /// More than settings and tool files have.
    const MAX_BYTES: u64 = 16 << 20;
    String::from_utf8(read_regular_file(path, MAX_BYTES)?).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mtdf::{ProblemSeverity, ToolSource, check_set};

    #[test]
    fn a_project_is_known_by_its_files() {
        let project = tempfile::tempdir().expect("a temporary directory");
        let names = || -> Vec<_> {
            let found = languages(project.path()).expect("well-formed");
            found.into_iter().map(|language| language.name).collect()
        };
        assert_eq!(names(), ["text search"]);
        fs::write(project.path().join("Cargo.toml"), "").expect("writable");
        fs::create_dir_all(project.path().join("web/src")).expect("writable");
        fs::write(project.path().join("web/package.json"), "").expect("writable");
        fs::create_dir(project.path().join("node_modules")).expect("writable");
        fs::write(project.path().join("node_modules/Makefile"), "").expect("writable");
        assert_eq!(names(), ["Rust", "Node.js", "text search"]);
    }

    #[test]
    fn a_directory_is_part_of_the_nearest_project_above_it_but_no_home_is_one() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let at = |path: &str| root.path().join(path);
        for path in ["home/p/src/deep", "home/p/own/.git", "home/.git", "home/q/lib"] {
            fs::create_dir_all(at(path)).expect("writable");
        }
        let home = at("home");
        let found = |path: &str| {
            let found = enclosing(&at(path), Some(&home))?;
            Some((found.path, found.is_set_up))
        };
        assert_eq!(found("home/p/src/deep"), None);
        fs::create_dir(at("home/p/.git")).expect("writable");
        assert_eq!(found("home/p/src/deep"), Some((at("home/p"), false)));
        fs::create_dir_all(at("home/p").join(TOOLS_DIR)).expect("writable");
        assert_eq!(found("home/p/src/deep"), Some((at("home/p"), true)));
        for whole in ["home/p", "home/p/own", "home/q/lib", "home"] {
            assert_eq!(found(whole), None, "{whole}");
        }
    }

    #[test]
    fn the_tool_files_of_each_language_stand_on_their_own() {
        for language in known().expect("well-formed") {
            assert_eq!(
                language.tool_files().count(),
                language.tools.len(),
                "a file of {} is not there",
                language.name
            );
            let sources: Vec<ToolSource> = (language.tool_files())
                .map(|(name, text)| ToolSource {
                    name: name.to_owned(),
                    text: text.to_owned(),
                })
                .collect();
            let report = check_set(&sources);
            let errors: Vec<_> = (report.problems.iter())
                .filter(|problem| problem.severity == ProblemSeverity::Error)
                .collect();
            assert!(errors.is_empty(), "{}: {errors:?}", language.name);
        }
    }
}
