//! The words of a hint about paths: what was refused, what can be done here, what to ask the user for.

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
};

use super::guess::{HintContext, RefusalReason, Refused, guess};
use crate::sandbox::{Tier, sensitive::holds_keys};

/// A hint names this many paths.
const MAX_NAMED: usize = 8;

/// Flags that a hint proposes.
const MAX_FLAGS: usize = 4;

/// Every path that was refused, in the order of the output.
#[derive(Debug, Default)]
pub(super) struct Refusals(Vec<Refused>);

impl Refusals {
    pub(super) fn add(&mut self, refused: Refused) {
        if self.0.iter().all(|known| known.path != refused.path) {
            self.0.push(refused);
        }
    }

    /// The hint; none if nothing was refused.
    pub(super) fn told(&self, around: HintContext<'_>) -> Option<String> {
        let Self(refused) = self;
        let what: Vec<String> = clauses(refused);
        if what.is_empty() {
            return None;
        }
        if refused
            .iter()
            .any(|refused| refused.reason == RefusalReason::ReadOnlyShell)
        {
            return Some(guess(
                &what.join("; "),
                "readonly_shell changes nothing: use sandboxed_shell to write",
            ));
        }
        if refused
            .iter()
            .all(|refused| refused.reason == RefusalReason::OwnTemp)
        {
            return Some(guess(
                &what.join("; "),
                "Use sandboxed_shell for files that other calls left in /tmp",
            ));
        }
        let next = [here(refused, around), ask(refused, around)];
        let next: Vec<String> = next.into_iter().flatten().collect();
        Some(guess(&what.join("; "), &next.join(". ")))
    }
}

/// The refused paths, grouped by reason.
fn clauses(refused: &[Refused]) -> Vec<String> {
    let mut clauses = Vec::new();
    let mut told: Vec<&RefusalReason> = Vec::new();
    for Refused { reason, .. } in refused {
        if told.contains(&reason) {
            continue;
        }
        told.push(reason);
        let alike: Vec<&Path> = refused
            .iter()
            .filter(|other| other.reason == *reason)
            .map(|other| other.path.as_path())
            .collect();
        let (is, them) = match alike.len() {
            1 => ("is", "it"),
            _ => ("are", "them"),
        };
        let said = match reason {
            RefusalReason::Protected(protected) => format!(
                "{is} protected, because programs outside the sandbox act on {}",
                protected.display()
            ),
            RefusalReason::ReadOnlyShell | RefusalReason::Writing => "cannot be written".to_owned(),
            RefusalReason::Hidden => format!("{is} outside the scope, and what is there is hidden"),
            RefusalReason::HostTemp => {
                format!("may be in the host's /tmp, which is closed; commands do not see {them}")
            }
            RefusalReason::OwnTemp => format!("{is} not in the /tmp of readonly_shell, which is its own"),
            RefusalReason::Closed => format!("{is} outside the scope, and closed"),
        };
        clauses.push(format!("{} {said}", listed(&alike)));
    }
    clauses
}

fn listed(paths: &[&Path]) -> String {
    let mut shown: Vec<String> = paths
        .iter()
        .take(MAX_NAMED)
        .map(|path| path.display().to_string())
        .collect();
    let more = paths.len() - shown.len();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    match shown.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => shown.concat(),
    }
}

/// Advice that the caller can follow alone.
fn here(refused: &[Refused], around: HintContext<'_>) -> Option<String> {
    let outside = refused
        .iter()
        .filter(|refused| !matches!(refused.reason, RefusalReason::Protected(_)));
    let temp = around.policy.visible_temp(around.tier);
    let mut advice = BTreeSet::new();
    let mut any = false;
    for Refused { path, reason } in outside {
        any = true;
        if matches!(reason, RefusalReason::Writing | RefusalReason::Closed) {
            advice.extend(own_means(path, around.home, &temp));
        }
    }
    any.then(|| {
        let open = match around.reads_only {
            true => "Open to writing here: $TMPDIR".to_owned(),
            false => format!(
                "Open here: {} and {}",
                around.policy.scope.display(),
                temp.display()
            ),
        };
        let advice: Vec<String> = advice.into_iter().collect();
        [vec![open], advice].concat().join("; ")
    })
}

/// Ways to do without writing where it is refused.
fn own_means(path: &Path, home: Option<&Path>, temp: &Path) -> Option<String> {
    let has = |name: &str| path.components().any(|part| part.as_os_str() == name);
    if has(".cargo") || path.ends_with(".crates.toml") {
        Some("`cargo install --root target/tools` installs below the scope".into())
    } else if has("site-packages") || has("dist-packages") {
        Some("`python3 -m venv .venv` makes an environment there, whose programs commands find first".into())
    } else if has("node_modules") {
        Some("`npm install` without -g installs there".into())
    } else if home.is_some_and(|home| path.starts_with(home)) {
        Some(format!(
            "`HOME={}` before a command gives it another home",
            temp.display()
        ))
    } else {
        None
    }
}

