use std::path::Path;

use super::{HintContext, hint_after_success};
use crate::sandbox::{Access, Grant, Network, Policy, Tier};

fn policy(scope: &Path, network: Network) -> Policy {
    Policy {
        scope: scope.to_owned(),
        scope_access: Access::Write,
        private: "/nowhere/private".into(),
        host_temp: false,
        grants: vec![Grant {
            path: "/usr".into(),
            real: "/usr".into(),
            access: Access::ReadExecute,
            reason: "system".into(),
        }],
        overlays: Vec::new(),
        worktree: None,
        protected: vec![
            scope.join(".git"),
            scope.join(".git/hooks"),
            scope.join(".git/config"),
        ],
        network,
    }
}

/// As for a user whose home is `/home/me`.
fn around(policy: &Policy, tier: Tier) -> HintContext<'_> {
    HintContext {
        policy,
        tier,
        home: Some(Path::new("/home/me")),
    }
}

fn hint(output: &str, policy: &Policy, tier: Tier) -> Option<String> {
    super::hint(output, around(policy, tier))
}

#[test]
fn names_the_path_the_rule_and_the_flag() {
    const CARGO: &str = "error: failed to open: /usr/cargo/.crates.toml\n\nCaused by:\n  Read-only file system (os error 30)\n";
    let open = policy(Path::new("/srv/scope"), Network::Open);
    for (output, expected) in [
        (
            "cat: /var/lib: Permission denied\n",
            Some("--allow-read /var/lib or --allow-write /var/lib."),
        ),
        (
            "bash: line 1: /usr/lib/x: Read-only file system\n",
            Some("with --allow-write /usr/lib/x."),
        ),
        (
            "touch: cannot touch '/usr/x': Read-only file system\n",
            Some("make /usr/x yourself, then start ahma_mcp with --allow-write /usr/x."),
        ),
        (CARGO, Some("with --allow-write /usr/cargo/.crates.toml.")),
        (
            "error: could not write .git/hooks/pre-commit: Permission denied",
            Some("--trust-workspace-config"),
        ),
        (
            "mkdir: cannot create directory ‘/home/me/no-such/x’: Permission denied",
            Some("make /home/me/no-such/x yourself"),
        ),
        (
            "cat: /home/me/x: No such file or directory",
            Some("outside the sandbox scope /srv/scope, and what is there is hidden"),
        ),
        (
            "cat: ../beside/x: No such file or directory",
            Some("/srv/beside/x is outside the sandbox scope"),
        ),
        ("cat: /tmp/x: No such file or directory", Some("--allow-tmp")),
        ("cat: /srv/scope/mine: Permission denied", None),
        ("cat: /srv/scope/mine: No such file or directory", None),
        ("cat: /usr/lib/x: No such file or directory", None),
        ("/dev/fd/9: line 1: cd: link: Permission denied", None),
        ("fatal: something else", None),
        ("make: *** [all] Error 1", None),
        ("curl: (6) Could not resolve host: example.org", None),
    ] {
        let guess = hint(output, &open, Tier::Full);
        match expected {
            Some(words) => {
                let guess = guess.unwrap_or_else(|| panic!("no hint for {output:?}"));
                assert!(guess.contains(words) && guess.contains("guess"), "{guess}");
            }
            None => assert_eq!(guess, None, "{output:?}"),
        }
    }
    assert_eq!(hint("cat: /var/lib: Permission denied", &open, Tier::Off), None);
}

#[test]
fn never_advises_to_open_everything() {
    let open = policy(Path::new("/srv/scope"), Network::Open);
    for path in ["/home/me", "/home", "/var", "/usr", "/no-such-thing"] {
        for complaint in [
            "cannot touch '{}': Permission denied",
            "{}: Read-only file system",
        ] {
            let output = complaint.replace("{}", path);
            let guess = hint(&output, &open, Tier::Core).unwrap_or_else(|| panic!("no hint for {output:?}"));
            assert!(guess.contains("for what is needed of it"), "{guess}");
        }
    }
}

#[test]
fn after_a_success_only_protected_files_are_named() {
    let open = policy(Path::new("/srv/scope"), Network::Open);
    let about = |output: &str| hint_after_success(output, around(&open, Tier::Full));
    let guess = about(
        "error: could not write config file .git/config: Device or resource busy\nbranch 'b' set up to track 'origin/b'.\n",
    );
    assert!(guess.is_some_and(|guess| guess.contains("--trust-workspace-config")));
    assert_eq!(about("cat: /var/lib: Permission denied\n"), None);
    assert_eq!(about("wrote .git/config\n"), None);
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
    let network = |network| policy(Path::new("/s"), network);
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
fn names_shared_memory() {
    let open = policy(Path::new("/s"), Network::Open);
    for output in [
        "bash: line 1: /dev/shm/x: Permission denied\n",
        "    self._fd = _posixshmem.shm_open(\n               ^^^^^^^^\nPermissionError: [Errno 13] Permission denied: '/psm_2fa9d6ee'\n",
        "    sl = self._semlock = _multiprocessing.SemLock(\n         ^^^^^\nPermissionError: [Errno 13] Permission denied\n",
    ] {
        let guess = hint(output, &open, Tier::Core).unwrap_or_else(|| panic!("no hint for {output:?}"));
        assert!(guess.contains("--allow-write /dev/shm"), "{guess}");
    }
}

#[test]
fn only_the_end_of_a_long_output_is_read() {
    let mut output = "cat: /root/x: Permission denied\n".to_owned();
    output.push_str(&"ä fine line\n".repeat(4000));
    assert_eq!(
        hint(&output, &policy(Path::new("/s"), Network::Open), Tier::Core),
        None
    );
}
