//! Guesses why a command failed, when the sandbox seems to be the reason.
//!
//! The kernel does not report what it refused, so the output is all there is. A hint is labelled as a guess, and names the path or the connection, the rule and the flag.
//!
//! Paths are never looked at: a command chooses what it prints, and would learn what lies outside, or make the server
//! wait for a file system that does not answer.

use std::path::{Component, Path, PathBuf};

use super::{Access, Policy, Tier, hint_connection};
use crate::call::normalise;

/// Only the end of the output is looked at: that is where the failure is.
const LOOKED_AT_BYTES: usize = 16 * 1024;

/// Some programs name the call on one line and the refusal on another that is this near.
const NEAR_LINES: usize = 3;

/// Facts besides the output that a hint is based on.
#[derive(Debug, Clone, Copy)]
pub struct HintContext<'a> {
    pub policy: &'a Policy,
    pub tier: Tier,
    /// The user's home, which no hint advises to open.
    pub home: Option<&'a Path>,
}

/// The complaint in a line of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Complaint {
    kind: ComplaintKind,
    /// Something was to be made.
    of_making: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ComplaintKind {
    Refused,
    /// Refused, and it was a change.
    ReadOnly,
    Missing,
}

const REFUSALS: &[&str] = &[
    "permission denied",
    "operation not permitted",
    "device or resource busy",
    "eacces",
    "eperm",
];

const REFUSED_CHANGES: &[&str] = &["read-only file system", "erofs"];

const ABSENCES: &[&str] = &["no such file or directory", "enoent"];

/// Phrases of programs that failed to create something.
const ATTEMPTS_TO_MAKE: &[&str] = &["cannot touch", "cannot create", "cannot make", "mkdir"];

/// Names of POSIX shared memory and semaphores, whose files are in `/dev/shm` whatever they are called.
const SHARED_MEMORY: &[&str] = &["/dev/shm", "shm_open", "shared_memory", "semlock", "sem_open"];

/// A guess about a failure in one or two sentences, or nothing.
pub fn hint(output: &str, around: HintContext<'_>) -> Option<String> {
    if around.tier == Tier::Off {
        return None;
    }
    let lines = last_lines(output);
    (0..lines.len()).rev().find_map(|index| {
        let near = &lines[index.saturating_sub(NEAR_LINES)..(index + NEAR_LINES + 1).min(lines.len())];
        about_line(lines[index], near, around)
    })
}

/// A guess about a success: some programs go on when a protected file is refused, and the user would not notice what
/// they left out.
pub fn hint_after_success(output: &str, around: HintContext<'_>) -> Option<String> {
    if around.tier == Tier::Off {
        return None;
    }
    last_lines(output).into_iter().rev().find_map(|line| {
        complaint(&line.to_lowercase()).filter(|complaint| complaint.is_refusal())?;
        paths(line, &around.policy.scope).find_map(|path| about_protected(&path, around.policy))
    })
}

fn last_lines(output: &str) -> Vec<&str> {
    let mut start = output.len().saturating_sub(LOOKED_AT_BYTES);
    while !output.is_char_boundary(start) {
        start += 1;
    }
    output[start..].lines().collect()
}

fn about_line(line: &str, near: &[&str], around: HintContext<'_>) -> Option<String> {
    let HintContext { policy, tier, .. } = around;
    let lower = line.to_lowercase();
    let complaint = complaint(&lower);
    let refused = complaint.is_some_and(Complaint::is_refusal);
    if hint_connection::is_meant(&lower, refused)
        && let Some(guess) = hint_connection::guess(line, &policy.network)
    {
        return Some(guess);
    }
    // What is hidden in the full tier seems not to exist; elsewhere nothing is hidden.
    let complaint = complaint.filter(|_| refused || tier == Tier::Full)?;
    let nearby = |words: &[&str]| {
        near.iter()
            .map(|line| line.to_lowercase())
            .any(|line| words.iter().any(|words| line.contains(words)))
    };
    if refused && tier == Tier::Core && nearby(SHARED_MEMORY) {
        return Some(guess(
            "shared memory (/dev/shm) is closed in the core tier, because the whole machine shares it",
            "start ahma_mcp with --allow-write /dev/shm, or where user namespaces make the full tier work",
        ));
    }
    if let Some(guess) = paths(line, &policy.scope).find_map(|path| about_path(&path, complaint, around)) {
        return Some(guess);
    }
    if refused && nearby(hint_connection::CALLS) {
        let connection = near
            .iter()
            .find(|line| hint_connection::destination(line).is_some());
        return hint_connection::guess(connection.unwrap_or(&line), &policy.network);
    }
    // Some programs name the file first, and the reason on a line of its own.
    let names_no_path = paths(line, &policy.scope).next().is_none();
    let before = near.iter().rev().skip_while(|near| **near != line).skip(1);
    let mut paths_before = before.flat_map(|line| paths(line, &policy.scope));
    (complaint.kind == ComplaintKind::ReadOnly && names_no_path)
        .then(|| paths_before.find_map(|path| about_path(&path, complaint, around)))?
}

impl Complaint {
    fn is_refusal(self) -> bool {
        match self.kind {
            ComplaintKind::Refused | ComplaintKind::ReadOnly => true,
            ComplaintKind::Missing => false,
        }
    }
}

