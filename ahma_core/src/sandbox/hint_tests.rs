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
        worktree: None,
        protected: vec![scope.join(".git"), scope.join(".git/hooks")],
        network,
    }
}

#[test]
fn names_the_path_the_rule_and_the_flag() {
    // Not in /tmp, about which there is a hint of its own.
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let scope = directory.path().join("scope");
    fs::create_dir_all(&scope).unwrap();
    fs::create_dir(directory.path().join("beside")).unwrap();
    fs::write(directory.path().join("beside/x"), "").unwrap();
    let outside = "/var/lib".to_owned();
    let home = std::env::home_dir().unwrap();
    let home = home.display();
    let host_temp = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let open = policy(&scope, Network::Open);
    for (output, expected) in [
        (
            format!("cat: {outside}: Permission denied\n"),
            Some(format!("--allow-read {outside}")),
        ),
        (
            "bash: line 1: /usr/x: Read-only file system\n".into(),
            Some("--allow-write /usr".into()),
        ),
        (
            "touch: cannot touch '/usr/x': Read-only file system\n".into(),
            Some("--allow-write /usr".into()),
        ),
        (
            "error: could not write .git/hooks/pre-commit: Permission denied".into(),
            Some("--trust-workspace-config".into()),
        ),
        (
            format!("mkdir: cannot create directory ‘{home}/no-such/x’: Permission denied"),
            Some(format!("make {home}/no-such/x yourself")),
        ),
        (
            format!("ls: cannot open directory '{home}': Permission denied"),
            Some("--allow-write for what is needed of it".into()),
        ),
        (format!("cat: {}/mine: Permission denied", scope.display()), None),
        (
            "cat: ../beside/x: No such file or directory".into(),
            Some("beside/x is outside the sandbox scope".into()),
        ),
        ("cat: ../not-there/x: No such file or directory".into(), None),
        (
            "touch: cannot touch '../beside/new': No such file or directory".into(),
            Some("start ahma_mcp with --allow-write ".into()),
        ),
        (
            "bash: line 1: /var/lib/x: Read-only file system".into(),
            Some("start ahma_mcp with --allow-write /var/lib.".into()),
        ),
        (
            format!("cat: {}: No such file or directory", host_temp.path().display()),
            Some("--allow-tmp".into()),
        ),
        (
            "cat: /tmp/not-there-either: No such file or directory".into(),
            None,
        ),
        ("/dev/fd/9: line 1: cd: link: Permission denied".into(), None),
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

/// What real programs printed when they were refused.
const PYTHON: &str = "  File \"/usr/lib/python3.11/socket.py\", line 836, in create_connection\n    sock.connect(sa)\nPermissionError: [Errno 13] Permission denied\n";
const NODE: &str = "Error: connect EACCES 1.1.1.1:80 - Local (0.0.0.0:0)\n    at internalConnect (node:net:1087:16) {\n  errno: -13,\n  code: 'EACCES',\n  syscall: 'connect',\n  address: '1.1.1.1',\n  port: 80\n}\n\nNode.js v20.20.2\n";
const BASH: &str = "bash: connect: Permission denied\nbash: line 1: /dev/tcp/1.1.1.1/80: Permission denied\n";
const CURL: &str = "curl: (7) Failed to connect to 1.1.1.1 port 80 after 0 ms: Couldn't connect to server\n";
const WGET: &str = "Connecting to 1.1.1.1:80... failed: Operation not permitted.\nGiving up.\n";
const NAME: &str = "curl: (6) Could not resolve host: example.org\n";
const ROUTE: &str = "OSError: [Errno 101] Network is unreachable\n";

#[test]
fn names_the_connection_the_rule_and_the_flag() {
    let network = |network| policy(std::path::Path::new("/s"), network);
    let (off, loopback, ports) = (
        network(Network::Off),
        network(Network::Loopback),
        network(Network::Ports(vec![443, 8443])),
    );
    for (output, policy, expected) in [
        (NAME, &off, &["--network off", "--network open"][..]),
        (
            CURL,
            &off,
            &["1.1.1.1 port 80", "--network off", "--network open"],
        ),
        (
            CURL,
            &loopback,
            &["1.1.1.1 port 80", "--network loopback", "--network open"],
        ),
        (
            CURL,
            &ports,
            &["1.1.1.1 port 80", "443, 8443", "--allow-connect 80"],
        ),
        (ROUTE, &loopback, &["--network loopback", "--network open"]),
        (PYTHON, &off, &["--network off"]),
        (PYTHON, &ports, &["443, 8443", "--allow-connect PORT"]),
        (NODE, &ports, &["1.1.1.1 port 80", "--allow-connect 80"]),
        (BASH, &ports, &["1.1.1.1 port 80", "--allow-connect 80"]),
        (BASH, &off, &["1.1.1.1 port 80", "--network open"]),
        (WGET, &off, &["1.1.1.1 port 80", "--network open"]),
        (NAME, &ports, &["UDP", "--network open"]),
    ] {
        for tier in [Tier::Full, Tier::Core] {
            let guess = hint(output, policy, tier).unwrap_or_else(|| panic!("no hint for {output:?}"));
            assert!(guess.contains("guess"), "{guess}");
            for words in expected {
                assert!(guess.contains(words), "{output:?}: {guess}");
            }
        }
    }
    let open = network(Network::Open);
    for output in [NAME, CURL, ROUTE, PYTHON, BASH, WGET] {
        assert_eq!(hint(output, &open, Tier::Core), None, "{output:?}");
    }
    let reachable = "curl: (7) Failed to connect to 1.1.1.1 port 443 after 9 ms: Couldn't connect to server";
    assert_eq!(hint(reachable, &ports, Tier::Core), None);
}

#[test]
fn names_shared_memory_and_never_opens_everything() {
    let open = policy(std::path::Path::new("/s"), Network::Open);
    for output in [
        "bash: line 1: /dev/shm/x: Permission denied\n",
        "    self._fd = _posixshmem.shm_open(\n               ^^^^^^^^\nPermissionError: [Errno 13] Permission denied: '/psm_2fa9d6ee'\n",
        "    sl = self._semlock = _multiprocessing.SemLock(\n         ^^^^^\nPermissionError: [Errno 13] Permission denied\n",
    ] {
        let guess = hint(output, &open, Tier::Core).unwrap_or_else(|| panic!("no hint for {output:?}"));
        assert!(guess.contains("--allow-write /dev/shm"), "{guess}");
    }
    assert_eq!(
        hint(
            "touch: cannot touch '/no-such-thing': Permission denied",
            &open,
            Tier::Core
        ),
        None
    );
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
