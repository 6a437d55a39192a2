//! Paths that the user opens are open, in both tiers and however it lies to what else is open; the rest stays closed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::json;
use tempfile::TempDir;
use test_support::{Era, ServerOptions, Workspace};

use crate::session::options;

const TIERS: [&str; 2] = ["full", "core"];

fn run(options: &ServerOptions, tier: &str, arguments: &[&str], script: &str) -> Output {
    options
        .clone()
        .args(["--sandbox-tier", tier])
        .args(arguments)
        .args(["run", "sandboxed_shell", script])
        .command()
        .output()
        .expect("it starts")
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|stream| String::from_utf8_lossy(stream).into_owned())
        .concat()
}

/// Layout of the directories, and the parts that are opened.
struct Case {
    flags: Vec<String>,
    /// May be written.
    open: PathBuf,
    /// Beside or above it; may not.
    closed: PathBuf,
}

fn flags(words: &[(&str, &Path)]) -> Vec<String> {
    words
        .iter()
        .flat_map(|(flag, path)| [(*flag).to_owned(), path.display().to_string()])
        .collect()
}

#[test]
fn what_may_be_written_lies_wherever_it_lies() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().canonicalize().expect("it exists");
    for name in ["project", "other"] {
        fs::create_dir(home.join(name)).expect("writable");
    }
    let (project, other) = (home.join("project"), home.join("other"));
    let mut cases = vec![
        Case {
            flags: flags(&[("--allow-read", &home), ("--sandbox-scope", &project)]),
            open: project.clone(),
            closed: home.clone(),
        },
        Case {
            flags: flags(&[("--allow-read", &home), ("--allow-write", &other)]),
            open: other.clone(),
            closed: home.clone(),
        },
        Case {
            flags: flags(&[("--allow-read", &other), ("--allow-write", &home)]),
            open: home.clone(),
            closed: "/usr".into(),
        },
    ];
    // Inside what is open to be read by default; only root can make a directory there.
    let inside: Vec<TempDir> = ["/opt", "/etc"]
        .iter()
        .filter_map(|parent| tempfile::tempdir_in(parent).ok())
        .collect();
    for directory in &inside {
        for flag in ["--sandbox-scope", "--allow-write"] {
            cases.push(Case {
                flags: flags(&[(flag, directory.path())]),
                open: directory.path().into(),
                closed: directory.path().parent().expect("it has one").into(),
            });
        }
    }
    let workspace = Workspace::new();
    for (number, case) in cases.iter().enumerate() {
        for tier in TIERS {
            let name = format!("ahma-test-{number}-{tier}");
            let arguments: Vec<&str> = case.flags.iter().map(String::as_str).collect();
            let script = format!(
                "echo x > {0}/{name}; echo x > {1}/{name}-closed; true",
                case.open.display(),
                case.closed.display()
            );
            let output = run(&options(&workspace), tier, &arguments, &script);
            let explain = || format!("{tier} {arguments:?}: {}", text(&output));
            assert!(case.open.join(&name).exists(), "{}", explain());
            let leaked = fs::remove_file(case.closed.join(format!("{name}-closed"))).is_ok();
            assert!(!leaked, "{}", explain());
        }
    }
}

#[test]
fn protected_names_stay_so_below_what_may_be_read() {
    for tier in TIERS {
        let workspace = Workspace::new();
        let scope = workspace.scope();
        let above = scope.parent().expect("it has one").display().to_string();
        fs::write(scope.join(".envrc"), "good").expect("writable");
        fs::create_dir(scope.join(".vscode")).expect("writable");
        let script = "echo evil > .envrc; echo evil > .vscode/tasks.json; echo fine > fine";
        let output = run(&options(&workspace), tier, &["--allow-read", &above], script);
        let explain = || format!("{tier}: {}", text(&output));
        assert_eq!(
            fs::read_to_string(scope.join(".envrc")).expect("readable"),
            "good",
            "{}",
            explain()
        );
        assert!(!scope.join(".vscode/tasks.json").exists(), "{}", explain());
        assert!(scope.join("fine").exists(), "{}", explain());
    }
}

