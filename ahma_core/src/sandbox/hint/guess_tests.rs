use std::path::Path;

use super::{HintContext, hint_about_check, hint_after_success};
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
        reads_only: false,
    }
}

fn hint(output: &str, policy: &Policy, tier: Tier) -> Option<String> {
    super::hint(output, around(policy, tier))
}

/// Output, and words that the hint has and has not.
type PathCase = (
    &'static str,
    Option<(&'static [&'static str], &'static [&'static str])>,
);

const CARGO: &str = "error: failed to open: /home/me/.cargo/.crates.toml\n\nCaused by:\n  Read-only file system (os error 30)\n";
const PIP: &str = "ERROR: Could not install packages due to an OSError: [Errno 30] Read-only file system: '/usr/lib/python3/dist-packages/six.py'\n";
const APT: &str = "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)\n";
const FOUR: &str = "bash: line 1: /etc/a: Read-only file system\nbash: line 2: /opt/tool/b: Read-only file system\n\
    touch: cannot touch '/srv/other/q': No such file or directory\ncat: /home/me/.netrc: No such file or directory\n";

#[test]
fn says_what_can_be_done_here_before_what_to_ask_for() {
    let open = policy(Path::new("/srv/scope"), Network::Open);
    let cases: &[PathCase] = &[
        (
            "bash: line 1: /opt/data/x: Permission denied\n",
            Some((
                &[
                    "/opt/data/x is outside the scope, and closed. Open here: /srv/scope and /tmp. Otherwise ask the user to start ahma_mcp with --allow-write /opt/data.",
                ],
                &[],
            )),
        ),
        (
            "cat: /home/me/notes/x: No such file or directory",
            Some((
                &[
                    "/home/me/notes/x is outside the scope, and what is there is hidden",
                    "--allow-read /home/me/notes/x.",
                ],
                &["--allow-write"],
            )),
        ),
        (
            "cat: ../beside/x: No such file or directory",
            Some((&["/srv/beside/x", "--allow-read /srv/beside/x"], &[])),
        ),
        (
            "mkdir: cannot create directory ‘/home/me/new’: Permission denied",
            Some((
                &[
                    "`HOME=/tmp` before a command",
                    "--allow-write /home/me/new (once it exists)",
                ],
                &[],
            )),
        ),
        // A single file would not do, and nothing of the system is opened.
        (
            CARGO,
            Some((
                &[
                    "`cargo install --root target/tools`",
                    "--allow-write /home/me/.cargo.",
                ],
                &[".crates.toml."],
            )),
        ),
        (
            PIP,
            Some((&["`python3 -m venv .venv`"], &["--allow", "ask the user"])),
        ),
        (
            APT,
            Some((&["ask the user to install the package"], &["--allow"])),
        ),
        (
            "touch: cannot touch '/usr/x': Read-only file system\n",
            Some((&["/usr/x cannot be written", "Open here"], &["--allow", "ask"])),
        ),
        (
            FOUR,
            Some((
                &[
                    "/etc/a, /opt/tool/b and /srv/other/q cannot be written",
                    "/home/me/.netrc is outside",
                    "closed on purpose",
                    "--allow-write /opt/tool --allow-write /srv/other.",
                ],
                &["/etc ", "--allow-read"],
            )),
        ),
        (
            "cat: /home/me/.ssh/id_rsa: No such file or directory\nls: cannot access '/home/me/.ssh': No such file or directory",
            Some((
                &["ask the user to do that step", "closed on purpose"],
                &["--allow"],
            )),
        ),
        (
            "bash: line 1: /home/me/.bashrc: Read-only file system",
            Some((&["closed on purpose"], &["--allow"])),
        ),
        (
            "error: could not write .git/hooks/pre-commit: Permission denied",
            Some((
                &[
                    "protected",
                    "ask the user to change it, or for --trust-workspace-config",
                ],
                &["Open here"],
            )),
        ),
        (
            "cat: /tmp/x: No such file or directory",
            Some((&["--allow-tmp"], &[])),
        ),
        (
            "sudo: a terminal is required to read the password",
            Some((&["No terminal", "`stdin`"], &["--allow"])),
        ),
        (
            "fatal: could not read Username for 'https://x.org': terminal prompts disabled",
            Some((&["No terminal"], &[])),
        ),
        (
            "bash: line 1: /usr/bin/python3: Argument list too long",
            Some((&["file_write", "`stdin`"], &["--allow"])),
        ),
        ("cat: /srv/scope/mine: Permission denied", None),
        ("cat: /srv/scope/mine: No such file or directory", None),
        ("cat: /usr/lib/x: No such file or directory", None),
        ("/dev/fd/9: line 1: cd: link: Permission denied", None),
        ("fatal: something else", None),
        ("make: *** [all] Error 1", None),
        ("curl: (6) Could not resolve host: example.org", None),
    ];
    for (output, expected) in cases {
        let guess = hint(output, &open, Tier::Full);
        let Some((has, has_not)) = expected else {
            assert_eq!(guess, None, "{output:?}");
            continue;
        };
        let guess = guess.unwrap_or_else(|| panic!("no hint for {output:?}"));
        assert!(has.iter().all(|words| guess.contains(words)), "{guess}");
        assert!(!has_not.iter().any(|words| guess.contains(words)), "{guess}");
    }
    assert_eq!(hint("cat: /var/lib: Permission denied", &open, Tier::Off), None);
}

