//! A server behind a wall, and everything around it that it must not touch.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::{Era, Server, ServerOptions};

use super::attempt::{Attempt, Net};

/// Only what an ordinary system has: a home's programs are not for every user.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How commands are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wall {
    Full,
    Core,
    None,
}

/// Who runs the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    Current,
    /// Only possible if the current one is root.
    Nobody,
}

const NOBODY: u32 = 65534;

/// A server with its scope, and around it a home with credentials, files and a process with open doors.
pub(super) struct World {
    wall: Wall,
    user: User,
    base: TempDir,
    program: PathBuf,
    servers: BTreeMap<(Net, PathBuf), Server>,
    outside: Outside,
    /// The one port that the list allows.
    allowed: TcpListener,
    /// Whatever comes out of the wall with one of these in it is a leak.
    secrets: Vec<String>,
}

/// What an attempt did.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) escaped: Vec<String>,
    pub(super) output: String,
}

impl World {
    pub(super) fn new(wall: Wall, user: User) -> Self {
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
        let program = at("ahma_mcp");
        fs::copy(env!("CARGO_BIN_EXE_ahma_mcp"), &program).unwrap();
        fs::write(at("outside.py"), include_str!("outside.py")).unwrap();
        prepare_scope(&at("scope"));
        if user == User::Nobody {
            give_away(base.path());
            fs::copy("/bin/cat", at("scope/cat")).unwrap();
            fs::set_permissions(at("scope/cat"), fs::Permissions::from_mode(0o4755)).unwrap();
            fs::write(at("root-secret"), named(&secrets, "root")).unwrap();
            fs::set_permissions(at("root-secret"), fs::Permissions::from_mode(0o600)).unwrap();
        }
        let outside = Outside::start(&at("outside.py"), &at("doors"), user, named(&secrets, "memory"));
        let mut world = Self {
            wall,
            user,
            program,
            servers: BTreeMap::new(),
            outside,
            allowed: TcpListener::bind("127.0.0.1:0").unwrap(),
            secrets,
            base,
        };
        let printed = named(&world.secrets, "printed").to_owned();
        let scope = world.scope();
        world.call(Net::Open, &scope, &format!("echo {printed}"));
        world
    }

    pub(super) fn scope(&self) -> PathBuf {
        self.base.path().join("scope")
    }

    /// Makes the attempt and looks at everything afterwards.
    pub(super) fn make(&mut self, number: usize, attempt: &Attempt) -> Findings {
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
        let words = |script: &str| format!("cd {} 2>/dev/null\n{script}", scope.display());
        let variables = self.variables(&out, &scope, &name);
        self.as_user(&words(attempt.before), &variables);
        if !attempt.meanwhile.is_empty() {
            self.call(attempt.network, &scope, "true");
            self.as_user(&words(attempt.meanwhile), &variables);
        }
        let before = (self.picture(&out), self.outside.state());
        // The server's number is known only once it runs.
        let server = self.server(attempt.network, &scope).pid();
        let prelude = prelude(&variables, server, number);
        let output = self.call(attempt.network, &scope, &format!("{prelude}{}", attempt.script));
        if attempt.wants_own_scope() && self.is_serving(attempt.network, &scope) {
            self.call(attempt.network, &scope, "true");
        }
        self.as_user(&words(attempt.after), &variables);
        let mut escaped = Vec::new();
        if let Some(secret) = self.secrets.iter().find(|secret| output.contains(*secret)) {
            escaped.push(format!("{secret} came out"));
        }
        if !self.is_serving(attempt.network, &scope) {
            escaped.push("the server is gone".to_owned());
        }
        let after = (self.picture(&out), self.outside.state());
        if before.0 != after.0 {
            let changed: Vec<_> = before
                .0
                .iter()
                .filter(|(path, state)| after.0.get(*path) != Some(state))
                .map(|(path, _)| path)
                .chain(after.0.keys().filter(|path| !before.0.contains_key(*path)))
                .collect();
            escaped.push(format!("changed: {changed:?}"));
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
            self.servers.retain(|(_, of), _| *of != scope);
        }
        Findings { escaped, output }
    }

