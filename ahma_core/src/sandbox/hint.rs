//! Guesses why a command failed, when it looks as if the wall was the reason.
//!
//! The kernel does not tell who was refused what, so the text of the output is all there is. A hint is labelled as a
//! guess, names the path or the connection, the rule and the flag, and is never given after a success.

use std::path::{Path, PathBuf};

use super::{Access, Policy, Tier};
use crate::call::normalise;

mod connection;

/// Only the end of the output is looked at: that is where the failure is.
const LOOKED_AT_BYTES: usize = 16 * 1024;

/// Some programs name the call on one line and the refusal on another that is this near.
const NEAR_LINES: usize = 3;

/// What a line of output complains about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Complaint {
    Refused,
    /// Refused, and it was a change.
    ReadOnly,
    Missing,
    /// Missing, and it was to be made.
    CannotBeMade,
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

/// How programs say that they wanted to make something.
const ATTEMPTS_TO_MAKE: &[&str] = &["cannot touch", "cannot create", "cannot make", "mkdir"];

/// What programs call POSIX shared memory and semaphores, whose files are in `/dev/shm` however they are named.
const SHARED_MEMORY: &[&str] = &["/dev/shm", "shm_open", "shared_memory", "semlock", "sem_open"];

/// A guess in one or two sentences, or nothing.
pub fn hint(output: &str, policy: &Policy, tier: Tier) -> Option<String> {
    if tier == Tier::Off {
        return None;
    }
    let mut start = output.len().saturating_sub(LOOKED_AT_BYTES);
    while !output.is_char_boundary(start) {
        start += 1;
    }
    let lines: Vec<&str> = output[start..].lines().collect();
    (0..lines.len()).rev().find_map(|index| {
        let near = &lines[index.saturating_sub(NEAR_LINES)..(index + NEAR_LINES + 1).min(lines.len())];
        about_line(lines[index], near, policy, tier)
    })
}

fn about_line(line: &str, near: &[&str], policy: &Policy, tier: Tier) -> Option<String> {
    let lower = line.to_lowercase();
    let complaint = complaint(&lower);
    let refused = complaint.is_some_and(Complaint::is_refusal);
    if connection::is_meant(&lower, refused)
        && let Some(guess) = connection::guess(line, &policy.network)
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
    paths(line, &policy.scope)
        .find_map(|path| about_path(&path, policy, tier, complaint))
        .or_else(|| {
            let is_connection = refused && nearby(connection::CALLS);
            let connection = near.iter().find(|line| connection::destination(line).is_some());
            is_connection
                .then(|| connection::guess(connection.unwrap_or(&line), &policy.network))
                .flatten()
        })
}

impl Complaint {
    fn is_refusal(self) -> bool {
        matches!(self, Self::Refused | Self::ReadOnly)
    }

    /// Whether a path that a program misses is there outside, or could be made there.
    fn is_explained_by_hiding(self, path: &Path) -> bool {
        path.exists() || self == Self::CannotBeMade && path.parent().is_some_and(Path::exists)
    }
}

fn complaint(lower: &str) -> Option<Complaint> {
    let has = |words: &[&str]| words.iter().any(|words| lower.contains(words));
    if has(REFUSED_CHANGES) {
        Some(Complaint::ReadOnly)
    } else if has(REFUSALS) {
        Some(Complaint::Refused)
    } else if has(ABSENCES) && has(ATTEMPTS_TO_MAKE) {
        Some(Complaint::CannotBeMade)
    } else {
        has(ABSENCES).then_some(Complaint::Missing)
    }
}

fn about_path(path: &Path, policy: &Policy, tier: Tier, complaint: Complaint) -> Option<String> {
    let shown = path.display();
    let refused = complaint.is_refusal();
    if let Some(protected) = policy
        .protected
        .iter()
        .find(|protected| path.starts_with(protected) && **protected != policy.scope.join(".git"))
    {
        return refused.then(|| {
            guess(
                &format!(
                    "{shown} is protected, because programs outside the sandbox act on {}",
                    protected.display()
                ),
                "edit it from outside, or start ahma_mcp with --trust-workspace-config",
            )
        });
    }
    // Of the same name as the private one, the host's directory may hold what was looked for.
    let is_in_temp = path.starts_with(policy.visible_temp(tier)) && (refused || !path.exists());
    if path.starts_with(&policy.scope) || is_in_temp {
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
            &remedy(path, &["--allow-write"])?,
        )),
        Some(_) => None,
        None if !refused && !complaint.is_explained_by_hiding(path) => None,
        None if path.starts_with("/tmp") => Some(guess(
            &format!("{shown} is in the host's /tmp, which is closed; commands have a private one in TMPDIR"),
            "use $TMPDIR, or start ahma_mcp with --allow-tmp",
        )),
        None => Some(guess(
            &format!("{shown} is outside the sandbox scope {}", policy.scope.display()),
            &match complaint {
                Complaint::ReadOnly | Complaint::CannotBeMade => remedy(path, &["--allow-write"])?,
                Complaint::Refused | Complaint::Missing => remedy(path, &["--allow-read", "--allow-write"])?,
            },
        )),
    }
}

fn guess(what: &str, remedy: &str) -> String {
    format!("This may be the sandbox (a guess from the output): {what}. To change it: {remedy}.")
}

/// How to open the narrowest path that a flag could open: the thing itself, or the directory in which it would be made.
/// Nobody should be told to open everything, neither the root nor all of his home.
fn remedy(path: &Path, flags: &[&str]) -> Option<String> {
    let narrowest = path.ancestors().find(|above| above.exists())?;
    narrowest.parent()?;
    let shown = path.display();
    if std::env::home_dir().is_some_and(|home| home.starts_with(narrowest)) {
        return Some(match path == narrowest {
            true => format!(
                "start ahma_mcp with {} for what is needed of it",
                flags.join(" or ")
            ),
            false => format!("make {shown} yourself, then start ahma_mcp with --allow-write {shown}"),
        });
    }
    let flags: Vec<String> = flags
        .iter()
        .map(|flag| format!("{flag} {}", narrowest.display()))
        .collect();
    Some(format!("start ahma_mcp with {}", flags.join(" or ")))
}

/// Paths in a line of output; relative ones as if the command ran at the top of the scope.
fn paths<'a>(line: &'a str, scope: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
    let ends = |character: char| character.is_whitespace() || "'\"`‘’“”:,;()[]<>".contains(character);
    line.split(ends)
        .filter(|word| word.len() > 1)
        // No flag opens these: the first are no files of the host, and the wall closes sockets whatever their path.
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
