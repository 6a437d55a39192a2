//! A server in a sandbox, and everything around it that it must not touch.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::json;
use tempfile::TempDir;
use test_support::{HttpServer, ServerOptions};

use crate::seatbelt;

use super::{
    attempt::{Attempt, Net},
    caller::{Caller, Callers, Way},
    outside::Outside,
    picture::{Picture, describe, differences},
};

/// Only what an ordinary system has: a home's programs are not for every user.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Confinement of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Confinement {
    Full,
    Core,
    /// As on macOS, behind a stand-in for `sandbox-exec`.
    Seatbelt,
    None,
}

/// User who runs the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    Current,
    /// Only possible if the current one is root.
    Nobody,
}

const NOBODY: u32 = 65534;

impl User {
    /// Words before a program's name that run it as this user.
    pub(super) fn words(self) -> Vec<String> {
        match self {
            Self::Current => vec!["env".to_owned()],
            Self::Nobody => ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
                .map(str::to_owned)
                .into(),
        }
    }
}

/// A server with its scope, and around it a home with credentials, files and a process with open doors.
pub(super) struct World {
    confinement: Confinement,
    user: User,
    base: TempDir,
    program: PathBuf,
    callers: Callers,
    outside: Outside,
    /// The one port that the list allows.
    allowed: TcpListener,
    /// Whatever comes out of the sandbox with one of these in it is a leak.
    secrets: Vec<String>,
    /// Number of attempts made.
    made: usize,
}

/// Effect of an attempt.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) escaped: Vec<String>,
    pub(super) output: String,
}

