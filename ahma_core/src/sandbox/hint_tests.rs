use std::fs;

use super::hint;
use crate::sandbox::{Access, Grant, Network, Policy, Tier};

fn policy(scope: &std::path::Path, network: Network) -> Policy {
    Policy {
        scope: scope.to_owned(),
        private: "/nowhere/private".into(),
        host_temp: false,
        grants: vec![Grant {
            path: "/usr".into(),
            access: Access::ReadExecute,
            reason: "system".into(),
        }],
        overlays: Vec::new(),
        protected: vec![scope.join(".git"), scope.join(".git/hooks")],
        network,
    }
}

#[test]
fn names_the_path_the_rule_and_the_flag() {
    let directory = tempfile::tempdir().unwrap();
    let scope = directory.path().join("scope");
    fs::create_dir_all(&scope).unwrap();
    let outside = "/var/lib".to_owned();
    let open = policy(&scope, Network::Open);
    for (output, expected) in [
        (
            format!("cat: {outside}: Permission denied\n"),
            Some(format!("--allow-read {outside}")),
        ),
        (
            "touch: cannot touch '/usr/x': Read-only file system\n".into(),
            Some("--allow-write /usr".into()),
        ),
        (
            "error: could not write .git/hooks/pre-commit: Permission denied".into(),
            Some("--trust-workspace-config".into()),
        ),
        (format!("cat: {}/mine: Permission denied", scope.display()), None),
        ("fatal: something else".into(), None),
        ("make: *** [all] Error 1".into(), None),
        ("curl: (6) Could not resolve host: example.org".into(), None),
    ] {
        let guess = hint(&output, &open, Tier::Full);
        match expected {
            Some(words) => {
                let guess = guess.unwrap_or_else(|| panic!("no hint for {output:?}"));
                assert!(guess.contains(&words) && guess.contains("guess"), "{guess}");
            }
            None => assert_eq!(guess, None, "{output:?}"),
        }
    }
    assert_eq!(
        hint(&format!("cat: {outside}: Permission denied"), &open, Tier::Off),
        None
    );
}

#[test]
fn explains_a_closed_network() {
    let closed = policy(std::path::Path::new("/s"), Network::Off);
    let guess = hint(
        "curl: (6) Could not resolve host: example.org",
        &closed,
        Tier::Core,
    )
    .unwrap();
    assert!(guess.contains("--network open"), "{guess}");
}

#[test]
fn only_the_end_of_a_long_output_is_read() {
    let mut output = "cat: /root/x: Permission denied\n".to_owned();
    output.push_str(&"ä fine line\n".repeat(4000));
    assert_eq!(
        hint(
            &output,
            &policy(std::path::Path::new("/s"), Network::Open),
            Tier::Core
        ),
        None
    );
}
