//! Reads an output for what the sandbox may have refused.
//!
//! Paths are never looked at: a command chooses what it prints, and would learn what lies outside, or make the server
//! wait for a file system that does not answer.

use std::path::{Path, PathBuf};

use super::{
    advice::Refusals,
    complaint::{Complaint, ComplaintKind, complaint, ends_with_complaint, paths},
    connection, terminal,
};
use crate::sandbox::{Access, Policy, Tier, seatbelt::is_closed_to_reading};

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
    /// The command ran in the sandbox that only reads.
    pub reads_only: bool,
}

/// Names of POSIX shared memory and semaphores, whose files are in `/dev/shm` whatever they are called.
const SHARED_MEMORY: &[&str] = &["/dev/shm", "shm_open", "shared_memory", "semlock", "sem_open"];

/// In the message of a program that starts a sandbox inside ours.
const NESTED_SANDBOX: &str = "sandbox_apply";

/// A guess about a failure in a few sentences, or nothing.
pub fn hint(output: &str, around: HintContext<'_>) -> Option<String> {
    if around.tier == Tier::Off {
        return hint_without_sandbox(output);
    }
    let lines = last_lines(output);
    let mut refusals = Refusals::default();
    let mut other = None;
    for index in 0..lines.len() {
        let near = &lines[index.saturating_sub(NEAR_LINES)..(index + NEAR_LINES + 1).min(lines.len())];
        match about_line(lines[index], near, around) {
            LineGuess::Paths(found) => found.into_iter().for_each(|refused| refusals.add(refused)),
            LineGuess::Other(guess) => other = Some(guess),
            LineGuess::Nothing => {}
        }
    }
    refusals
        .told(around)
        .or(other)
        .or_else(|| hint_without_sandbox(output))
}

/// A guess about a failure that the sandbox has no part in.
fn hint_without_sandbox(output: &str) -> Option<String> {
    terminal::hint(output).or_else(|| {
        let lines = last_lines(output);
        let is_too_long = |line: &&str| line.to_lowercase().contains("argument list too long");
        lines.iter().any(is_too_long).then(|| {
            "A command line takes 128 KiB for one argument: write the text to a file (file_write) and name that, or pass \
             it as `stdin`."
                .to_owned()
        })
    })
}

/// A guess about a success: some programs go on when a file is refused, and the exit code of a pipe is that of its last
/// program. Only lines that end with the complaint count, because an output may be about anything.
pub fn hint_after_success(output: &str, around: HintContext<'_>) -> Option<String> {
    if around.tier == Tier::Off {
        return None;
    }
    let mut refusals = Refusals::default();
    for line in last_lines(output) {
        if ends_with_complaint(line)
            && let LineGuess::Paths(found) = about_line(line, &[line], around)
        {
            found.into_iter().for_each(|refused| refusals.add(refused));
        }
    }
    refusals.told(around)
}

/// A guess why the program behind a tool did not pass its check: a path in what it said is closed.
pub fn hint_about_check(said: &str, around: HintContext<'_>) -> Option<String> {
    let complaint = Complaint {
        kind: ComplaintKind::Missing,
        of_writing: false,
    };
    let mut refusals = Refusals::default();
    for path in paths(said, &around.policy.scope).filter(|_| around.tier != Tier::Off) {
        if let Some(refused) = about_path(path, complaint, around) {
            refusals.add(refused);
        }
    }
    refusals.told(around)
}

/// A path that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) path: PathBuf,
    pub(super) reason: RefusalReason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RefusalReason {
    /// Programs outside act on the path named here.
    Protected(PathBuf),
    /// In the sandbox that only reads nothing can be changed.
    ReadOnlyShell,
    /// It can be read here, or would be made.
    Writing,
    /// It may be missing as well.
    Hidden,
    /// It may be missing from the commands' own `/tmp` as well.
    HostTemp,
    /// The sandbox that only reads has a `/tmp` of its own.
    OwnTemp,
    /// Nothing tells whether it was read or written.
    Closed,
}

/// Meaning of a line of output.
enum LineGuess {
    Paths(Vec<Refused>),
    /// A guess that is about no path.
    Other(String),
    Nothing,
}

pub(super) fn last_lines(output: &str) -> Vec<&str> {
    let mut start = output.len().saturating_sub(LOOKED_AT_BYTES);
    while !output.is_char_boundary(start) {
        start += 1;
    }
    output[start..].lines().collect()
}

