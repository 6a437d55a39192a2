//! What git does with files in the scope, told without ever running it: configuration and hooks that it acts on, and
//! the directories of a linked worktree.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
};

use super::{Access, plain::read_plain};
use crate::call::normalise;

/// Files that include each other are read so far.
const MOST_FILES: usize = 16;

/// Git reads longer ones, but nobody writes them by hand.
const MOST_CONFIG_BYTES: u64 = 1 << 20;

/// More than a path can have.
const MOST_POINTER_BYTES: u64 = 1 << 14;

/// In the administrative directory of a linked worktree: what says where its repository is, and how it is configured.
const WORKTREE_POINTERS: [&str; 3] = ["commondir", "gitdir", "config.worktree"];

/// In the scope if that is itself a repository without a working tree.
const BARE: [&str; 5] = ["hooks", "config", "config.worktree", "commondir", "info"];

/// Paths that git acts on besides those with fixed names in `.git`. Those outside the scope are for the caller to leave
/// out.
pub(super) fn acted_on(scope: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut paths = configured(scope, home);
    if let Ok(worktrees) = fs::read_dir(scope.join(".git/worktrees")) {
        for worktree in worktrees.flatten() {
            paths.extend(pointers(&worktree.path()));
        }
    }
    if scope.join("HEAD").exists() {
        let is_bare = ["objects", "refs"].iter().all(|name| scope.join(name).is_dir());
        paths.extend(BARE.iter().filter(|_| is_bare).map(|name| scope.join(name)));
    } else {
        // With a few more files it would make the scope itself a repository, with a configuration in plain sight.
        paths.push(scope.join("HEAD"));
    }
    paths
}

/// What leads git from the administrative directory of a linked worktree to its repository.
pub(super) fn pointers(own: &Path) -> impl Iterator<Item = PathBuf> {
    WORKTREE_POINTERS.map(|name| own.join(name)).into_iter()
}

/// Hooks, further configuration and programs that the repository's configuration, or the user's, names.
fn configured(scope: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut files: VecDeque<PathBuf> = [scope.join(".git/config"), scope.join(".git/config.worktree")].into();
    files.extend(home.iter().map(|home| home.join(".gitconfig")));
    files.extend(home.iter().map(|home| home.join(".config/git/config")));
    let mut found = Vec::new();
    let mut read = 0;
    while let Some(file) = files.pop_front() {
        let text = match read_plain(&file, MOST_CONFIG_BYTES) {
            Ok(bytes) if read < MOST_FILES => String::from_utf8_lossy(&bytes).into_owned(),
            Ok(_) | Err(_) => continue,
        };
        read += 1;
        for setting in settings(&text) {
            match setting.names() {
                Names::Configuration(path) => {
                    let included = normalise(&file.with_file_name("").join(path));
                    files.push_back(included.clone());
                    found.push(included);
                }
                Names::InTheTree(path) => found.push(normalise(&scope.join(path))),
                Names::Nothing => {}
            }
        }
    }
    found
}

/// One line of a configuration; section and key in lower case.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    section: String,
    key: String,
    value: String,
}

/// What a setting names that git acts on.
enum Names {
    /// By its place relative to the file.
    Configuration(PathBuf),
    /// By its place relative to the top of the working tree, where git runs what it is told to.
    InTheTree(PathBuf),
    Nothing,
}

impl Setting {
    fn names(&self) -> Names {
        let Self { section, key, value } = self;
        match (section.as_str(), key.as_str()) {
            ("include" | "includeif", "path") => Names::Configuration(value.into()),
            ("core", "hookspath" | "attributesfile") => Names::InTheTree(value.into()),
            (
                "core",
                "fsmonitor"
                | "sshcommand"
                | "editor"
                | "pager"
                | "askpass"
                | "gitproxy"
                | "alternaterefscommand",
            )
            | ("sequence", "editor")
            | ("diff", "external" | "command" | "textconv")
            | ("merge", "driver")
            | ("filter", "clean" | "smudge" | "process")
            | ("mergetool" | "difftool", "cmd" | "path")
            | ("gpg", "program")
            | ("credential", "helper")
            | ("interactive", "difffilter")
            | ("uploadpack", "packobjectshook")
            | ("alias" | "pager", _) => first_program(value).map_or(Names::Nothing, Names::InTheTree),
            _ => Names::Nothing,
        }
    }
}

/// The program that a command line begins with, if it is named by a path.
fn first_program(command: &str) -> Option<PathBuf> {
    let first = command.trim_start_matches('!').split_whitespace().next()?;
    let first = first.trim_matches(['"', '\'']);
    first.contains('/').then(|| first.into())
}

/// The settings of a file. What git would not understand is passed over: git ends there.
fn settings(text: &str) -> Vec<Setting> {
    let text = text.replace("\\\r\n", "").replace("\\\n", "");
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut line = line.trim();
        // A setting may stand behind the header of its section.
        while let Some((header, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            let name = header.split([' ', '"', '.', '\t']).next().unwrap_or_default();
            section = name.to_ascii_lowercase();
            line = rest.trim_start();
        }
        if let Some((key, value)) = line.split_once('=')
            && !line.starts_with(['#', ';'])
        {
            found.push(Setting {
                section: section.clone(),
                key: key.trim().to_ascii_lowercase(),
                value: plain(value),
            });
        }
    }
    found
}

/// A value without its comment and its quotation marks.
fn plain(value: &str) -> String {
    let mut plain = String::new();
    let mut quoted = false;
    let mut letters = value.trim().chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => quoted = !quoted,
            '\\' => plain.extend(letters.next()),
            '#' | ';' if !quoted => break,
            letter => plain.push(letter),
        }
    }
    plain.trim_end().to_owned()
}

/// The directories outside the scope that a linked worktree needs.
#[derive(Debug)]
pub(super) struct Worktree {
    /// Its administrative directory.
    pub(super) own: PathBuf,
    /// The repository's.
    common: PathBuf,
}

impl Worktree {
    /// What `.git` in the scope leads to, if that leads back.
    pub(super) fn of(scope: &Path) -> Option<Self> {
        let link = scope.join(".git");
        let text = String::from_utf8(read_plain(&link, MOST_POINTER_BYTES).ok()?).ok()?;
        // Both paths may be relative, each to where it is written.
        let own = scope
            .join(text.strip_prefix("gitdir:")?.trim())
            .canonicalize()
            .ok()?;
        // Without the link back, a planted `.git` file could open any directory.
        let back = String::from_utf8(read_plain(&own.join("gitdir"), MOST_POINTER_BYTES).ok()?).ok()?;
        let back = own.join(back.trim()).canonicalize().ok()?;
        let common = own.parent()?.parent()?.to_owned();
        (back == link && own.parent()?.ends_with("worktrees")).then_some(Self { own, common })
    }

    /// The parts that git writes, and those it reads.
    pub(super) fn parts(&self) -> Vec<(PathBuf, Access)> {
        let Self { own, common } = self;
        let written =
            ["objects", "refs", "logs", "packed-refs"].map(|name| (common.join(name), Access::Write));
        let read =
            ["config", "hooks", "info", "HEAD", "shallow"].map(|name| (common.join(name), Access::Read));
        let mut parts = vec![(own.clone(), Access::Write)];
        parts.extend(written.into_iter().chain(read));
        // A git directory made up by a command could have links in it that lead anywhere.
        parts.retain(|(path, _)| path.canonicalize().is_ok_and(|real| real == *path));
        parts
    }
}

#[cfg(test)]
#[path = "git_tests.rs"]
mod tests;
