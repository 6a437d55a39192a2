use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use test_support::Subject;

use super::{ClosedReads, profile};
use crate::sandbox::{Access, Grant, Network, Policy, places_of_keys};

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

#[derive(Clone, Copy)]
enum Reads {
    Broad,
    WithoutSensitive,
}

fn text(policy: &Policy, reads: Reads) -> String {
    let home = PathBuf::from("/Users/me");
    let closed = ClosedReads {
        sensitive: match reads {
            Reads::Broad => Vec::new(),
            Reads::WithoutSensitive => places_of_keys(&home),
        },
        home: Some(home),
    };
    profile(policy, &closed, Path::new(PROGRAM))
}

/// One line for each rule that the plain policy does not have, or that only it has.
fn against_plain(policy: &Policy, reads: Reads) -> String {
    let plain = text(&self::policy("/Users/me/project"), Reads::Broad);
    let this = text(policy, reads);
    let only = |sign: char, in_this: &str, not_in: &str| -> String {
        let missing = |line: &&str| not_in.lines().all(|other| other != *line);
        let lines = in_this.lines().filter(missing);
        lines.map(|line| format!("{sign} {line}\n")).collect()
    };
    only('-', &plain, &this) + &only('+', &this, &plain)
}

fn grant(path: &str, access: Access, reason: &str) -> Grant {
    Grant {
        path: path.into(),
        real: path.into(),
        access,
        reason: reason.into(),
    }
}

#[test]
fn a_plain_policy() {
    insta::assert_snapshot!(text(&policy("/Users/me/project"), Reads::Broad));
}

#[test]
fn what_each_setting_changes() {
    let plain = policy("/Users/me/project");
    let changed = |change: &dyn Fn(&mut Policy)| {
        let mut policy = plain.clone();
        change(&mut policy);
        policy
    };
    for (name, policy, reads) in [
        ("sensitive_reads_denied", plain.clone(), Reads::WithoutSensitive),
        (
            "network_off",
            changed(&|policy| policy.network = Network::Off),
            Reads::Broad,
        ),
        (
            "network_loopback",
            changed(&|policy| policy.network = Network::Loopback),
            Reads::Broad,
        ),
        (
            "network_ports",
            changed(&|policy| policy.network = Network::Ports(vec![443, 5432])),
            Reads::Broad,
        ),
        (
            "read_only_shell",
            plain.read_only("/private/var/folders/xy/ahma/readonly".into()),
            Reads::Broad,
        ),
        (
            "more_grants",
            changed(&|policy| {
                policy
                    .grants
                    .push(grant("/Users/me/data", Access::ReadExecute, "--allow-read"));
                policy
                    .grants
                    .push(grant("/private/tmp", Access::Write, "--allow-tmp"));
            }),
            Reads::Broad,
        ),
        (
            "toolchains",
            changed(&|policy| {
                policy
                    .grants
                    .push(grant("/Users/me/.rustup", Access::ReadExecute, "toolchain rust"));
                policy.overlays.push("/Users/me/.cargo/registry".into());
            }),
            Reads::Broad,
        ),
        (
            "protected_names_and_a_worktree",
            changed(&|policy| {
                let own = PathBuf::from("/Users/me/main/.git/worktrees/wt");
                policy.protected = vec![
                    policy.scope.join(".ahma/tools"),
                    policy.scope.join(".git"),
                    policy.scope.join(".git/hooks"),
                    own.join("commondir"),
                ];
                policy.worktree = Some(own);
            }),
            Reads::Broad,
        ),
        (
            "nothing_protected",
            changed(&|policy| policy.protected.clear()),
            Reads::Broad,
        ),
    ] {
        insta::assert_snapshot!(name, against_plain(&policy, reads));
    }
}

#[test]
fn odd_names_and_linked_directories() {
    let policy = Policy {
        private: "/var/folders/xy/ahma".into(),
        ..policy("/var/work/a b \"c\" \\d (e) ünï 日本\n(allow default)")
    };
    insta::assert_snapshot!(profile(&policy, &ClosedReads::default(), Path::new(PROGRAM)));
}

