//! The Seatbelt profile for macOS: a pure function from a policy to text for `sandbox-exec -p`.
//!
//! Every statement is one line, and of two that match the later one wins. Filters of one statement are alternatives.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use ahma_common::contract::{COMMAND_MARK_ALLOWED, COMMAND_MARK_DENIED};

use super::{
    literal::{any_name, literal},
    rules::{self, CONTENT, WRITES},
};
use crate::sandbox::{Access, Grant, Network, Policy};

/// Reads that are closed, besides those that are in every profile.
#[derive(Debug, Clone, Default)]
pub struct ClosedReads {
    /// Without links.
    pub home: Option<PathBuf>,
    /// Places where people keep keys and tokens, which nothing opens.
    pub sensitive: Vec<PathBuf>,
}

/// The profile. `program` is ours, which is started inside the sandbox.
pub fn profile(policy: &Policy, closed: &ClosedReads, program: &Path) -> String {
    let mut profile = Profile {
        text: String::from("(version 1)\n(deny default)\n"),
    };
    profile.add_all(rules::PROCESSES);
    profile.add_reads(policy, closed, program);
    profile.add_all(rules::DEVICES);
    profile.add_writes(policy);
    profile.add_all(rules::TERMINALS_AND_MEMORY);
    profile.add_all(rules::SERVICES);
    profile.add_network(policy);
    profile.add_marks();
    profile.text
}

struct Profile {
    text: String,
}

impl Profile {
    fn add(&mut self, rule: &str) {
        self.text.push_str(rule);
        self.text.push('\n');
    }

    fn add_all(&mut self, rules: &[&str]) {
        for rule in rules {
            self.add(rule);
        }
    }

    fn add_reads(&mut self, policy: &Policy, closed: &ClosedReads, program: &Path) {
        self.add_all(rules::READS);
        let everywhere = rules::CLOSED_READS.iter().map(Path::new);
        let own = [policy.private.as_path()];
        for place in everywhere.chain(closed.home.as_deref()).chain(own) {
            self.add(&format!("(deny {CONTENT} {})", at_or_below(place)));
        }
        // The system is open already. A rule for a whole directory of it would open what was closed in there.
        let home = closed.home.as_deref();
        let grants = policy.grants.iter().filter(|grant| {
            grant.reason != Grant::OF_SYSTEM || rules::is_closed_to_reading(&grant.real, home)
        });
        let opened: BTreeSet<PathBuf> = grants
            .map(|grant| &grant.real)
            .chain(&policy.overlays)
            .chain([&policy.scope])
            .cloned()
            .chain([policy.temp()])
            .collect();
        for path in opened {
            self.add(&format!("(allow {CONTENT} {})", at_or_below(&path)));
        }
        self.add(&format!("(allow {CONTENT} (literal {}))", literal(program)));
        for place in &closed.sensitive {
            self.add(&format!("(deny {CONTENT} {})", at_or_below(place)));
        }
    }

    fn add_writes(&mut self, policy: &Policy) {
        let grants = policy.grants.iter().filter(|grant| grant.access == Access::Write);
        let scope = (policy.scope_access == Access::Write).then(|| policy.scope.clone());
        let roots: Vec<PathBuf> = scope
            .into_iter()
            .chain([policy.temp()])
            .chain(grants.map(|grant| grant.real.clone()))
            .collect();
        self.add(rules::NO_LINKS);
        for root in &roots {
            self.add(&format!("(allow {WRITES} {})", at_or_below(root)));
        }
        // One that is moved away would make the next policy another directory's.
        for root in &roots {
            self.add(&format!("(deny file-write-unlink (literal {}))", literal(root)));
        }
        let git = policy.scope.join(".git");
        let mut kept = BTreeSet::new();
        for path in &policy.protected {
            let root = policy.worktree.iter().find(|own| path.starts_with(own));
            let root = root.unwrap_or(&policy.scope).as_path();
            // Of the directory itself only the name is protected: git works in it.
            if *path == git {
                kept.insert((root, path.as_path()));
                continue;
            }
            self.add(&format!("(deny {WRITES} {})", at_or_below(path)));
            let any_name = any_name(root, path, "(/.*)?");
            self.add(&format!("(deny {WRITES} (regex {any_name}))"));
            // Moving a directory above it would move it out of the rule.
            let above = path.ancestors().skip(1).take_while(|above| *above != root);
            let above = above.filter(|above| above.starts_with(root));
            kept.extend(above.map(|above| (root, above)));
        }
        for (root, path) in kept {
            self.add(&format!("(deny file-write-unlink (literal {}))", literal(path)));
            let any_name = any_name(root, path, "");
            self.add(&format!("(deny file-write-unlink (regex {any_name}))"));
        }
        self.add(rules::NO_CLONED_DIRECTORIES);
        self.add(rules::NO_SET_USER_ID);
    }

    fn add_network(&mut self, policy: &Policy) {
        // Sockets by path lead to programs outside, such as a container engine or an agent with keys: only a command's own
        // are open, in every mode.
        if policy.scope_access == Access::Write {
            self.add("(allow system-socket (socket-domain AF_UNIX))");
            for path in [policy.scope.clone(), policy.temp()] {
                let path = literal(&path);
                self.add(&format!(
                    "(allow network-bind network-inbound network-outbound (subpath {path}))"
                ));
            }
        }
        match &policy.network {
            Network::Open => {
                self.add("(allow network-outbound (remote ip \"*:*\"))");
                self.add("(allow network-inbound (local ip \"*:*\"))");
                self.add("(allow network-bind (local ip \"*:*\"))");
            }
            // The host's own, for there is no other. A filter on the local side would match every socket that is not bound.
            Network::Loopback => {
                self.add("(allow network-outbound (remote ip \"localhost:*\"))");
                self.add("(allow network-inbound (local ip \"localhost:*\"))");
                self.add("(allow network-bind (local ip \"*:*\"))");
            }
            Network::Off => {}
            Network::Ports(ports) => {
                for port in ports {
                    self.add(&format!("(allow network-outbound (remote tcp \"*:{port}\"))"));
                }
            }
        }
        if matches!(policy.network, Network::Open | Network::Ports(_)) {
            self.add_all(rules::NETWORK_SERVICES);
        }
    }

    /// By one of them a listener recognises commands, by the other `jail` finds the processes of an operation.
    fn add_marks(&mut self) {
        self.add(&format!(
            "(allow mach-lookup (global-name \"{COMMAND_MARK_ALLOWED}\"))"
        ));
        self.add(&format!(
            "(deny mach-lookup (global-name \"{COMMAND_MARK_DENIED}\"))"
        ));
        self.add_all(rules::MARK);
    }
}

/// Filters for a path and all below it. By what others report, `subpath` alone misses a path that is no directory yet.
fn at_or_below(path: &Path) -> String {
    format!("(literal {0}) (subpath {0})", literal(path))
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