fn complaint(lower: &str) -> Option<Complaint> {
    let has = |words: &[&str]| words.iter().any(|words| lower.contains(words));
    let kind = if has(REFUSED_CHANGES) {
        ComplaintKind::ReadOnly
    } else if has(REFUSALS) {
        ComplaintKind::Refused
    } else if has(ABSENCES) {
        ComplaintKind::Missing
    } else {
        return None;
    };
    Some(Complaint {
        kind,
        of_making: has(ATTEMPTS_TO_MAKE),
    })
}

fn about_path(path: &Path, complaint: Complaint, around: HintContext<'_>) -> Option<String> {
    let HintContext { policy, tier, .. } = around;
    let shown = path.display();
    let refused = complaint.is_refusal();
    if protecting(path, policy).is_some() {
        return refused.then(|| about_protected(path, policy)).flatten();
    }
    let has_own_temp = tier == Tier::Full && !policy.host_temp;
    if has_own_temp && path.starts_with("/tmp") && !refused {
        return Some(guess(
            &format!("{shown} may be in the host's /tmp, which is closed; commands have a /tmp of their own"),
            "start ahma_mcp with --allow-tmp",
        ));
    }
    if path.starts_with(&policy.scope) || path.starts_with(policy.visible_temp(tier)) {
        return None;
    }
    let grant = policy
        .grants
        .iter()
        .filter(|grant| path.starts_with(&grant.path))
        .max_by_key(|grant| grant.access);
    match grant {
        Some(grant) if grant.access == Access::Write => None,
        Some(grant) if refused => Some(guess(
            &format!("{shown} is read-only here ({})", grant.reason),
            &remedy(path, complaint, around.home),
        )),
        Some(_) => None,
        None if path.starts_with("/tmp") => Some(guess(
            &format!("{shown} is in the host's /tmp, which is closed; commands have a private one in TMPDIR"),
            "use $TMPDIR, or start ahma_mcp with --allow-tmp",
        )),
        None => Some(guess(
            &format!(
                "{shown} is outside the sandbox scope {}{}",
                policy.scope.display(),
                match complaint.kind {
                    ComplaintKind::Missing => ", and what is there is hidden from commands",
                    ComplaintKind::Refused | ComplaintKind::ReadOnly => "",
                }
            ),
            &remedy(path, complaint, around.home),
        )),
    }
}

fn about_protected(path: &Path, policy: &Policy) -> Option<String> {
    let protected = protecting(path, policy)?;
    Some(guess(
        &format!(
            "{} is protected, because programs outside the sandbox act on {}",
            path.display(),
            protected.display()
        ),
        "edit it from outside, or start ahma_mcp with --trust-workspace-config",
    ))
}

/// The protected path that covers `path`. Of `.git` itself only the name is protected.
fn protecting<'a>(path: &Path, policy: &'a Policy) -> Option<&'a Path> {
    let git = policy.scope.join(".git");
    let mut protected = policy.protected.iter().filter(|protected| **protected != git);
    protected
        .find(|protected| path.starts_with(protected))
        .map(PathBuf::as_path)
}

pub(super) fn guess(what: &str, remedy: &str) -> String {
    format!("This may be the sandbox (a guess from the output): {what}. To change it: {remedy}.")
}

/// Advice how to open a path and no more: never the root, one of the system's directories or the whole home.
fn remedy(path: &Path, complaint: Complaint, home: Option<&Path>) -> String {
    let shown = path.display();
    let names = path
        .components()
        .filter(|part| matches!(part, Component::Normal(_)));
    if names.count() < 2 || home.is_some_and(|home| home.starts_with(path)) {
        return "start ahma_mcp with --allow-read or --allow-write for what is needed of it".to_owned();
    }
    match complaint {
        Complaint { of_making: true, .. } => {
            format!("make {shown} yourself, then start ahma_mcp with --allow-write {shown}")
        }
        Complaint {
            kind: ComplaintKind::ReadOnly,
            ..
        } => format!("start ahma_mcp with --allow-write {shown}"),
        Complaint {
            kind: ComplaintKind::Refused | ComplaintKind::Missing,
            ..
        } => format!("start ahma_mcp with --allow-read {shown} or --allow-write {shown}"),
    }
}

/// Paths in a line of output; relative ones as if the command ran at the top of the scope.
fn paths<'a>(line: &'a str, scope: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
    let ends = |character: char| character.is_whitespace() || "'\"`‘’“”:,;()[]<>".contains(character);
    line.split(ends)
        .filter(|word| word.len() > 1)
        // No flag opens these: the first are no files of the host, and sockets are closed whatever their path.
        .filter(|word| {
            let is_special = ["/dev/tcp/", "/dev/udp/", "/dev/fd/", "/proc/"]
                .iter()
                .any(|start| word.starts_with(start));
            !is_special && !word.ends_with(".sock")
        })
        .filter_map(move |word| match word.strip_prefix('/') {
            Some(_) => Some(PathBuf::from(word)),
            None if word.contains('/') || word.starts_with('.') => Some(normalise(&scope.join(word))),
            None => None,
        })
}

#[cfg(test)]
#[path = "hint_tests.rs"]
mod tests;