fn read(policy: &Policy, reads: Reads) -> test_support::Profile {
    let names = [("MARK_ALLOWED", "mark.yes"), ("MARK_DENIED", "mark.no")];
    let marks = names
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    test_support::Profile::read(&text(policy, reads), &marks).unwrap()
}

/// Rights of commands, asked of the profile as its reader understands it.
#[test]
fn each_rule_means_what_it_says() {
    let mut policy = policy("/Users/me/project");
    policy
        .protected
        .extend([".ahma/tools", ".git/hooks"].map(|name| policy.scope.join(name)));
    policy
        .grants
        .push(grant("/Users/me/.aws", Access::ReadExecute, "--allow-read"));
    let open = read(&policy, Reads::Broad);
    let narrow = read(&policy, Reads::WithoutSensitive);
    for (operation, path, is_allowed) in [
        ("file-read-data", "/", true),
        ("file-read-data", "/usr/lib/dyld", true),
        ("file-read-metadata", "/Users/me/.ssh/id_ed25519", true),
        ("file-read-data", "/Users/me/.ssh/id_ed25519", false),
        ("file-read-xattr", "/Users/me/.ssh/id_ed25519", false),
        ("file-read-data", "/Users/other/file", false),
        ("file-read-data", "/Volumes/disk/file", false),
        ("file-read-data", "/private/tmp/other", false),
        ("file-read-data", "/private/var/root/.ssh/id_ed25519", false),
        (
            "file-read-data",
            "/private/var/db/dslocal/nodes/Default/users/me.plist",
            false,
        ),
        ("file-read-data", "/private/var/db/timezone/zoneinfo/UTC", true),
        ("file-read-data", "/private/var/db/SystemKey", false),
        ("file-read-data", "/private/etc/ssh/ssh_host_rsa_key", false),
        ("file-read-data", "/private/etc/ssh/ssh_config", true),
        ("file-read-data", "/System/Volumes/Data/Users/other/file", false),
        ("file-read-data", "/dev/null", true),
        ("file-read-data", "/dev/fd/8", true),
        ("file-read-data", "/dev/ttys001", false),
        ("file-read-data", "/dev/cu.usbserial", false),
        (
            "file-read-data",
            "/private/var/folders/xy/ahma/probe/secret",
            false,
        ),
        ("file-read-data", "/private/var/folders/xy/ahma/tmp/mine", true),
        ("file-read-data", "/Users/me/project/src/main.rs", true),
        ("file-read-data", PROGRAM, true),
        ("file-write-create", "/Users/me/project/new", true),
        ("file-write-create", "/private/var/folders/xy/ahma/tmp/new", true),
        ("file-write-create", "/Users/me/cache/new", true),
        ("file-write-create", "/Users/me/new", false),
        ("file-write-create", "/private/etc/new", false),
        ("file-write-mode", "/private/etc/hosts", false),
        ("file-write-mode", "/Users/me/project/run", true),
        ("file-write-setugid", "/Users/me/project/run", false),
        ("file-write-unlink", "/Users/me/project", false),
        ("file-write-unlink", "/Users/me/project/.git", false),
        ("file-write-create", "/Users/me/project/.git/index.lock", true),
        (
            "file-write-create",
            "/Users/me/project/.git/hooks/pre-commit",
            false,
        ),
        (
            "file-write-create",
            "/Users/me/project/.GIT/Hooks/pre-commit",
            false,
        ),
        ("file-write-create", "/Users/me/project/.VSCode/tasks.json", false),
        (
            "file-write-create",
            "/Users/me/project/.v\u{17f}code/tasks.json",
            false,
        ),
        (
            "file-write-create",
            "/Users/me/project/.git/hoo\u{212a}s/x",
            false,
        ),
        ("file-write-create", "/Users/me/project/.vscode-other", true),
        ("file-write-create", "/Users/me/project/.vcode", true),
        ("file-write-unlink", "/Users/me/project/.ahma", false),
        ("file-write-unlink", "/Users/me/project/.AHMA", false),
        ("file-write-unlink", "/Users/me/project/.Git", false),
        ("file-write-create", "/Users/me/project/.ahma/other", true),
        ("file-link", "/Users/me/project/file", true),
        ("file-link", "/Users/me/project/.git/config", true),
        ("file-link", "/Users/me/project/.git/hooks/pre-commit", false),
        ("file-link", "/Users/me/project/.VSCode/tasks.json", false),
        ("file-link", "/Users/me/.ssh/id_ed25519", false),
        ("file-link", "/private/etc/hosts", false),
        ("file-clone", "/Users/me/project/file", true),
        ("file-clone", "/usr/share/file", true),
        ("file-clone", "/Users/me/.ssh/id_ed25519", false),
        ("file-write-data", "/dev/null", true),
        ("file-write-data", "/dev/disk0", false),
        ("network-outbound", "/private/var/run/docker.sock", false),
        ("network-outbound", "/Users/me/project/s", true),
        ("network-outbound", "/private/var/run/mDNSResponder", true),
    ] {
        let subject = Subject::Path(Path::new(path));
        let answers = (
            open.allows(operation, subject),
            open.allows_by_name_first(operation, subject),
        );
        assert_eq!(answers, (is_allowed, is_allowed), "{operation} {path}");
    }
    let keys = Subject::Path(Path::new("/Users/me/.aws/credentials"));
    assert!(open.allows("file-read-data", keys) && !narrow.allows("file-read-data", keys));
    for (service, is_allowed) in [
        ("mark.yes", true),
        ("mark.no", false),
        ("com.apple.trustd.agent", true),
        ("com.apple.SecurityServer", false),
        ("com.apple.coreservices.launchservicesd", false),
        ("com.apple.pasteboard.1", false),
    ] {
        assert_eq!(
            open.allows("mach-lookup", Subject::Service(service)),
            is_allowed,
            "{service}"
        );
    }
    for (name, is_allowed) in [
        ("apple.shm.notification_center", true),
        ("/__KMP_REGISTERED_LIB_4711", true),
        ("/psm_0123abcd", false),
    ] {
        let reads = open.allows("ipc-posix-shm-read-data", Subject::Memory(name));
        assert_eq!(reads, is_allowed, "{name}");
    }
    assert!(!open.allows(
        "ipc-posix-shm-write-create",
        Subject::Memory("apple.shm.notification_center")
    ));
    let processes_outside = ["process-info-pidfdinfo", "mach-task-read", "mach-task-inspect"];
    for operation in processes_outside.into_iter().chain(["nvram-set", "nvram-get"]) {
        assert!(!open.allows(operation, Subject::Service("any")), "{operation}");
    }
    assert!(open.allows("sysctl-read", Subject::Sysctl("hw.ncpu")));
    assert!(!open.allows("sysctl-read", Subject::Sysctl("kern.procargs2")));
}

