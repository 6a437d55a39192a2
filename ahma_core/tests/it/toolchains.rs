//! Real toolchains in the sandbox, in both tiers; and their credentials, which stay closed.
//!
//! Without a network, but for those that get something from a registry. A toolchain that is missing is a failure in CI.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::json;
use test_support::{Era, Server, ServerOptions, Workspace, needs};

const TIERS: [&str; 2] = ["full", "core"];

/// Planted where toolchains keep their passwords.
const TOKEN: &str = "tok-credential-5f1e";

const CREDENTIALS: [&str; 6] = [
    ".cargo/credentials.toml",
    ".npmrc",
    ".pypirc",
    ".netrc",
    ".git-credentials",
    ".ssh/id_ed25519",
];

/// Variables by which this machine reaches the world.
const SURROUNDINGS: [&str; 6] = [
    "HTTPS_PROXY",
    "NO_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
];

/// A user with toolchains and credentials, and a server in his project.
/// Compilers and installers take minutes where others use the machine as well.
pub(crate) const TOOL_TIMEOUT: Duration = Duration::from_secs(600);

struct Bench {
    workspace: Workspace,
    server: Server,
}

impl Bench {
    /// Without a network.
    fn start(tier: &str, prepare: impl FnOnce(&Workspace)) -> Self {
        Self::start_with(tier, "off", prepare)
    }

    /// With a network, for registries.
    fn online(tier: &str) -> Self {
        Self::start_with(tier, "open", |_| {})
    }

    fn start_with(tier: &str, network: &str, prepare: impl FnOnce(&Workspace)) -> Self {
        let workspace = Workspace::new();
        let home = workspace.home();
        for path in CREDENTIALS {
            fs::create_dir_all(home.join(path).parent().unwrap()).unwrap();
            fs::write(home.join(path), TOKEN).unwrap();
        }
        // The machine's own toolchains, as if this user had installed them.
        if let Some(registry) = real("CARGO_HOME", ".cargo").map(|cargo| cargo.join("registry"))
            && registry.exists()
        {
            symlink(registry, home.join(".cargo/registry")).unwrap();
        }
        prepare(&workspace);
        let mut options = ServerOptions::new(env!("CARGO_BIN_EXE_ahma_mcp"), &workspace).args([
            "--sandbox-tier",
            tier,
            "--network",
            network,
            "--log-to-stderr",
            "--sync-wait",
            "600s",
        ]);
        for (variable, default) in [("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv")] {
            if let Some(path) = real(variable, default) {
                options = options.env(variable, path);
            }
        }
        for variable in SURROUNDINGS {
            if let Some(value) = std::env::var_os(variable) {
                options = options.env(variable, value);
            }
        }
        let server = options.open(Era::Legacy);
        Self { workspace, server }
    }

    /// Runs a script that must succeed and returns what it printed.
    #[track_caller]
    fn run(&mut self, script: &str) -> String {
        let arguments = json!({"command": script, "execution_mode": "synchronous", "timeout_seconds": 600});
        let call = json!({"name": "sandboxed_shell", "arguments": arguments});
        let id = self.server.request("tools/call", call);
        let answer = self.server.answer_within(id, TOOL_TIMEOUT);
        let result = answer.expect("an answer in ten minutes")["result"].take();
        let output = result["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert_ne!(result["isError"], true, "{script}\n{output}");
        assert!(!output.contains(TOKEN), "{script}\n{output}");
        output
    }
}

/// A directory of the user who runs the tests.
pub(crate) fn real(variable: &str, default: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(default)))
        .filter(|path| path.is_dir())
}

/// A registry that does not answer is no failure on a developer's machine, but one in CI.
fn reaches(program: &str, arguments: &[&str]) -> bool {
    let reached = (0..3).any(|_| works("timeout", &[&["60", program], arguments].concat()));
    if !reached {
        test_support::skip(&format!(
            "no registry answers `{program} {}`",
            arguments.join(" ")
        ));
    }
    reached
}