impl World {
    pub(super) fn new(confinement: Confinement, user: User, way: Way) -> Self {
        let base = tempfile::Builder::new().prefix("ahma-escape").tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        let mut secrets = Vec::new();
        let mut secret = |what: &str| {
            secrets.push(format!(
                "tok-{what}-{:08x}",
                secrets.len() * 7919 + std::process::id() as usize
            ));
            secrets.last().unwrap().clone()
        };
        for directory in [
            "scope",
            "tmp",
            "doors",
            "outside",
            "home/bin",
            "home/.cargo/registry",
        ] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        for (number, path) in [
            ".ssh/id_ed25519",
            ".cargo/credentials.toml",
            ".npmrc",
            ".pypirc",
            ".git-credentials",
            ".aws/credentials",
            ".netrc",
        ]
        .iter()
        .enumerate()
        {
            let path = at("home").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, secret(&format!("credential{number}"))).unwrap();
        }
        fs::write(at("home/.gitconfig"), "[user]\n\tname = x\n").unwrap();
        fs::write(at("home/.bashrc"), "").unwrap();
        fs::write(at("home/.cargo/registry/cached"), "crate").unwrap();
        fs::write(at("doors/held"), secret("held")).unwrap();
        fs::write(at("inherited"), secret("inherited")).unwrap();
        for name in ["memory", "server", "printed", "root", "file"] {
            secret(name);
        }
        fs::write(at("outside.py"), include_str!("outside.py")).unwrap();
        prepare_scope(&at("scope"));
        if user == User::Nobody {
            give_away(base.path());
            fs::copy("/bin/cat", at("scope/cat")).unwrap();
            fs::set_permissions(at("scope/cat"), fs::Permissions::from_mode(0o4755)).unwrap();
            fs::write(at("root-secret"), named(&secrets, "root")).unwrap();
            fs::set_permissions(at("root-secret"), fs::Permissions::from_mode(0o600)).unwrap();
        }
        let program = at("ahma_mcp");
        let built = env!("CARGO_BIN_EXE_ahma_mcp");
        // A copy that is open to be written in a process another test just forks could not be executed. The program is not
        // given away: by another name it is the one that was built.
        if fs::hard_link(built, &program).is_err() {
            fs::copy(built, &program).unwrap();
        }
        let outside = Outside::start(&at("outside.py"), &at("doors"), user, named(&secrets, "memory"));
        Self {
            confinement,
            user,
            program,
            callers: Callers::new(way),
            outside,
            allowed: TcpListener::bind("127.0.0.1:0").unwrap(),
            secrets,
            made: 0,
            base,
        }
    }

    /// Starts the server, and has it print a secret that no command may read again.
    pub(super) fn open(&mut self) {
        let printed = named(&self.secrets, "printed").to_owned();
        let scope = self.scope();
        self.call(Net::Open, &scope, &format!("echo {printed}"));
    }

    /// Message of a server that does not start.
    pub(super) fn refusal(&self) -> String {
        let words = self.user.words();
        let output = Command::new("/usr/bin/env")
            .args(words)
            .arg(&self.program)
            .args(["--sandbox-report", "--sandbox-tier", "core", "--sandbox-scope"])
            .arg(self.scope())
            .env("HOME", self.base.path().join("home"))
            .env("TMPDIR", self.base.path().join("tmp"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub(super) fn scope(&self) -> PathBuf {
        self.base.path().join("scope")
    }

    /// Makes the attempt and looks at everything afterwards.
    pub(super) fn make(&mut self, attempt: &Attempt) -> Findings {
        let only_reads = self.callers.way == Way::ReadOnly;
        // Its network is closed, whatever is open to the other.
        let network = if only_reads { Net::Open } else { attempt.network };
        self.made += 1;
        let number = self.made;
        let name = format!("ahma-escape-{}-{number}", std::process::id());
        let out = self.base.path().join("outside").join(number.to_string());
        let scope = if attempt.wants_own_scope() {
            let own = self.base.path().join(format!("scope{number}"));
            fs::create_dir(&own).unwrap();
            prepare_scope(&own);
            own
        } else {
            self.scope()
        };
        self.furnish(&out);
        if self.user == User::Nobody {
            give_away(&out);
            if attempt.wants_own_scope() {
                give_away(&scope);
            }
        }
        let mut variables = self.variables(&out, &scope, &name);
        self.as_user_in(&scope, attempt.before, &variables);
        if !attempt.meanwhile.is_empty() {
            self.call(network, &scope, "true");
            self.as_user_in(&scope, attempt.meanwhile, &variables);
        }
        let before = (self.picture(&out), self.outside.state());
        // Their numbers are known only once they run.
        let (server, front) = self.caller(network, &scope).processes();
        variables
            .extend([("SRV", server), ("FRONT", front)].map(|(name, pid)| (name.into(), pid.to_string())));
        let script = prelude(&variables, number, only_reads) + attempt.script;
        let scope_before = self.scope_picture(&scope);
        let output = self.call(network, &scope, &script);
        let scope_after = self.scope_picture(&scope);
        if attempt.wants_own_scope() && self.callers.is_serving(network, &scope) {
            self.call(network, &scope, "true");
        }
        self.as_user_in(&scope, attempt.after, &variables);
        let mut escaped = Vec::new();
        if let Some(secret) = self.secrets.iter().find(|secret| output.contains(*secret)) {
            escaped.push(format!("{secret} came out"));
        }
        if !self.callers.is_serving(network, &scope) {
            escaped.push("the server is gone".to_owned());
        }
        let after = (self.picture(&out), self.outside.state());
        if before.0 != after.0 {
            escaped.push(format!("changed: {:?}", differences(&before.0, &after.0)));
        }
        if only_reads && scope_before != scope_after {
            let changed = differences(&scope_before, &scope_after);
            escaped.push(format!("changed in the scope: {changed:?}"));
        }
        if before.1 != after.1 {
            escaped.push(format!("the process outside: {} became {}", before.1, after.1));
            self.restart_outside();
        }
        if let Some(path) = attempt.plants
            && fs::read_to_string(scope.join(path)).is_ok_and(|text| text.contains("evil"))
        {
            escaped.push(format!("{path} was planted"));
        }
        if attempt.says.is_some_and(|text| output.contains(text)) {
            escaped.push("it said so".to_owned());
        }
        if let Some(path) = attempt.makes {
            let path = path.replace("NAME", &name);
            if fs::remove_file(&path).is_ok() {
                escaped.push(format!("{path} was made"));
            }
        }
        if attempt.wants_own_scope() {
            self.callers.end(&scope);
        }
        Findings { escaped, output }
    }

    /// Runs a script through the server and returns the text of the answer.
    pub(super) fn call(&mut self, network: Net, scope: &Path, script: &str) -> String {
        let only_reads = self.callers.way == Way::ReadOnly;
        let caller = self.caller(network, scope);
        if only_reads {
            caller.run_read_only(script)
        } else {
            caller.run(script)
        }
    }

    fn scope_picture(&self, scope: &Path) -> Picture {
        let mut picture = Picture::new();
        if self.callers.way == Way::ReadOnly {
            describe(scope, &mut picture);
        }
        picture
    }

    /// True if the allowed port was reached since the last time.
    pub(super) fn allowed_was_reached(&self) -> bool {
        self.allowed.set_nonblocking(true).unwrap();
        self.allowed.accept().is_ok()
    }

    pub(super) fn allowed_port(&self) -> u16 {
        self.allowed.local_addr().unwrap().port()
    }

    /// One command swaps a directory on the way to a watched name while others come to their end.
    pub(super) fn race(&mut self, round: usize) {
        let out = self.base.path().join("outside").join(format!("race{round}"));
        self.furnish(&out);
        let before = self.picture(&out);
        let scope = self.scope();
        let swap = format!(
            "for i in $(seq 150); do mkdir -p .ahma/tools; touch .ahma/tools/x; mv .ahma old$i; \
             ln -s {} .ahma; rm -f .ahma; done 2>/dev/null",
            out.display()
        );
        let caller = self.caller(Net::Open, &scope);
        let mut waiting = vec![caller.start(&swap)];
        waiting.extend((0..30).map(|_| caller.start("true")));
        caller.tool("await", json!({"operation_ids": waiting, "timeout_seconds": 50}));
        self.call(Net::Open, &scope, "rm -rf .ahma old*");
        assert_eq!(before, self.picture(&out), "{:?}", self.confinement);
    }

    /// Ends every server and returns what is left of their private directories.
    pub(super) fn leftovers(&mut self) -> Vec<PathBuf> {
        self.callers.leave();
        let entries = |directory: &Path| {
            let listed = fs::read_dir(directory).unwrap();
            listed.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
        };
        let bases = entries(&self.base.path().join("tmp"));
        assert!(!bases.is_empty(), "private directories are made elsewhere");
        bases.iter().flat_map(|base| entries(base)).collect()
    }

    /// The running server for a network and a scope.
    pub(super) fn caller(&mut self, network: Net, scope: &Path) -> &mut Caller {
        let options = self.options(network, scope);
        self.callers.get(network, scope, || options)
    }

    /// The process that listens in front of it.
    pub(super) fn front(&mut self) -> &mut HttpServer {
        let scope = self.scope();
        self.caller(Net::Open, &scope);
        self.callers.front(Net::Open, &scope)
    }

    /// Makes a directory outside that belongs to the user.
    pub(super) fn outside(&self, name: &str) -> PathBuf {
        let directory = self.base.path().join("outside").join(name);
        fs::create_dir_all(&directory).unwrap();
        if self.user == User::Nobody {
            give_away(&directory);
        }
        directory
    }

    fn options(&self, network: Net, scope: &Path) -> ServerOptions {
        let port = self.allowed_port().to_string();
        let mut arguments = self.user.words();
        arguments.push(self.program.display().to_string());
        arguments.extend(["--log-to-stderr".to_owned(), "--sandbox-scope".to_owned()]);
        arguments.push(scope.display().to_string());
        arguments.extend(match self.confinement {
            Confinement::Full => vec!["--sandbox-tier".to_owned(), "full".to_owned()],
            Confinement::Core => vec!["--sandbox-tier".to_owned(), "core".to_owned()],
            Confinement::Seatbelt => seatbelt::flags().into(),
            Confinement::None => vec!["--no-sandbox".to_owned()],
        });
        if self.confinement != Confinement::None {
            arguments.extend(match network {
                Net::Open => Vec::new(),
                Net::Off => vec!["--network".to_owned(), "off".to_owned()],
                Net::Loopback => vec!["--network".to_owned(), "loopback".to_owned()],
                Net::Ports => vec!["--allow-connect".to_owned(), port],
            });
        }
        // Started with a descriptor that its parent forgot to close.
        let inherited = self.base.path().join("inherited");
        let mut words = vec![
            "-c".to_owned(),
            "exec 7<\"$0\"; exec \"$@\"".to_owned(),
            inherited.display().to_string(),
        ];
        words.extend(arguments);
        ServerOptions::bare("/bin/sh", scope)
            .args(words)
            .env("HOME", self.base.path().join("home"))
            .env("PATH", format!("{}:{PATH}", scope.join("bin").display()))
            .env("TMPDIR", self.base.path().join("tmp"))
            .env("API_TOKEN", named(&self.secrets, "server"))
    }

    fn variables(&self, out: &Path, scope: &Path, name: &str) -> Vec<(String, String)> {
        let base = self.base.path();
        let own = [
            ("OUT", out.display().to_string()),
            ("SCOPE", scope.display().to_string()),
            ("DOORS", base.join("doors").display().to_string()),
            ("ROOT_SECRET", base.join("root-secret").display().to_string()),
            ("SUID", base.join("scope/cat").display().to_string()),
            ("NAME", name.to_owned()),
        ];
        own.map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .chain(self.outside.facts())
            .collect()
    }

    /// The same in a directory, if there is anything to do.
    fn as_user_in(&self, directory: &Path, script: &str, variables: &[(String, String)]) {
        if !script.is_empty() {
            self.as_user(
                &format!("cd {} 2>/dev/null\n{script}", directory.display()),
                variables,
            );
        }
    }

    /// Runs a script as the same user without a sandbox.
    pub(super) fn as_user(&self, script: &str, variables: &[(String, String)]) {
        let mut words = self.user.words();
        words.extend(["bash".to_owned(), "-c".to_owned(), script.to_owned()]);
        Command::new("/usr/bin/env")
            .args(words)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.base.path().join("tmp"))
            .envs(variables.iter().cloned())
            .current_dir(self.base.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
    }

    /// Files for one attempt to set upon. Named so that the guard could take them for its own.
    fn furnish(&self, out: &Path) {
        for directory in ["empty", "tools", "hooks", "info"] {
            fs::create_dir_all(out.join(directory)).unwrap();
        }
        fs::write(out.join("secret"), named(&self.secrets, "file")).unwrap();
        fs::write(out.join("victim"), "untouched").unwrap();
        fs::write(out.join("tools/mine.json"), "untouched").unwrap();
        fs::write(out.join("hooks/mine"), "untouched").unwrap();
        fs::write(out.join("config"), "untouched").unwrap();
    }

    /// Everything outside that an attempt could have changed.
    fn picture(&self, out: &Path) -> Picture {
        let mut picture = Picture::new();
        describe(out, &mut picture);
        describe(&self.base.path().join("home"), &mut picture);
        picture
    }

    fn restart_outside(&mut self) {
        let base = self.base.path();
        let secret = named(&self.secrets, "memory");
        self.outside = Outside::start(&base.join("outside.py"), &base.join("doors"), self.user, secret);
    }
}

/// The variables of every script, and a directory of its own to work in.
fn prelude(variables: &[(String, String)], number: usize, only_reads: bool) -> String {
    let mut prelude: String = variables
        .iter()
        .map(|(name, value)| format!("export {name}='{value}'\n"))
        .collect();
    let place = if only_reads { "$TMPDIR" } else { "$SCOPE" };
    prelude.push_str(&format!("mkdir -p {place}/w/{number} && cd {place}/w/{number}\n"));
    prelude
}

fn named<'a>(secrets: &'a [String], name: &str) -> &'a str {
    let start = format!("tok-{name}-");
    secrets.iter().find(|secret| secret.starts_with(&start)).unwrap()
}

/// A project as many are: a repository and an environment file.
fn prepare_scope(scope: &Path) {
    let made = Command::new("git")
        .args(["init", "-q"])
        .arg(scope)
        .status()
        .unwrap();
    assert!(made.success());
    fs::write(scope.join(".envrc"), "export GOOD=1\n").unwrap();
}

fn give_away(path: &Path) {
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if fs::symlink_metadata(path).unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give_away(&entry.unwrap().path());
        }
    }
}
