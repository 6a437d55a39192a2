//! What git does with files in the scope, told without ever running it: configuration and hooks that it acts on, and
//! the directories of a linked worktree.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
};

use super::{Access, Host, plain::read_plain};
use crate::call::normalise;

/// Files that include each other are read so far.
const MOST_FILES: usize = 16;

/// Git reads longer ones, but nobody writes them by hand.
const MOST_CONFIG_BYTES: u64 = 1 << 20;

/// More than a path can have.
const MOST_POINTER_BYTES: u64 = 1 << 14;

/// In the administrative directory of a linked worktree: what says where its repository is, and how it is configured.
const WORKTREE_POINTERS: [&str; 3] = ["commondir", "gitdir", "config.worktree"];

/// In a git directory: what git acts on.
const OF_A_REPOSITORY: [&str; 7] = [
    "hooks",
    "config",
    "config.worktree",
    // Makes git take its configuration and hooks from another directory.
    "commondir",
    "info",
    // An old way to say what to push to, which would be a repository with hooks.
    "remotes",
    "branches",
];

/// Paths that git acts on, in its directory and elsewhere. Those outside the scope are for the caller to leave
/// out.
pub(super) fn acted_on(scope: &Path, host: &Host) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    // The scope may be a part of a repository, which then names files in it.
    let above = scope
        .ancestors()
        .skip(1)
        .find(|above| above.join(".git").exists());
    for top in std::iter::once(scope).chain(above) {
        paths.extend(configured(top, host));
        for git in directories(top) {
            if let Ok(worktrees) = fs::read_dir(git.join("worktrees")) {
                for worktree in worktrees.flatten() {
                    paths.extend(pointers(&worktree.path()));
                }
            }
            paths.extend(OF_A_REPOSITORY.map(|name| git.join(name)));
        }
    }
    if scope.join("HEAD").exists() {
        let is_bare = ["objects", "refs"].iter().all(|name| scope.join(name).is_dir());
        if is_bare {
            paths.extend(OF_A_REPOSITORY.map(|name| scope.join(name)));
        }
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

/// The git directory of a working tree, and the one that it shares with others.
fn directories(top: &Path) -> Vec<PathBuf> {
    let link = top.join(".git");
    let own = match target(&link, "gitdir:") {
        Some(led_to) => normalise(&top.join(led_to)),
        None => link,
    };
    let common = target(&own.join("commondir"), "").map(|common| normalise(&own.join(common)));
    std::iter::once(own).chain(common).collect()
}

/// The path that a file holds, if it is one that leads git elsewhere.
fn target(file: &Path, prefix: &str) -> Option<PathBuf> {
    let text = String::from_utf8(read_plain(file, MOST_POINTER_BYTES).ok()?).ok()?;
    Some(text.strip_prefix(prefix)?.trim().into())
}

/// The configuration files that git begins with.
fn configuration_files(top: &Path, host: &Host) -> VecDeque<PathBuf> {
    let own = directories(top);
    let own = own
        .iter()
        .flat_map(|git| ["config", "config.worktree"].map(|name| git.join(name)));
    let variable = |name: &str| host.variables.get(name).map(PathBuf::from);
    let settings = variable("XDG_CONFIG_HOME").or_else(|| Some(host.home.as_ref()?.join(".config")));
    let of_user = [
        variable("GIT_CONFIG_GLOBAL"),
        host.home.as_ref().map(|home| home.join(".gitconfig")),
        settings.map(|settings| settings.join("git/config")),
    ];
    let of_machine = PathBuf::from("/etc/gitconfig");
    own.chain(of_user.into_iter().flatten())
        .chain([of_machine])
        .collect()
}

/// Configuration, and the hooks, further configuration and programs that it names: the repository's, the user's and the
/// machine's.
fn configured(top: &Path, host: &Host) -> Vec<PathBuf> {
    let mut files = configuration_files(top, host);
    // One of them may be a link into the scope.
    let mut found: Vec<PathBuf> = files.iter().cloned().collect();
    let mut read = 0;
    while let Some(file) = files.pop_front() {
        let text = match read_plain(&file, MOST_CONFIG_BYTES) {
            Ok(bytes) if read < MOST_FILES => String::from_utf8_lossy(&bytes).into_owned(),
            Ok(_) | Err(_) => continue,
        };
        read += 1;
        let in_the_tree = |path: &str| normalise(&top.join(from_home(path, host)));
        for setting in settings(&text) {
            match setting.names() {
                Names::Configuration(path) => {
                    let included = normalise(&file.with_file_name("").join(from_home(path, host)));
                    files.push_back(included.clone());
                    found.push(included);
                }
                Names::InTheTree(path) => found.push(in_the_tree(path)),
                Names::Command(command) => {
                    let (program, others) = words(command);
                    found.extend(program.map(in_the_tree));
                    found.extend(others.map(in_the_tree).filter(|path| path.is_file()));
                }
                Names::Repository(path) => {
                    let path = in_the_tree(path);
                    let inner = path.join(".git");
                    let git = if inner.exists() { inner } else { path };
                    found.extend(OF_A_REPOSITORY.map(|name| git.join(name)));
                }
                Names::Nothing => {}
            }
        }
    }
    found
}

/// A path as git and the shell read it.
fn from_home(path: &str, host: &Host) -> PathBuf {
    let below = ["~/", "$HOME/", "${HOME}/"]
        .iter()
        .find_map(|home| path.strip_prefix(home));
    match (below, &host.home) {
        (Some(below), Some(home)) => home.join(below),
        _ => path.into(),
    }
}

/// One line of a configuration; section and key in lower case.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    section: String,
    key: String,
    value: String,
}