/// The server's own files lie in `/tmp` by default, and must not be open with it.
#[test]
fn the_hosts_temporary_directory_can_be_opened() {
    let file = tempfile::NamedTempFile::new_in("/tmp").expect("a temporary file");
    for (tier, arguments) in TIERS
        .iter()
        .flat_map(|tier| [&["--allow-tmp"][..], &["--allow-write", "/tmp"]].map(|flags| (tier, flags)))
    {
        let workspace = Workspace::new();
        let script = format!(
            "echo {tier} > {}; f=$(mktemp) && echo x > $f && cat $f",
            file.path().display()
        );
        let output = run(&options(&workspace), tier, arguments, &script);
        assert!(output.status.success(), "{tier} {arguments:?}: {}", text(&output));
        assert_eq!(
            fs::read_to_string(file.path()).expect("readable"),
            format!("{tier}\n"),
            "{arguments:?}"
        );
        assert!(text(&output).contains('x'), "{tier}: {}", text(&output));
    }
}

#[test]
fn the_servers_own_files_are_never_open_to_commands() {
    let workspace = Workspace::new();
    let output = run(
        &options(&workspace),
        "core",
        &["--allow-read", "/tmp", "--allow-read", "/var/tmp"],
        "true",
    );
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("own files would be open") && text.contains("TMPDIR"),
        "{text}"
    );
}

/// A file that a command leaves in the scope is found by the next server, with the variables of the same user.
#[test]
fn nothing_in_the_scope_decides_what_is_opened() {
    for tier in TIERS {
        let workspace = Workspace::new();
        let (scope, home) = (workspace.scope(), workspace.home());
        fs::create_dir(home.join(".ssh")).expect("writable");
        fs::write(home.join(".ssh/id"), "tok-key").expect("writable");
        let at = |name: &str| scope.join(name).display().to_string();
        let options = options(&workspace)
            .env("VIRTUAL_ENV", at(".venv"))
            .env("PATH", format!("{}:/usr/bin:/bin", at("bin")))
            .env("CARGO_HOME", at(".cargo"))
            .env("GOPATH", at(".go"))
            .env("NODE_EXTRA_CA_CERTS", at("ca.pem"));
        let plant = "mkdir -p .cargo .go/pkg; ln -s ~ .venv; ln -s ~/.ssh bin; ln -s ~/.ssh .cargo/bin; \
                     ln -s ~ .cargo/registry; ln -s ~ .go/pkg/mod; ln -s ~/.ssh/id ca.pem; ln -s ~ out";
        run(&options, tier, &[], plant);
        let read = "cat ~/.ssh/id .venv/.ssh/id bin/id .cargo/*/id .cargo/registry/.ssh/id .go/pkg/mod/.ssh/id ca.pem; true";
        let output = run(&options, tier, &[], read);
        assert!(!text(&output).contains("tok-key"), "{tier}: {}", text(&output));

        for flag in ["--allow-read", "--allow-write"] {
            let output = run(&options, tier, &[flag, &at("out")], read);
            let said = text(&output);
            assert_eq!(output.status.code(), Some(1), "{said}");
            let expected = format!(
                "{flag} {} leads to {} by a link that commands can change",
                at("out"),
                home.display()
            );
            assert!(said.contains(&expected) && said.contains("hint: "), "{said}");
        }
    }
}

/// Setting up the sandbox again, because the scope is another directory, must not resolve paths again.
#[test]
fn no_link_widens_what_is_open_while_the_server_runs() {
    for tier in TIERS {
        let workspace = Workspace::new();
        let home = workspace.home();
        for name in ["keys", "w/proj", "w/sub/bin"] {
            fs::create_dir_all(home.join(name)).expect("writable");
        }
        fs::write(home.join("keys/secret"), "the secret").expect("writable");
        let work = home.join("w").canonicalize().expect("it exists");
        let path = format!("{}:/usr/bin:/bin", work.join("sub/bin").display());
        let mut server = options(&workspace)
            .env("PATH", path)
            .args(["--sandbox-tier", tier, "--sandbox-scope"])
            .args([work.join("proj")])
            .args(["--allow-write"])
            .args([&work])
            .open(Era::Modern);
        let mut shell = |command: String| {
            let arguments = json!({"command": command, "execution_mode": "synchronous"});
            server.tool("sandboxed_shell", arguments)["structuredContent"].take()
        };
        let keys = home.join("keys").canonicalize().expect("it exists");
        let keys = keys.display();
        let moved = shell(format!(
            "cd .. && mv proj old && mkdir proj && mv sub sub2 && mkdir sub && ln -s {keys} sub/bin"
        ));
        assert_eq!(moved["status"], "completed", "{tier}: {moved}");
        let read = shell(format!("cat {keys}/secret")).to_string();
        assert!(!read.contains("the secret"), "{tier}: {read}");
    }
}