fn about_line(line: &str, near: &[&str], around: HintContext<'_>) -> LineGuess {
    let HintContext { policy, tier, .. } = around;
    let lower = line.to_lowercase();
    let complaint = complaint(&lower);
    let refused = complaint.is_some_and(Complaint::is_refusal);
    if connection::is_meant(&lower, refused)
        && let Some(guess) = connection::guess(line, around)
    {
        return LineGuess::Other(guess);
    }
    // What is hidden in the full tier seems not to exist; elsewhere nothing is hidden.
    let Some(complaint) = complaint.filter(|_| refused || tier == Tier::Full) else {
        return LineGuess::Nothing;
    };
    if refused && tier == Tier::Seatbelt && lower.contains(NESTED_SANDBOX) {
        return LineGuess::Other(guess(
            "a program starts a sandbox of its own, and macOS puts none inside another",
            "Switch the program's own off: swift build --disable-sandbox, --no-sandbox of Chrome and Electron, sandbox = false of Nix",
        ));
    }
    let nearby = |words: &[&str]| {
        near.iter()
            .map(|line| line.to_lowercase())
            .any(|line| words.iter().any(|words| line.contains(words)))
    };
    if refused && tier == Tier::Core && nearby(SHARED_MEMORY) {
        return LineGuess::Other(guess(
            "shared memory (/dev/shm) is closed in the core tier, because the whole machine shares it",
            "Ask the user for --allow-write /dev/shm, or for the full tier, where commands have their own",
        ));
    }
    let mut found: Vec<Refused> = paths(line, &policy.scope)
        .filter_map(|path| about_path(path, complaint, around))
        .collect();
    if found.is_empty() && refused && nearby(connection::CALLS) {
        let named = near.iter().find(|line| connection::destination(line).is_some());
        return connection::guess(named.unwrap_or(&line), around)
            .map_or(LineGuess::Nothing, LineGuess::Other);
    }
    // Some programs name the file first, and the reason on a line of its own.
    let names_no_path = paths(line, &policy.scope).next().is_none();
    if complaint.kind == ComplaintKind::ReadOnly && names_no_path {
        let before = near.iter().rev().skip_while(|near| **near != line).skip(1);
        let mut paths_before = before.flat_map(|line| paths(line, &policy.scope));
        found.extend(paths_before.find_map(|path| about_path(path, complaint, around)));
    }
    LineGuess::Paths(found)
}

/// Decides whether the sandbox can be why a path was refused.
fn about_path(path: PathBuf, complaint: Complaint, around: HintContext<'_>) -> Option<Refused> {
    let HintContext { policy, tier, .. } = around;
    let refused = complaint.is_refusal();
    let in_scope = path.starts_with(&policy.scope);
    let reason = if around.reads_only && in_scope {
        refused.then_some(RefusalReason::ReadOnlyShell)?
    } else if let Some(protected) = protecting(&path, policy) {
        refused.then(|| RefusalReason::Protected(protected.to_owned()))?
    } else if is_host_temp(&path) && !policy.host_temp && !in_scope {
        match tier {
            // The commands' own: what is refused there is not refused by the sandbox.
            Tier::Full if refused => return None,
            Tier::Full if around.reads_only => RefusalReason::OwnTemp,
            _ => RefusalReason::HostTemp,
        }
    } else if in_scope || path.starts_with(policy.visible_temp(tier)) {
        return None;
    } else {
        let grants = policy.grants.iter().filter(|grant| path.starts_with(&grant.path));
        match grants.map(|grant| grant.access).max() {
            Some(Access::Write) => return None,
            Some(_) if refused => RefusalReason::Writing,
            Some(_) => return None,
            None if complaint.of_writing || complaint.kind == ComplaintKind::ReadOnly => {
                RefusalReason::Writing
            }
            // Seatbelt leaves reading open in most places.
            None if tier == Tier::Seatbelt && !is_closed_to_reading(&path, around.home) => {
                RefusalReason::Writing
            }
            None if refused => RefusalReason::Closed,
            None => RefusalReason::Hidden,
        }
    };
    Some(Refused { path, reason })
}

/// The directory for everybody's temporary files; on macOS it is a link.
fn is_host_temp(path: &Path) -> bool {
    path.starts_with("/tmp") || path.starts_with("/private/tmp")
}

/// The protected path that covers `path`. Of `.git` itself only the name is protected.
fn protecting<'a>(path: &Path, policy: &'a Policy) -> Option<&'a Path> {
    let git = policy.scope.join(".git");
    let mut protected = policy.protected.iter().filter(|protected| **protected != git);
    protected
        .find(|protected| path.starts_with(protected))
        .map(PathBuf::as_path)
}

pub(super) fn guess(what: &str, next: &str) -> String {
    format!("This may be the sandbox (a guess from the output): {what}. {next}.")
}

#[cfg(test)]
#[path = "guess_tests.rs"]
mod tests;