/// What a setting names that git acts on.
enum Names<'a> {
    /// By its place relative to the file.
    Configuration(&'a str),
    /// By its place relative to the top of the working tree.
    InTheTree(&'a str),
    /// For a shell at the top of the working tree.
    Command(&'a str),
    /// One on this machine, whose hooks run when somebody pushes to it; by its place relative to the same.
    Repository(&'a str),
    Nothing,
}

impl Setting {
    fn names(&self) -> Names<'_> {
        let Self { section, key, value } = self;
        match (section.as_str(), key.as_str()) {
            ("include" | "includeif", "path") => Names::Configuration(value),
            ("core", "hookspath" | "attributesfile") | ("init", "templatedir") => Names::InTheTree(value),
            ("remote", "url" | "pushurl") => local_path(value).map_or(Names::Nothing, Names::Repository),
            ("alias", _) | ("submodule", "update") => {
                // Without the mark it is one of git's own commands.
                value.strip_prefix('!').map_or(Names::Nothing, Names::Command)
            }
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
            | ("mergetool" | "difftool" | "browser" | "man" | "guitool", "cmd" | "path")
            | ("gpg", "program" | "defaultkeycommand")
            | ("credential", "helper")
            | ("interactive", "difffilter")
            | ("uploadpack", "packobjectshook")
            | ("gc", "recentobjectshook")
            | ("remote", "uploadpack" | "receivepack")
            | ("trailer", "cmd" | "command")
            | ("hook" | "tar", "command")
            | ("sendemail", "sendmailcmd" | "smtpserver" | "tocmd" | "cccmd" | "headercmd")
            | ("imap", "tunnel")
            | ("lfs", "path")
            | ("pager", _) => Names::Command(value),
            _ => Names::Nothing,
        }
    }
}

/// Where a repository is, if its address is a path on this machine.
fn local_path(address: &str) -> Option<&str> {
    let path = address.strip_prefix("file://").unwrap_or(address);
    // As git tells: a host is what stands before the first colon, unless a slash comes earlier.
    let is_path = path.find(':').is_none_or(|colon| path[..colon].contains('/'));
    (is_path && !path.is_empty()).then_some(path)
}

/// The program that a command line begins with, if it is named by a path, and all words that could be scripts.
fn words(command: &str) -> (Option<&str>, impl Iterator<Item = &str>) {
    let between = |letter: char| letter.is_whitespace() || "\"'`;|&()<>=!".contains(letter);
    let mut words = command.split(between).filter(|word| !word.is_empty());
    (words.next().filter(|first| first.contains('/')), words)
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