    /// Runs a script through the server and returns the text of the answer.
    pub(super) fn call(&mut self, network: Net, scope: &Path, script: &str) -> String {
        let id = self.server(network, scope).request(
            "tools/call",
            json!({"name": "sandboxed_shell", "arguments": {"command": script, "timeout_seconds": 30, "execution_mode": "synchronous"}}),
        );
        let Some(server) = self.servers.get_mut(&(network, scope.to_owned())) else {
            return String::new();
        };
        // A server that an attempt killed never answers.
        let deadline = std::time::Instant::now() + test_support::PATIENCE;
        loop {
            assert!(
                std::time::Instant::now() < deadline,
                "no answer to: {script}\nits processes:\n{}\nits log:\n{}",
                processes_below(server.pid()),
                server.complaints()
            );
            if let Some(answer) = server.answer_within(id, std::time::Duration::from_millis(200)) {
                let parts = answer["result"]["content"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                return parts
                    .iter()
                    .filter_map(|part| part["text"].as_str())
                    .collect::<Vec<_>>()
                    .join("\n");
            }
            if !server.is_running() {
                return "the server died".to_owned();
            }
        }
    }

    /// Whether the allowed port was reached since the last time.
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
        let server = self.server(Net::Open, &scope);
        let mut call = |script: String| {
            let arguments =
                json!({"command": script, "execution_mode": "synchronous", "timeout_seconds": 30});
            server.request(
                "tools/call",
                json!({"name": "sandboxed_shell", "arguments": arguments}),
            )
        };
        let swap = format!(
            "for i in $(seq 150); do mkdir -p .ahma/tools; touch .ahma/tools/x; mv .ahma old$i; \
             ln -s {} .ahma; rm -f .ahma; done 2>/dev/null",
            out.display()
        );
        let mut waiting = vec![call(swap)];
        waiting.extend((0..30).map(|_| call("true".to_owned())));
        for id in waiting {
            server.answer(id);
        }
        self.call(Net::Open, &scope, "rm -rf .ahma old*");
        assert_eq!(before, self.picture(&out), "{:?}", self.wall);
    }

    fn is_serving(&mut self, network: Net, scope: &Path) -> bool {
        self.servers
            .get_mut(&(network, scope.to_owned()))
            .is_some_and(Server::is_running)
    }

    fn server(&mut self, network: Net, scope: &Path) -> &mut Server {
        let key = (network, scope.to_owned());
        if !self.servers.get_mut(&key).is_some_and(Server::is_running) {
            let server = self.start(network, scope);
            self.servers.insert(key.clone(), server);
        }
        self.servers.get_mut(&key).unwrap()
    }

    fn start(&self, network: Net, scope: &Path) -> Server {
        let port = self.allowed_port().to_string();
        let mut arguments: Vec<String> = as_user_words(self.user);
        arguments.push(self.program.display().to_string());
        arguments.extend(["--log-to-stderr".to_owned(), "--sandbox-scope".to_owned()]);
        arguments.push(scope.display().to_string());
        arguments.extend(match self.wall {
            Wall::Full => vec!["--sandbox-tier".to_owned(), "full".to_owned()],
            Wall::Core => vec!["--sandbox-tier".to_owned(), "core".to_owned()],
            Wall::None => vec!["--no-sandbox".to_owned()],
        });
        if self.wall != Wall::None {
            arguments.extend(match network {
                Net::Open => Vec::new(),
                Net::Off => vec!["--network".to_owned(), "off".to_owned()],
                Net::Loopback => vec!["--network".to_owned(), "loopback".to_owned()],
                Net::Ports => vec!["--allow-connect".to_owned(), port],
            });
        }
        // As if that user's own client had made them.
        let give_pipes = match self.user {
            User::Current => String::new(),
            User::Nobody => format!("chown {NOBODY} /proc/self/fd/0 /proc/self/fd/1;"),
        };
        // Started with a descriptor that its parent forgot to close.
        let inherited = self.base.path().join("inherited");
        let mut words = vec![
            "-c".to_owned(),
            format!("{give_pipes} exec 7<\"$0\"; exec \"$@\""),
            inherited.display().to_string(),
        ];
        words.extend(arguments);
        ServerOptions::bare("/bin/sh", scope)
            .args(words)
            .env("HOME", self.base.path().join("home"))
            .env("PATH", format!("{}:{PATH}", scope.join("bin").display()))
            .env("TMPDIR", self.base.path().join("tmp"))
            .env("API_TOKEN", named(&self.secrets, "server"))
            .open(Era::Legacy)
    }