#[test]
fn never_advises_to_open_everything() {
    let open = policy(Path::new("/srv/scope"), Network::Open);
    for path in ["/home/me", "/home", "/var", "/usr", "/etc/x", "/no-such-thing"] {
        for complaint in [
            "cannot touch '{}': Permission denied",
            "{}: Read-only file system",
        ] {
            let output = complaint.replace("{}", path);
            let guess = hint(&output, &open, Tier::Core).unwrap_or_else(|| panic!("no hint for {output:?}"));
            assert!(!guess.contains("--allow"), "{guess}");
        }
    }
}

#[test]
fn many_paths_are_counted() {
    let open = policy(Path::new("/srv/scope"), Network::Open);
    let output: String = (0..20)
        .map(|number| format!("find: '/var/cache/{number}/x': Permission denied\n"))
        .collect();
    let guess = hint(&output, &open, Tier::Full).unwrap();
    assert!(
        guess.contains("/var/cache/7/x and 12 more are outside"),
        "{guess}"
    );
    assert!(guess.len() < 700, "{guess}");
}

#[test]
fn after_a_success_complaints_are_told_and_talk_about_them_is_not() {
    let open = policy(Path::new("/srv/scope"), Network::Open);
    let about = |output: &str| hint_after_success(output, around(&open, Tier::Full));
    let guess = about(
        "error: could not write config file .git/config: Device or resource busy\nbranch 'b' set up to track 'origin/b'.\n",
    );
    assert!(guess.is_some_and(|guess| guess.contains("--trust-workspace-config")));
    // As behind a pipe.
    let guess = about("cat: /home/me/x: No such file or directory\n0\n");
    assert!(guess.is_some_and(|guess| guess.contains("/home/me/x")));
    let guess = about("bash: line 1: /opt/x/y: Read-only file system\n");
    assert!(guess.is_some_and(|guess| guess.contains("--allow-write /opt/x")));
    assert_eq!(about("wrote .git/config\n"), None);
    assert_eq!(
        about("docs.md: says permission denied for /opt/x/y in places\n"),
        None
    );
}

#[test]
fn a_shell_that_only_reads_names_the_one_that_writes() {
    let open = policy(Path::new("/srv/scope"), Network::Open);
    let around = HintContext {
        reads_only: true,
        ..around(&open, Tier::Full)
    };
    for output in [
        "bash: line 1: ./new: Read-only file system\n",
        "touch: cannot touch '/srv/scope/new': Read-only file system\n",
        "curl: (7) Failed to connect to 1.1.1.1 port 80 after 0 ms: Couldn't connect to server\n",
    ] {
        let guess = super::hint(output, around).unwrap_or_else(|| panic!("no hint for {output:?}"));
        assert!(
            guess.contains("use sandboxed_shell") && !guess.contains("--"),
            "{guess}"
        );
    }
    let missing = super::hint("cat: /tmp/x: No such file or directory", around).unwrap();
    assert!(
        missing.contains("/tmp of readonly_shell, which is its own. Use sandboxed_shell"),
        "{missing}"
    );
}

#[test]
fn a_check_that_names_a_closed_path_is_explained() {
    let open = policy(Path::new("/srv/scope"), Network::Open);
    let about = |said: &str| hint_about_check(said, around(&open, Tier::Full));
    let guess =
        about("`testssl --version` ended with exit code 245: Unable to open /etc/testssl/mapping.txt");
    assert!(guess.is_some_and(|guess| guess.contains("--allow-read /etc/testssl/mapping.txt")));
    assert_eq!(
        about("`pytest --version` ended with exit code 1: /usr/bin/python3: No module named pytest"),
        None
    );
}

/// Messages of real programs that were refused something.
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
