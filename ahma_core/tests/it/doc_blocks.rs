//! The blocks of a document: prepared, run and checked.
//!
//! Comments directly above a block say what else there is to know about it:
//! `<!-- not run: WHY -->` (needs what a test cannot have), `<!-- file: PATH -->` (the block is written there first),
//! `<!-- file: PATH, below "KEY" -->` (its lines are put below that line of the file),
//! `<!-- edit: PATH, FROM => TO -->` (one replacement in a file), `<!-- served by: COMMAND -->` (the block is one script,
//! run while that server listens), `<!-- while it runs: COMMAND -->` (a client of that server runs it meanwhile; its id stands
//! for the word OPERATION, that of its session for SESSION).
//! The blocks of a document share one empty project, in their order.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use ahma_core::mtdf::{ProblemSeverity, check_file};
use jsonc_parser::ParseOptions;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use test_support::{Client, Workspace, session_at, wait_for};

#[derive(Debug)]
pub(crate) struct Block {
    /// `README.md:12`
    pub(crate) place: String,
    pub(crate) language: String,
    pub(crate) remarks: Vec<String>,
    pub(crate) text: String,
}

pub(crate) fn blocks(document: &Path) -> Vec<Block> {
    let text = fs::read_to_string(document).expect("readable");
    let name = document
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let mut blocks = Vec::new();
    let mut remarks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside = lines
                .by_ref()
                .map(|(_, line)| line)
                .take_while(|line| !line.starts_with("```"));
            blocks.push(Block {
                place: format!("{name}:{}", index + 1),
                language: language.to_owned(),
                remarks: std::mem::take(&mut remarks),
                text: inside.flat_map(|line| [line, "\n"]).collect(),
            });
        } else if let Some(remark) = line
            .strip_prefix("<!-- ")
            .and_then(|rest| rest.strip_suffix(" -->"))
        {
            remarks.push(remark.to_owned());
        } else if !line.is_empty() {
            remarks.clear();
        }
    }
    blocks
}

impl Block {
    /// There was something to run.
    pub(crate) fn check(&self, project: &Project) -> bool {
        for remark in &self.remarks {
            self.prepare(project, remark);
        }
        let skipped = self.remarks.iter().any(|remark| remark.starts_with("not run: "));
        match self.language.as_str() {
            "sh" | "bash" if !skipped => self.run_script(project),
            "console" if !skipped => self.run_session(project),
            "json" | "jsonc" => {
                self.check_json();
                false
            }
            "toml" => {
                self.text
                    .parse::<toml_edit::DocumentMut>()
                    .unwrap_or_else(|error| panic!("{}: {error}", self.place));
                false
            }
            // Run in those proxies by the tests of the bridge and of the cluster.
            "nginx" | "haproxy" => false,
            "sh" | "bash" | "console" | "text" | "" => false,
            other => panic!("{}: no check for blocks of `{other}`", self.place),
        }
    }

    fn prepare(&self, project: &Project, remark: &str) {
        if let Some(edit) = remark.strip_prefix("edit: ") {
            let (file, edit) = edit.split_once(", ").expect("a file and an edit");
            let (from, to) = edit.split_once(" => ").expect("two texts");
            let text = project.read(file);
            assert!(text.contains(from), "{}: {file} has no {from}", self.place);
            project.write(file, &text.replacen(from, to, 1));
        } else if let Some(file) = remark.strip_prefix("file: ") {
            match file.split_once(", below ") {
                None => project.write(file, &self.text),
                Some((file, key)) => {
                    let text = project.read(file);
                    let line = text
                        .lines()
                        .find(|line| line.trim_start().starts_with(key))
                        .expect("the line");
                    project.write(
                        file,
                        &text.replacen(line, &format!("{line}\n{}", self.text.trim_end()), 1),
                    );
                }
            }
        }
    }