/// A name that APFS takes for the same is protected too: all that Unicode folds into ASCII letters.
#[test]
fn no_spelling_of_a_protected_name_is_open() {
    let mut policy = policy("/Users/me/project");
    let names = [
        ".gitconfig",
        "office",
        "waffle",
        "flags",
        "class",
        "best",
        "asst",
        "k",
    ];
    policy.protected = names.map(|name| policy.scope.join(name)).into();
    let profile = read(&policy, Reads::Broad);
    let is_open = |name: &str| {
        let path = policy.scope.join(name);
        profile.allows("file-write-create", Subject::Path(&path))
    };
    for name in [
        ".GITCONFIG",
        ".gitcon\u{fb01}g",
        ".gitcon\u{fb01}G",
        "o\u{fb03}ce",
        "o\u{fb00}ice",
        "of\u{fb01}ce",
        "wa\u{fb04}e",
        "waf\u{fb02}e",
        "\u{fb02}ags",
        "flag\u{17f}",
        "cla\u{df}",
        "cla\u{1e9e}",
        "clas\u{17f}",
        "be\u{fb06}",
        "be\u{fb05}",
        "a\u{df}t",
        "as\u{fb06}",
        "\u{212a}",
    ] {
        assert!(!is_open(name), "{name}");
    }
    for name in [
        "gitconfig",
        ".gitconfigs",
        "ofice",
        "wafle",
        "lags",
        "clas",
        "bet",
        "ast",
        "kk",
    ] {
        assert!(is_open(name), "{name}");
    }
}

