//! Whether a git directory that a command made may stay.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use rustix::fs::FileType;

use super::place::Place;

/// Git reads no longer configuration here.
const MOST_CONFIG_BYTES: u64 = 64 * 1024;

/// Which repository is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// That of the scope.
    Whole,
    /// The same, while another command may be about to make it: then it has no configuration yet.
    Unfinished,
    /// One that git looks into from another. It may say where its tree is, if that is this path from its directory, and may
    /// have no configuration. What it pushes to is the business of whoever works in it.
    Inner { tree: &'a Path },
}

/// Whether a `.git` is as `git init` or `git clone` makes it: no hook that runs, a configuration that makes git run
/// nothing, and nothing that makes git look elsewhere.
pub(super) fn is_harmless(git: &Place, kind: Kind<'_>) -> bool {
    let Ok(directory) = git.directory().map(Arc::new) else {
        return false;
    };
    let inside = |name: &str| Place::below(&directory, Path::new(name)).ok();
    let is_missing = |name: &str| inside(name).is_some_and(|place| matches!(place.stamp(), Ok(None)));
    let is_unfinished = kind != Kind::Whole && is_missing("config");
    let config = inside("config")
        .and_then(|place| place.content(MOST_CONFIG_BYTES))
        .and_then(|content| String::from_utf8(content).ok());
    let Some(hooks) = inside("hooks") else {
        return false;
    };
    let hooks_sleep = match hooks.stamp() {
        Ok(None) => true,
        Ok(Some(found)) if found.kind == FileType::Directory => hooks.entries().is_ok_and(|(_, names)| {
            names
                .iter()
                .all(|name| name.to_string_lossy().ends_with(".sample"))
        }),
        // A link would bring its hooks along.
        Ok(Some(_)) | Err(_) => false,
    };
    // Old ways to name what to push to. Templates have an empty directory of the second kind.
    let is_empty = |name: &str| {
        inside(name).is_some_and(|place| match place.stamp() {
            Ok(None) => true,
            Ok(Some(_)) => place.entries().is_ok_and(|(_, names)| names.is_empty()),
            Err(_) => false,
        })
    };
    hooks_sleep
        && is_empty("remotes")
        && is_empty("branches")
        && is_missing("config.worktree")
        && is_missing("commondir")
        && (is_unfinished || config.is_some_and(|config| config_sleeps(&config, kind)))
}

/// How long the names of objects are, by a configuration that runs nothing or is the user's; `None` if that is not certain.
pub(super) fn name_length(config: &str) -> Option<usize> {
    let bare = |line: &str| line.to_ascii_lowercase().replace([' ', '\t', '"'], "");
    let mut said = config
        .lines()
        .map(bare)
        .filter(|line| !line.starts_with(['#', ';']))
        .filter(|line| line.contains("objectformat") && !line.contains("compatobjectformat"));
    match (said.next().as_deref(), said.next()) {
        (None | Some("objectformat=sha1"), None) => Some(20),
        (Some("objectformat=sha256"), None) => Some(32),
        _ => None,
    }
}

/// Whether every line is one of those that are known to run nothing.
fn config_sleeps(config: &str, kind: Kind<'_>) -> bool {
    let mut current = Section::default();
    // What branches are pushed to, and what has an address: what has none is itself taken for one.
    let (mut used, mut addressed) = (BTreeSet::from(["."]), BTreeSet::from(["."]));
    let (mut are_elsewhere, mut is_partial) = (true, false);
    for line in config.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with('[') {
            match Section::of(line) {
                Some(section) => current = section,
                None => return false,
            }
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        // A line that continues hides the next one from this reader.
        if line.ends_with('\\') || !is_harmless_setting(&current.name, &key) {
            return false;
        }
        match (current.name.as_str(), key.as_str()) {
            ("core", "worktree") if !kind.has_tree(value) => return false,
            ("remote", "url" | "pushurl") => {
                are_elsewhere &= is_elsewhere(value);
                if key == "url" {
                    addressed.insert(current.subsection);
                }
            }
            ("remote", "promisor") => is_partial = true,
            ("extensions", "partialclone") => {
                is_partial = true;
                used.insert(value);
            }
            ("branch", "remote" | "pushremote") => {
                used.insert(value);
            }
            _ => {}
        }
    }
    let speaks_to_others = are_elsewhere && used.is_subset(&addressed);
    // Nobody pushes or fetches by looking into one, unless git has to fetch what is missing in it.
    speaks_to_others || kind.is_inner() && !is_partial
}

impl Kind<'_> {
    fn is_inner(self) -> bool {
        matches!(self, Self::Inner { .. })
    }

    /// Whether a repository may say that its tree is there.
    fn has_tree(self, value: &str) -> bool {
        matches!(self, Self::Inner { tree } if tree == Path::new(value))
    }
}

/// Whether the address of a repository is on another machine. One on this machine may have hooks that commands made, and
/// `ext::` runs what follows it.
fn is_elsewhere(address: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "@._-".contains(letter);
    let is_known = ["https://", "http://", "ssh://", "git://"]
        .iter()
        .any(|scheme| address.starts_with(scheme));
    // As ssh takes it: a host, a colon, a path.
    let is_host = address.split_once(':').is_some_and(|(host, path)| {
        let is_path = !path.starts_with(':') && !path.starts_with("//");
        is_path && !host.is_empty() && host.chars().all(is_plain)
    });
    is_known || is_host
}

/// The header of a section.
#[derive(Default)]
struct Section<'a> {
    /// In lower case.
    name: String,
    subsection: &'a str,
}

impl<'a> Section<'a> {
    /// None if the line is a header with something else: git takes a setting on the same line.
    fn of(line: &'a str) -> Option<Self> {
        let inner = line.strip_prefix('[')?.strip_suffix(']')?;
        let (name, subsection) = match inner.split_once(' ') {
            Some((name, rest)) => (name, rest.trim().strip_prefix('"')?.strip_suffix('"')?),
            None => (inner, ""),
        };
        let is_plain = !name.is_empty()
            && name
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
            && !subsection.contains(['"', '\\', ']', '[']);
        is_plain.then(|| Self {
            name: name.to_ascii_lowercase(),
            subsection,
        })
    }
}

fn is_harmless_setting(section: &str, key: &str) -> bool {
    let harmless: &[&str] = match section {
        "branch" => &[
            "description",
            "gk-merge-base",
            "merge",
            "pushremote",
            "rebase",
            "remote",
            "vscode-merge-base",
        ],
        "core" => &[
            "autocrlf",
            "bare",
            "filemode",
            "ignorecase",
            "logallrefupdates",
            "precomposeunicode",
            "repositoryformatversion",
            "symlinks",
            "worktree",
        ],
        "commit" => &["gpgsign"],
        "extensions" => &["compatobjectformat", "objectformat", "partialclone", "refstorage"],
        "fetch" => &["prune"],
        "init" => &["defaultbranch"],
        "lfs" => &["repositoryformatversion"],
        "pull" => &["ff", "rebase"],
        "push" => &["autosetupremote", "default"],
        "remote" => &[
            "fetch",
            "partialclonefilter",
            "promisor",
            "pushurl",
            "tagopt",
            "url",
        ],
        "submodule" => &["active", "branch", "fetchrecursesubmodules", "ignore", "url"],
        "user" => &["email", "name"],
        _ => &[],
    };
    harmless.contains(&key)
}
