//! Guesses why a command failed, when it looks as if the wall was the reason.
//!
//! The kernel does not tell who was refused what, so the text of the output is all there is. A hint is labelled as a
//! guess, names the path, the rule and the flag, and is never given after a success.

use std::path::{Path, PathBuf};

use super::{Access, Network, Policy, Tier};

/// Only the end of the output is looked at: that is where the failure is.
const LOOKED_AT_BYTES: usize = 16 * 1024;

const REFUSALS: &[&str] = &[
    "permission denied",
    "read-only file system",
    "operation not permitted",
    "device or resource busy",
    "eacces",
    "eperm",
    "erofs",
];

const UNREACHABLE: &[&str] = &[
    "network is unreachable",
    "could not resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "eai_again",
    "enetunreach",
];

/// A guess in one or two sentences, or nothing.
pub fn hint(output: &str, policy: &Policy, tier: Tier) -> Option<String> {
    if tier == Tier::Off {
        return None;
    }
    let mut start = output.len().saturating_sub(LOOKED_AT_BYTES);
    while !output.is_char_boundary(start) {
        start += 1;
    }
    output[start..].lines().rev().find_map(|line| {
        let lower = line.to_lowercase();
        let refused = REFUSALS.iter().any(|words| lower.contains(words));
        let missing = lower.contains("no such file or directory") || lower.contains("enoent");
        if refused || (missing && tier == Tier::Full) {
            for path in paths(line, &policy.scope) {
                if let Some(guess) = about_path(&path, policy, tier, refused) {
                    return Some(guess);
                }
            }
        }
        if UNREACHABLE.iter().any(|words| lower.contains(words)) || (refused && lower.contains("socket")) {
            return about_network(&policy.network);
        }
        if refused && lower.contains("/dev/shm") && tier == Tier::Core {
            return Some(guess(
                "shared memory (/dev/shm) is closed in the core tier",
                "use a machine with user namespaces for the full tier",
            ));
        }
        None
    })
}

fn about_path(path: &Path, policy: &Policy, tier: Tier, refused: bool) -> Option<String> {
    let shown = path.display();
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
                "edit it from outside, or start the server with --trust-workspace-config",
            )
        });
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
            &format!("start the server with --allow-write {}", narrowest(path)),
        )),
        Some(_) => None,
        // A path that does not exist outside either was not hidden by us.
        None if !refused && !path.exists() => None,
        None if path.starts_with("/tmp") => Some(guess(
            &format!("{shown} is in the host's /tmp, which is closed; commands have a private one in TMPDIR"),
            "use $TMPDIR, or start the server with --allow-tmp",
        )),
        None => Some(guess(
            &format!("{shown} is outside the sandbox scope {}", policy.scope.display()),
            &format!(
                "start the server with --allow-read {0} or --allow-write {0}",
                narrowest(path)
            ),
        )),
    }
}

fn about_network(network: &Network) -> Option<String> {
    let (mode, flag) = match network {
        Network::Open => return None,
        Network::Loopback => (
            "only its own loopback interface is reachable (--network loopback)",
            "--network open",
        ),
        Network::Off => ("the network is closed (--network off)", "--network open"),
        Network::Ports(_) => (
            "only TCP connections to the listed ports are open",
            "--allow-connect PORT",
        ),
    };
    Some(guess(mode, &format!("start the server with {flag}")))
}

fn guess(what: &str, remedy: &str) -> String {
    format!("This may be the sandbox (a guess from the output): {what}. To change it: {remedy}.")
}

/// The narrowest path that a flag could open: the thing itself, or the directory in which it would be made.
fn narrowest(path: &Path) -> String {
    let existing = path.ancestors().find(|above| above.exists()).unwrap_or(path);
    existing.display().to_string()
}

/// Absolute paths in a line of output, and relative ones that lie in the scope.
fn paths<'a>(line: &'a str, scope: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
    let ends = |character: char| character.is_whitespace() || "'\"`‘’“”:,;()[]<>".contains(character);
    line.split(ends)
        .filter(|word| word.len() > 1)
        .filter_map(move |word| match word.strip_prefix('/') {
            Some(_) => Some(PathBuf::from(word)),
            None if word.contains('/') || word.starts_with('.') => Some(scope.join(word)),
            None => None,
        })
}

#[cfg(test)]
#[path = "hint_tests.rs"]
mod tests;