    fn variables(&self, out: &Path, scope: &Path, name: &str) -> Vec<(String, String)> {
        let fact = |name: &str| match &self.outside.facts[name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let base = self.base.path();
        [
            ("OUT", out.display().to_string()),
            ("SCOPE", scope.display().to_string()),
            ("DOORS", base.join("doors").display().to_string()),
            ("ROOT_SECRET", base.join("root-secret").display().to_string()),
            ("SUID", base.join("scope/cat").display().to_string()),
            ("NAME", name.to_owned()),
            ("PID", fact("pid")),
            ("ADDRESS", fact("address")),
            ("HELD", fact("held")),
            ("SHM", fact("shm")),
            ("QUEUE", fact("queue")),
            ("ABSTRACT", fact("abstract")),
            ("TCP", fact("tcp")),
            ("UDP", fact("udp")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// What somebody outside does: no wall, the same user.
    fn as_user(&self, script: &str, variables: &[(String, String)]) {
        let mut words = as_user_words(self.user);
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

    /// Files for one attempt to set upon. Named so that the tripwire could take them for its own.
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
    fn picture(&self, out: &Path) -> BTreeMap<PathBuf, String> {
        let mut picture = BTreeMap::new();
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
fn prelude(variables: &[(String, String)], server: i32, number: usize) -> String {
    let mut prelude: String = variables
        .iter()
        .map(|(name, value)| format!("export {name}='{value}'\n"))
        .collect();
    prelude.push_str(&format!(
        "export SRV={server}\nmkdir -p $SCOPE/w/{number} && cd $SCOPE/w/{number}\n"
    ));
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

/// What hangs, and where in the kernel.
fn processes_below(pid: i32) -> String {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let mut text = format!(
        "{pid} {} {}\n{}",
        read("comm").trim(),
        read("wchan"),
        read("stack")
    );
    for child in read(&format!("task/{pid}/children")).split_whitespace() {
        text.push_str(&processes_below(child.parse().unwrap()));
    }
    text
}

fn as_user_words(user: User) -> Vec<String> {
    match user {
        User::Current => vec!["env".to_owned()],
        User::Nobody => ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            .map(str::to_owned)
            .into(),
    }
}

fn give_away(path: &Path) {
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if fs::symlink_metadata(path).unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give_away(&entry.unwrap().path());
        }
    }
}

fn describe(path: &Path, picture: &mut BTreeMap<PathBuf, String>) {
    let Ok(found) = fs::symlink_metadata(path) else {
        return;
    };
    // The server keeps its own log and state there.
    if path.ends_with(".cache") || path.ends_with(".local") {
        return;
    }
    let mut attributes = [0_u8; 512];
    let length = rustix::fs::llistxattr(path, &mut attributes[..]).unwrap_or(0);
    let content = if found.is_file() {
        fs::read(path).unwrap_or_default()
    } else {
        Vec::new()
    };
    // A home gets a directory for the log; its own time says nothing then.
    let time = if found.is_dir() {
        (0, 0)
    } else {
        (found.mtime(), found.mtime_nsec())
    };
    let text = format!(
        "{:o} {}:{} {} {time:?} {:?} {:?}",
        found.mode(),
        found.uid(),
        found.gid(),
        if found.is_dir() { 0 } else { found.nlink() },
        String::from_utf8_lossy(&content),
        &attributes[..length],
    );
    picture.insert(path.to_owned(), text);
    if found.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            describe(&entry.path(), picture);
        }
    }
}

/// The process outside.
struct Outside {
    process: Child,
    /// Closed to tell it to tidy up and end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    facts: Value,
}

impl Outside {
    fn start(program: &Path, directory: &Path, user: User, secret: &str) -> Self {
        let mut words = as_user_words(user);
        words.extend(["python3".to_owned(), program.display().to_string()]);
        let mut process = Command::new("/usr/bin/env")
            .args(words)
            .arg(directory)
            .env_clear()
            .env("PATH", PATH)
            .env("OUTSIDE_SECRET", secret)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut outside = Self {
            process,
            input: Some(input),
            output: BufReader::new(output),
            facts: Value::Null,
        };
        outside.facts = outside.read();
        assert!(outside.facts["pid"].is_number(), "python3 is needed at {PATH}");
        outside
    }

    /// What it has noticed, or null if it is dead.
    fn state(&mut self) -> Value {
        if let Some(input) = &mut self.input {
            input.write_all(b"how are you?\n").ok();
        }
        self.read()
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).ok();
        serde_json::from_str(&line).unwrap_or(Value::Null)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.input = None;
        self.process.wait().ok();
    }
}