fn works(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[track_caller]
fn outside(directory: &Path, script: &str) {
    let done = Command::new("bash")
        .args(["-ec", script])
        .current_dir(directory)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(done.success(), "{script}");
}

#[test]
fn credentials_of_toolchains_stay_closed() {
    for tier in TIERS {
        let mut bench = Bench::start(tier, |_| {});
        bench.run("for f in ~/.cargo/credentials.toml ~/.npmrc ~/.pypirc ~/.netrc ~/.git-credentials ~/.ssh/id_ed25519; do cat $f; done; cp -r ~ copy; grep -r tok- . ~; true");
    }
}

#[test]
fn cargo_builds_and_tests_with_a_dependency() {
    if !needs("cargo", &["--version"], "install Rust from https://rustup.rs") {
        return;
    }
    let version = locked_version("itoa").expect("this workspace uses itoa");
    for tier in TIERS {
        let mut bench = Bench::start(tier, |workspace| {
            let project = workspace.scope();
            fs::create_dir(project.join("src")).unwrap();
            fs::write(
                project.join("Cargo.toml"),
                format!("[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nitoa = \"={version}\"\n"),
            )
            .unwrap();
            fs::write(
                project.join("src/lib.rs"),
                "#[test]\nfn prints() { assert_eq!(itoa::Buffer::new().format(42), \"42\"); }\n",
            )
            .unwrap();
        });
        let output = bench.run("cargo build --offline 2>&1 && cargo test --offline 2>&1");
        assert!(output.contains("test result: ok. 1 passed"), "{tier}: {output}");
    }
}

/// The version of a crate that this workspace uses, which is in the cache therefore.
fn locked_version(name: &str) -> Option<String> {
    let lock = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock")).ok()?;
    let after = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?.1;
    Some(after.split_once('"')?.0.to_owned())
}

#[test]
fn cargo_fetches_from_its_registry() {
    if !needs("cargo", &["--version"], "install Rust from https://rustup.rs")
        || !reaches("cargo", &["info", "-q", "either@1.13.0"])
    {
        return;
    }
    for tier in TIERS {
        let mut bench = Bench::online(tier);
        // In the core tier the user's cache is read-only, so a cache of one's own is what a user would take.
        let output = bench.run(
            "set -e
             cargo init -q --vcs none --name p . && CARGO_HOME=$PWD/cache cargo add -q either@=1.13.0
             echo 'pub fn f() -> either::Either<u8, u8> { either::Left(1) }' > src/lib.rs
             CARGO_HOME=$PWD/cache cargo build 2>&1; CARGO_HOME=$PWD/cache cargo test 2>&1",
        );
        assert!(output.contains("test result: ok"), "{tier}: {output}");
    }
}

#[test]
fn git_does_its_daily_work() {
    if !needs("git", &["--version"], "apt-get install git") {
        return;
    }
    for tier in TIERS {
        let mut bench = Bench::start(tier, |_| {});
        let output = bench.run(
            "set -e
             export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@x
             git init -q .
             echo one > f; git add f; git commit -qm one
             git branch side; git checkout -q side; echo two >> f; git commit -qam two
             git checkout -q -; git merge -q side; git stash list; git tag v1; git gc -q
             git worktree add -q tree side; git -C tree log --oneline | wc -l
             git clone -q . copy; git -C copy log --oneline | wc -l
             git -C copy pull -q; git diff --stat; git status --short",
        );
        assert_eq!(
            output.lines().filter(|line| line.trim() == "2").count(),
            2,
            "{tier}: {output}"
        );
        // The configuration of a repository that a command made is not its to write; git works without.
        assert!(!bench.workspace.scope().join(".git/config").exists());
        let output = bench.run("git log --oneline | wc -l; git status --short");
        assert!(output.lines().any(|line| line.trim() == "2"), "{tier}: {output}");
    }
}

#[test]
fn a_linked_worktree_commits_into_its_repository() {
    for tier in TIERS {
        let mut bench = Bench::start(tier, |workspace| {
            let scope = workspace.scope();
            fs::remove_dir(&scope).unwrap();
            let beside = scope.parent().unwrap();
            outside(
                beside,
                "git init -q main; cd main; git -c user.name=x -c user.email=x@x commit -q --allow-empty -m one; git worktree add -q ../project",
            );
        });
        bench.run("echo x > f && git add f && git -c user.name=x -c user.email=x@x commit -qm two && git branch three");
        let main = bench.workspace.scope().parent().unwrap().join("main");
        let log = Command::new("git")
            .args(["log", "--all", "--oneline"])
            .current_dir(&main)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&log.stdout).lines().count(), 2, "{tier}");
        let planted = main.join(".git/hooks/post-commit");
        bench.run(&format!(
            "echo evil > {0}; echo evil >> {1}; true",
            planted.display(),
            main.join(".git/config").display()
        ));
        assert!(!planted.exists(), "{tier}");
        assert!(
            !fs::read_to_string(main.join(".git/config"))
                .unwrap()
                .contains("evil"),
            "{tier}"
        );
    }
}