/// Advice that only the user can follow.
fn ask(refused: &[Refused], around: HintContext<'_>) -> Option<String> {
    let mut flags = BTreeSet::new();
    let mut others = BTreeSet::new();
    for Refused { path, reason } in refused {
        match reason {
            _ if around.home.is_some_and(|home| is_closed_on_purpose(path, home)) => {
                others.insert(
                    "to do that step: keys and what a shell reads at its start are closed on purpose"
                        .to_owned(),
                );
            }
            RefusalReason::Protected(_) => {
                others.insert("to change it, or for --trust-workspace-config".to_owned());
            }
            RefusalReason::HostTemp => {
                flags.insert("--allow-tmp".to_owned());
            }
            _ if is_of_packages(path) => {
                others.insert("to install the package: the system's are not installed from here".to_owned());
            }
            RefusalReason::Hidden if is_narrow(path, around.home) => {
                flags.insert(format!("--allow-read {}", path.display()));
            }
            RefusalReason::Writing | RefusalReason::Closed if !is_of_system(path) => {
                flags.extend(writable_place(path, around.home));
            }
            RefusalReason::Closed if is_narrow(path, around.home) => {
                flags.insert(format!("--allow-read {}", path.display()));
            }
            RefusalReason::Hidden
            | RefusalReason::Writing
            | RefusalReason::Closed
            | RefusalReason::OwnTemp
            | RefusalReason::ReadOnlyShell => {}
        }
    }
    if around.tier == Tier::Seatbelt
        && refused
            .iter()
            .any(|refused| is_private(&refused.path, around.home))
    {
        others.insert(
            "to allow the app that started ahma_mcp in System Settings, Privacy & Security, Files and Folders: macOS keeps \
             these directories from apps in the same words"
                .to_owned(),
        );
    }
    let mut wishes: Vec<String> = others.into_iter().collect();
    if !flags.is_empty() {
        let flags: Vec<String> = flags.into_iter().take(MAX_FLAGS).collect();
        wishes.push(format!("to start ahma_mcp with {}", flags.join(" ")));
    }
    (!wishes.is_empty()).then(|| format!("Otherwise ask the user {}", wishes.join(", or ")))
}

/// A directory that macOS itself keeps from apps until the user allows it.
fn is_private(path: &Path, home: Option<&Path>) -> bool {
    const NAMES: &[&str] = &["Desktop", "Documents", "Downloads"];
    home.is_some_and(|home| NAMES.iter().any(|name| path.starts_with(home.join(name))))
}

/// The directory to open for a path that was to be written. Programs replace files by others and make new ones beside
/// them, so a file alone would not do; but neither the home nor a directory of the root is opened for it.
fn writable_place(path: &Path, home: Option<&Path>) -> Option<String> {
    let directory = path.parent().filter(|directory| is_narrow(directory, home));
    match directory {
        Some(directory) => Some(format!("--allow-write {}", directory.display())),
        None if is_narrow(path, home) => Some(format!("--allow-write {} (once it exists)", path.display())),
        None => None,
    }
}

/// Opening it opens neither the home nor one of the directories at the root.
fn is_narrow(path: &Path, home: Option<&Path>) -> bool {
    let names = path
        .components()
        .filter(|part| matches!(part, Component::Normal(_)));
    names.count() >= 2 && !home.is_some_and(|home| home.starts_with(path))
}

/// Keys, and files that the user's next shell runs: no hint advises to open them.
fn is_closed_on_purpose(path: &Path, home: &Path) -> bool {
    const SHELL_STARTS: &[&str] = &[
        ".bash_login",
        ".bash_profile",
        ".bashrc",
        ".profile",
        ".zprofile",
        ".zshenv",
        ".zshrc",
    ];
    holds_keys(path, home)
        || path.starts_with("/etc/shadow")
        || SHELL_STARTS.iter().any(|name| path == home.join(name))
}

/// Directories that belong to the system, which no flag should open for writing.
fn is_of_system(path: &Path) -> bool {
    const TOP: &[&str] = &[
        "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys", "usr",
    ];
    TOP.iter().any(|top| path.starts_with(Path::new("/").join(top)))
}

/// Files of package managers, which need more than these to be open.
fn is_of_packages(path: &Path) -> bool {
    const MANAGERS: &[&str] = &["apk", "apt", "dnf", "dpkg", "pacman", "rpm", "yum"];
    let below = |top: &str| {
        MANAGERS
            .iter()
            .any(|name| path.starts_with(PathBuf::from(top).join(name)))
    };
    below("/var/lib") || below("/var/cache") || below("/etc")
}
