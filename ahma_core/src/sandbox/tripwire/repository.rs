//! Whether a git directory that a command made may stay.

use std::{path::Path, sync::Arc};

use rustix::fs::FileType;

use super::place::Place;

/// Git reads no longer configuration here.
const MOST_CONFIG_BYTES: u64 = 64 * 1024;

/// Whether a `.git` is as `git init` or `git clone` makes it: no hook that runs, a configuration that makes git run
/// nothing, and nothing that makes git look elsewhere. One that is being made has no configuration yet.
pub(super) fn is_harmless(git: &Place, may_be_unfinished: bool) -> bool {
    let Ok(directory) = git.directory().map(Arc::new) else {
        return false;
    };
    let inside = |name: &str| Place::below(&directory, Path::new(name)).ok();
    let is_missing = |name: &str| inside(name).is_some_and(|place| matches!(place.stamp(), Ok(None)));
    let is_unfinished = may_be_unfinished && is_missing("config");
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
    hooks_sleep
        && is_missing("config.worktree")
        && is_missing("commondir")
        && (is_unfinished || config.is_some_and(|config| config_sleeps(&config)))
}

/// Whether every line is one of those that are known to run nothing.
fn config_sleeps(config: &str) -> bool {
    let mut section = String::new();
    config.lines().map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if line.starts_with('[') {
            return match header(line) {
                Some(name) => {
                    section = name;
                    true
                }
                None => false,
            };
        }
        let key = line
            .split('=')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        // A line that continues hides the next one from this reader; `ext::` runs what follows it.
        !line.ends_with('\\') && !line.contains("ext::") && is_harmless_setting(&section, &key)
    })
}

/// The section's name, if the line is a header and nothing else: git takes a setting on the same line.
fn header(line: &str) -> Option<String> {
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
    is_plain.then(|| name.to_ascii_lowercase())
}

fn is_harmless_setting(section: &str, key: &str) -> bool {
    let harmless: &[&str] = match section {
        "branch" => &["description", "merge", "pushremote", "rebase", "remote"],
        "core" => &[
            "autocrlf",
            "bare",
            "filemode",
            "ignorecase",
            "logallrefupdates",
            "precomposeunicode",
            "repositoryformatversion",
            "symlinks",
        ],
        "extensions" => &["compatobjectformat", "objectformat", "refstorage"],
        "init" => &["defaultbranch"],
        "remote" => &["fetch", "pushurl", "url"],
        "user" => &["email", "name"],
        _ => &[],
    };
    harmless.contains(&key)
}