#[test]
fn npm_installs_a_local_package() {
    if !needs("npm", &["--version"], "apt-get install nodejs npm") {
        return;
    }
    for tier in TIERS {
        let mut bench = Bench::start(tier, |workspace| {
            let package = workspace.scope().join("library");
            fs::create_dir(&package).unwrap();
            fs::write(
                package.join("package.json"),
                r#"{"name":"library","version":"1.0.0","main":"index.js"}"#,
            )
            .unwrap();
            fs::write(package.join("index.js"), "module.exports = 6 * 7").unwrap();
        });
        let output = bench.run(
            "mkdir app && cd app && npm init -y >/dev/null && npm install --offline --no-audit --no-fund ../library && node -e 'console.log(require(\"library\"))'",
        );
        assert!(output.contains("42"), "{tier}: {output}");
    }
}

#[test]
fn npm_installs_from_its_registry() {
    if !needs("npm", &["--version"], "apt-get install nodejs npm")
        || !reaches("npm", &["view", "is-number", "version"])
    {
        return;
    }
    for tier in TIERS {
        let mut bench = Bench::online(tier);
        let output = bench.run(
            "npm init -y >/dev/null && npm install --no-audit --no-fund is-number@7.0.0 && node -e 'console.log(require(\"is-number\")(42))'",
        );
        assert!(output.contains("true"), "{tier}: {output}");
    }
}

#[test]
fn pip_installs_into_a_virtual_environment() {
    if !needs("python3", &["-c", "import venv, ensurepip"], PYTHON) {
        return;
    }
    for tier in TIERS {
        let mut bench = Bench::start(tier, |_| {});
        let output = bench.run(
            "python3 - <<'END'
import zipfile
with zipfile.ZipFile('library-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('library.py', 'answer = 6 * 7')
    wheel.writestr('library-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: library\\nVersion: 1.0\\n')
    wheel.writestr('library-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('library-1.0.dist-info/RECORD', '')
END
             python3 -m venv v && v/bin/pip install --no-index ./library-1.0-py3-none-any.whl && v/bin/python -c 'import library; print(library.answer)'",
        );
        assert!(output.contains("42"), "{tier}: {output}");
    }
}

const PYTHON: &str = "apt-get install python3 python3-venv";

#[test]
fn pip_installs_pytest_from_its_registry_and_it_runs() {
    if !needs("python3", &["-c", "import venv, ensurepip"], PYTHON)
        || !reaches(
            "python3",
            &[
                "-m",
                "pip",
                "install",
                "--dry-run",
                "--ignore-installed",
                "iniconfig",
            ],
        )
    {
        return;
    }
    for tier in TIERS {
        let mut bench = Bench::online(tier);
        let output = bench.run(
            "python3 -m venv v && v/bin/pip install -q pytest 2>&1
             printf 'def test_it(tmp_path):\\n    (tmp_path / \"x\").write_text(\"y\")\\n' > test_it.py
             v/bin/python -m pytest -q",
        );
        assert!(output.contains("1 passed"), "{tier}: {output}");
    }
}

#[test]
fn make_and_a_compiler_build_a_program() {
    let install = "apt-get install build-essential";
    if !needs("make", &["--version"], install) || !needs("cc", &["--version"], install) {
        return;
    }
    for tier in TIERS {
        let mut bench = Bench::start(tier, |workspace| {
            fs::write(
                workspace.scope().join("p.c"),
                "#include <stdio.h>\nint main(void) { printf(\"%d\\n\", 6 * 7); return 0; }\n",
            )
            .unwrap();
            fs::write(workspace.scope().join("Makefile"), "p: p.c\n\tcc -o p p.c\n").unwrap();
        });
        assert!(bench.run("make -s && ./p").contains("42"), "{tier}");
    }
}

#[test]
fn go_builds_a_program() {
    if !needs("go", &["version"], "apt-get install golang-go") {
        return;
    }
    for tier in TIERS {
        let mut bench = Bench::start(tier, |workspace| {
            let project = workspace.scope();
            fs::write(project.join("go.mod"), "module p\n\ngo 1.19\n").unwrap();
            fs::write(
                project.join("p.go"),
                "package main\n\nfunc main() { println(6 * 7) }\n",
            )
            .unwrap();
        });
        assert!(bench.run("go build -o p . && ./p 2>&1").contains("42"), "{tier}");
    }
}