    /// Each line must succeed.
    fn run_script(&self, project: &Project) -> bool {
        if let Some(server) = self.remark("served by: ") {
            self.serve(project, server, |port| {
                let address = format!("127.0.0.1:{port}");
                let script = self.text.replace("127.0.0.1:3000", &address);
                match self.remark("while it runs: ") {
                    None => self.run_command(project, &script),
                    Some(command) => {
                        let work = RunningWork::start(project, &address, command);
                        self.run_command(project, &work.named_in(&script));
                    }
                }
            });
            return true;
        }
        for line in self.text.replace("\\\n", " ").lines() {
            let command = line.split("  #").next().unwrap_or_default().trim();
            if command.is_empty() || command.starts_with('#') || !project.has_program(command) {
                continue;
            }
            if command.contains("--mode http") || command.starts_with("ahma_http_bridge ") {
                self.serve(project, command, |_| {});
                continue;
            }
            self.run_command(project, command);
        }
        true
    }

    fn remark(&self, start: &str) -> Option<&str> {
        self.remarks.iter().find_map(|remark| remark.strip_prefix(start))
    }

    fn run_command(&self, project: &Project, command: &str) {
        let output = project.shell(command).output().expect("bash starts");
        assert!(
            output.status.success(),
            "{}: `{command}` ended with {}\n{}{}",
            self.place,
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// A server is started, seen to listen, used, and told to end.
    fn serve(&self, project: &Project, command: &str, using: impl FnOnce(u16)) {
        let mut words: Vec<&str> = command.split_whitespace().collect();
        // Any port: the one in the text may be taken.
        if let Some(port) = words.iter().position(|word| *word == "--http-port") {
            words[port + 1] = "0";
        }
        let log = project.directory().join("stderr.txt");
        let mut child = project
            .shell(&format!("exec {}", words.join(" ")))
            .env("AHMA_HTTP_PORT", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).expect("writable"))
            .spawn()
            .expect("bash starts");
        let port = wait_for(&format!("{}: `{command}` to listen", self.place), || {
            let said = fs::read_to_string(&log).unwrap_or_default();
            let ended = child.try_wait().expect("ours");
            assert!(
                ended.is_none(),
                "{}: `{command}` ended with {ended:?}: {said}",
                self.place
            );
            let (_, address) = said.split_once("listening on http://127.0.0.1:")?;
            address.split_once('/')?.0.parse().ok()
        });
        using(port);
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it lives");
        child.wait().expect("it ends");
        fs::remove_file(&log).expect("ours");
    }

    /// Commands after `$ `, each with what it prints; `…` alone on a line stands for any lines.
    fn run_session(&self, project: &Project) -> bool {
        let mut steps: Vec<(&str, String)> = Vec::new();
        for line in self.text.lines() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push((command, String::new())),
                (None, Some((_, expected))) => expected.push_str(&format!("{line}\n")),
                (None, None) => panic!("{}: output before any command", self.place),
            }
        }
        for (command, expected) in steps {
            if !project.has_program(command) {
                continue;
            }
            let output = project
                .shell(&format!("exec 2>&1; {command}"))
                .output()
                .expect("bash starts");
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                fits(&printed, &expected),
                "{}: `{command}` prints\n{printed}\ninstead of\n{expected}",
                self.place
            );
        }
        true
    }

    fn check_json(&self) {
        let parse = |text: &str| -> Result<Value, _> {
            jsonc_parser::parse_to_serde_value(text, &ParseOptions::default())
        };
        // Some blocks are lines of an object.
        let value = if self.text.trim_start().starts_with('{') {
            parse(&self.text)
        } else {
            parse(&format!("{{{}}}", self.text))
        };
        let value = value.unwrap_or_else(|error| panic!("{}: {error}", self.place));
        let tool =
            |stream: &Value| json!({"name": "x", "command": "x", "description": "X.", "stream": stream});
        if value["command"].is_string() && value["description"].is_string() {
            self.check_tool(&value);
        } else if value["emit"].is_string() {
            self.check_tool(&tool(&json!({ "rules": [value] })));
        } else if value["rules"].is_array() {
            self.check_tool(&tool(&value));
        }
        for servers in [&value["servers"], &value["mcpServers"]] {
            for (name, entry) in servers.as_object().into_iter().flatten() {
                assert!(
                    entry["command"].is_string() || entry["url"].is_string(),
                    "{}: {name} says neither command nor url",
                    self.place
                );
                assert!(
                    name != "Ahama" || entry["command"] == "ahma_mcp",
                    "{}: {entry}",
                    self.place
                );
            }
        }
    }

    fn check_tool(&self, tool: &Value) {
        let problems = check_file(&self.place, &tool.to_string()).problems;
        let errors: Vec<_> = problems
            .iter()
            .filter(|problem| problem.severity == ProblemSeverity::Error)
            .collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", self.place);
    }
}