#[test]
fn what_the_system_needs_opens_nothing_that_is_closed() {
    let mut policy = policy("/Users/me/project");
    for path in ["/System", "/private/etc", "/private/var/db", "/Volumes/tools"] {
        let grant = grant(path, Access::ReadExecute, Grant::OF_SYSTEM);
        policy.grants.push(grant);
    }
    let profile = read(&policy, Reads::Broad);
    for (path, is_open) in [
        ("/System/Library/Frameworks/x", true),
        ("/System/Volumes/Data/Users/me/.ssh/id_ed25519", false),
        ("/private/var/db/timezone/zoneinfo/UTC", true),
        ("/private/var/db/dslocal/nodes/Default/users/me.plist", false),
        ("/private/etc/hosts", true),
        ("/private/etc/master.passwd", false),
        // Where a link of the system leads.
        ("/Volumes/tools/bin/cc", true),
        ("/Volumes/other", false),
    ] {
        let found = profile.allows("file-read-data", Subject::Path(Path::new(path)));
        assert_eq!(found, is_open, "{path}");
    }
}

#[test]
fn the_network_is_open_as_far_as_asked() {
    let here = IpAddr::from([127, 0, 0, 1]);
    let elsewhere = IpAddr::from([93, 184, 216, 34]);
    for (network, to_here, to_https, to_other, listens) in [
        (Network::Open, true, true, true, true),
        (Network::Loopback, true, false, false, true),
        (Network::Off, false, false, false, false),
        (Network::Ports(vec![443]), false, true, false, false),
    ] {
        let policy = Policy {
            network,
            ..policy("/Users/me/project")
        };
        let profile = read(&policy, Reads::Broad);
        let reaches = |ip, port| profile.allows("network-outbound", Subject::Remote(ip, port));
        let found = (
            reaches(here, 8080),
            reaches(elsewhere, 443),
            reaches(elsewhere, 80),
            profile.allows("network-bind", Subject::Local(here, 0)),
        );
        assert_eq!(
            found,
            (to_here, to_https, to_other, listens),
            "{:?}",
            policy.network
        );
        // One fetches for its callers; without an answer of the other, programs that connect to nothing abort.
        for (service, is_allowed) in [
            ("com.apple.trustd.agent", to_https),
            ("com.apple.dnssd.service", to_https),
            ("com.apple.SystemConfiguration.configd", true),
        ] {
            let found = profile.allows("mach-lookup", Subject::Service(service));
            assert_eq!(found, is_allowed, "{service}: {:?}", policy.network);
        }
    }
}

#[test]
fn a_slash_at_the_end_of_a_path_makes_no_difference() {
    let closed = |home: &str| ClosedReads {
        home: Some(home.into()),
        sensitive: Vec::new(),
    };
    let plain = profile(&policy("/s"), &closed("/Users/me"), Path::new(PROGRAM));
    let slashed = profile(&policy("/s/"), &closed("/Users/me/"), Path::new(PROGRAM));
    assert_eq!(slashed, plain);
}

#[test]
fn no_path_can_add_a_rule() {
    let plain = profile(&policy("/s"), &ClosedReads::default(), Path::new(PROGRAM));
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
        let text = profile(&policy(scope), &ClosedReads::default(), Path::new(PROGRAM));
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
