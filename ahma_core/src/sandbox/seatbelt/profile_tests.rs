use std::path::{Path, PathBuf};

use super::{Reads, profile};
use crate::sandbox::{Access, Grant, Network, Policy};

const PROGRAM: &str = "/opt/homebrew/bin/ahma_mcp";

fn policy(scope: &str) -> Policy {
    Policy {
        scope: scope.into(),
        scope_access: Access::Write,
        private: "/private/var/folders/xy/ahma".into(),
        host_temp: false,
        grants: vec![Grant {
            path: "/Users/me/cache".into(),
            real: "/Users/me/cache".into(),
            access: Access::Write,
            reason: "--allow-write".into(),
        }],
        overlays: Vec::new(),
        worktree: None,
        protected: vec![
            PathBuf::from(scope).join(".git"),
            PathBuf::from(scope).join(".vscode"),
        ],
        network: Network::Open,
    }
}

#[test]
fn a_plain_policy() {
    insta::assert_snapshot!(profile(
        &policy("/Users/me/project"),
        Some(Path::new("/Users/me")),
        Path::new(PROGRAM),
        Reads::Broad
    ));
}

#[test]
fn sensitive_reads_denied_and_network_off() {
    let policy = Policy {
        network: Network::Off,
        ..policy("/Users/me/project")
    };
    insta::assert_snapshot!(profile(
        &policy,
        Some(Path::new("/Users/me")),
        Path::new(PROGRAM),
        Reads::WithoutSensitive
    ));
}

#[test]
fn odd_names_and_linked_directories() {
    let policy = Policy {
        scope_access: Access::Write,
        private: "/var/folders/xy/ahma".into(),
        network: Network::Ports(vec![443]),
        ..policy("/var/work/a b \"c\" \\d (e) ünï 日本\n(allow default)")
    };
    insta::assert_snapshot!(profile(&policy, None, Path::new(PROGRAM), Reads::Broad));
}

#[test]
fn no_path_can_add_a_rule() {
    let plain = profile(&policy("/s"), None, Path::new(PROGRAM), Reads::Broad);
    for scope in [
        "/a b",
        "/a\"b",
        "/a\\b",
        "/a\\\"b",
        "/a(b)",
        "/a\") (allow file-write* (subpath \"/",
        "/a\n(allow default)",
        "/ä/日本",
        "/a;b",
    ] {
        let text = profile(&policy(scope), None, Path::new(PROGRAM), Reads::Broad);
        assert_eq!(
            text.lines().count(),
            plain.lines().count(),
            "{scope:?} adds a line"
        );
        for line in text.lines() {
            assert_eq!(depth_outside_strings(line), (0, 1), "{scope:?}: {line}");
        }
    }
}

/// The depth of brackets at the end of a line, and how many statements it holds; strings are skipped.
fn depth_outside_strings(line: &str) -> (i32, usize) {
    let (mut depth, mut statements, mut in_string, mut escaped) = (0, 0, false, false);
    for character in line.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            '(' if !in_string => {
                statements += usize::from(depth == 0);
                depth += 1;
            }
            ')' if !in_string => depth -= 1,
            _ => {}
        }
    }
    assert!(!in_string, "an open string: {line}");
    (depth, statements)
}