/// A client's work on a server, for commands that look after it.
struct RunningWork {
    _client: Client,
    operation: String,
    session: String,
}

impl RunningWork {
    fn start(project: &Project, address: &str, command: &str) -> Self {
        let mut client = session_at(address);
        let arguments = json!({"command": command, "execution_mode": "asynchronous"});
        let started = client.tool("sandboxed_shell", arguments);
        let operation = started["_meta"]["ahma/operation"]["operation_id"].as_str();
        let operation = operation.unwrap_or_else(|| panic!("{started}")).to_owned();
        let list = format!("ahma_mcp admin sessions --admin-url http://{address} --format json");
        let listed = project.shell(&list).output().expect("bash starts");
        let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
        let session = listed["sessions"][0]["id"].as_str();
        Self {
            _client: client,
            operation,
            session: session.unwrap_or_else(|| panic!("{listed}")).to_owned(),
        }
    }

    fn named_in(&self, script: &str) -> String {
        script
            .replace("OPERATION", &self.operation)
            .replace("SESSION", &self.session)
    }
}

/// True if a text matches a pattern with `…` lines.
fn fits(text: &str, pattern: &str) -> bool {
    let mut rest = text;
    for (index, part) in pattern.split("…\n").enumerate() {
        match rest.find(part) {
            Some(0) => rest = &rest[part.len()..],
            Some(at) if index > 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    rest.trim().is_empty() || pattern.ends_with("…\n")
}

/// An empty project, with our programs on PATH.
pub(crate) struct Project {
    workspace: Workspace,
    path: String,
    programs: PathBuf,
}

impl Project {
    pub(crate) fn new() -> Self {
        let programs = Path::new(env!("CARGO_BIN_EXE_ahma_mcp"))
            .parent()
            .expect("a directory")
            .to_owned();
        let path = std::env::var("PATH").expect("a PATH");
        let workspace = Workspace::new();
        // Something that no command may show.
        fs::create_dir(workspace.home().join(".ssh")).expect("writable");
        fs::write(workspace.home().join(".ssh/id_ed25519"), "secret").expect("writable");
        // Something that no command may change, though its user may.
        fs::write(workspace.home().join(".bashrc"), "").expect("writable");
        Self {
            workspace,
            path: format!("{}:{path}", programs.display()),
            programs,
        }
    }

    fn directory(&self) -> PathBuf {
        self.workspace.scope()
    }

    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        command
            .args(["-euo", "pipefail", "-c", script])
            .current_dir(self.directory())
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.workspace.home())
            .stdin(Stdio::null());
        command
    }

    /// The programs of other crates are there only if the whole workspace was built.
    pub(crate) fn has_program(&self, command: &str) -> bool {
        let name = command.split_whitespace().next().unwrap_or_default();
        let ours = name.starts_with("ahma_");
        if !ours || self.programs.join(name).exists() {
            return true;
        }
        test_support::skip(&format!(
            "`{command}` needs {name}; hint: cargo build --workspace --bins"
        ));
        false
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.directory().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.directory().join(file);
        fs::create_dir_all(path.parent().expect("it has one")).expect("writable");
        fs::write(path, text).expect("writable");
    }
}
