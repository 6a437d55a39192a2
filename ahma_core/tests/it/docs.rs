//! The documentation as a test: every command in it is run, every example is checked, every message exists.
//!
//! Comments directly above a block say what else there is to know about it:
//! `<!-- not run: WHY -->` (needs what a test cannot have), `<!-- file: PATH -->` (the block is written there first),
//! `<!-- file: PATH, below "KEY" -->` (its lines are put below that line of the file),
//! `<!-- edit: PATH, FROM => TO -->` (one replacement in a file), `<!-- served by: COMMAND -->` (the block is one script,
//! run while that server listens).
//! The blocks of a document share one empty project, in their order.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use ahma_core::mtdf::{ProblemSeverity, check_file};
use base64::Engine as _;
use jsonc_parser::ParseOptions;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use test_support::{Workspace, wait_for};

#[test]
fn commands_and_examples_in_the_documentation_work() {
    let mut blocks_run = 0;
    for document in documents() {
        let project = Project::new();
        for block in blocks(&document) {
            blocks_run += usize::from(block.check(&project));
        }
    }
    assert!(blocks_run > 10, "only {blocks_run} blocks were found to run");
}

/// What a test cannot have: servers elsewhere, a toolchain in this empty home, a pager, a trail with something in it.
const NOT_RUN: [&str; 6] = ["://", "jira", "my-server", "cargo_", "man -l", "audit verify"];

#[test]
fn examples_in_every_help_work() {
    let mut commands_run = 0;
    for program in [
        "ahma_mcp",
        "ahma_mcp init",
        "ahma_mcp packs",
        "ahma_mcp doctor",
        "ahma_mcp run",
        "ahma_mcp login",
        "ahma_mcp logout",
        "ahma_mcp token new",
        "ahma_mcp audit verify",
        "ahma_mcp completions",
        "ahma_mcp man",
        "ahma_validate",
        "ahma_list_tools",
        "ahma_http_bridge",
        "generate_tool_schema",
    ] {
        let project = Project::new();
        let own = match program {
            "ahma_validate" => {
                "cp .ahma/tools/rg.json my-tool.json; cp -r .ahma/tools tools; echo a:1:b > run.txt"
            }
            _ => "echo '{\"servers\": {}}' > mcp.json",
        };
        let prepare = &format!(
            "git init -q; git config user.name me; git config user.email me@example.org; \
             git commit -q --allow-empty -m first; mkdir ~/project; ahma_mcp init; {own}"
        );
        let prepared = project.shell(prepare).output().expect("bash starts");
        assert!(prepared.status.success(), "{prepared:?}");
        if !project.has_program(program) {
            continue;
        }
        let help = project
            .shell(&format!("{program} --help"))
            .output()
            .expect("bash starts");
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        let commands: Vec<&str> = help.lines().filter_map(example).collect();
        assert!(!commands.is_empty(), "{program} --help has no examples:\n{help}");
        let commands: Vec<&str> = commands
            .into_iter()
            .filter(|command| !NOT_RUN.iter().any(|words| command.contains(words)))
            .collect();
        commands_run += commands.len();
        let block = Block {
            place: format!("{program} --help"),
            language: "sh".into(),
            remarks: Vec::new(),
            text: commands.join("\n"),
        };
        block.check(&project);
    }
    assert!(
        commands_run > 20,
        "only {commands_run} examples were found to run"
    );
}

/// The command of a line that shows one, without what is said about it.
fn example(line: &str) -> Option<&str> {
    let line = line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?;
    let command = line.split("  ").next().unwrap_or_default();
    ["ahma_", "generate_tool_schema", "mkdir ", "source "]
        .iter()
        .any(|start| command.starts_with(start))
        .then_some(command)
}

#[test]
fn every_message_in_the_troubleshooting_guide_is_one_of_ours() {
    let root = root();
    let mut sources = String::new();
    for directory in [
        "ahma_core/src",
        "ahma_http_bridge/src",
        "ahma_http_mcp_client/src",
        "ahma_validate/src",
    ] {
        collect_sources(&root.join(directory), &mut sources);
    }
    let guide = fs::read_to_string(root.join("docs/troubleshooting.md")).expect("the guide");
    let messages: Vec<&str> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`'))
        .collect();
    assert!(messages.len() > 10, "{messages:?}");
    for message in messages {
        for part in message.split('…').map(str::trim).filter(|part| !part.is_empty()) {
            assert!(sources.contains(part), "no source says `{part}` (of `{message}`)");
        }
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut links = 0;
    for document in markdown_files() {
        let text = fs::read_to_string(&document).expect("readable");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => document.clone(),
                file => document.parent().expect("a directory").join(file),
            };
            let place = format!("{}: {link}", document.display());
            let target = fs::read_to_string(target).unwrap_or_else(|error| panic!("{place}: {error}"));
            let has_heading = || {
                target
                    .lines()
                    .any(|line| anchor(line).as_deref() == Some(heading))
            };
            assert!(heading.is_empty() || has_heading(), "{place}: no such heading");
            links += 1;
        }
    }
    assert!(links > 15, "only {links} links were found");
}

/// What a heading is called in links.
fn anchor(line: &str) -> Option<String> {
    let heading = line.strip_prefix('#')?.trim_start_matches('#').trim();
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    Some(kept.collect::<String>().to_lowercase().replace(' ', "-"))
}

#[test]
fn install_links_carry_the_entry_that_init_writes() {
    let readme = fs::read_to_string(root().join("README.md")).expect("readable");
    let config = |before: &str| {
        let (_, rest) = readme.split_once(before).expect("the link");
        rest.split(')').next().expect("always one").to_owned()
    };
    let vscode = config("vscode.dev/redirect/mcp/install?name=Ahama&config=");
    let vscode = percent_encoding::percent_decode_str(&vscode)
        .decode_utf8()
        .expect("text")
        .into_owned();
    let cursor = config("cursor.com/en/install-mcp?name=Ahama&config=");
    let cursor = base64::engine::general_purpose::STANDARD
        .decode(cursor)
        .expect("base64");
    for (client, file, table, linked) in [
        ("vscode", ".vscode/mcp.json", "servers", vscode.as_bytes()),
        ("cursor", ".cursor/mcp.json", "mcpServers", cursor.as_slice()),
    ] {
        let project = Project::new();
        let output = project
            .shell(&format!("ahma_mcp init --client {client}"))
            .output()
            .expect("bash starts");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let written: Value = serde_json::from_str(&project.read(file)).expect("JSON");
        let linked: Value = serde_json::from_slice(linked).expect("JSON");
        assert_eq!(written[table]["Ahama"], linked, "{client}");
    }
}

/// Texts that are continued on the next line of the source are put together.
fn collect_sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect_sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).expect("readable");
            let mut lines = source.lines();
            while let Some(line) = lines.next() {
                let mut line = line.to_owned();
                while let Some(begun) = line.strip_suffix('\\') {
                    line = format!("{begun}{}", lines.next().unwrap_or_default().trim_start());
                }
                text.push_str(&line.replace("\\\"", "\""));
                text.push('\n');
            }
        }
    }
}

#[derive(Debug)]
struct Block {
    /// `README.md:12`
    place: String,
    language: String,
    remarks: Vec<String>,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("it exists")
}

/// The documents for users.
fn documents() -> Vec<PathBuf> {
    let mut documents = markdown_in(&root().join("docs"));
    documents.push(root().join("README.md"));
    documents.sort();
    documents
}

/// All documents.
fn markdown_files() -> Vec<PathBuf> {
    ["", "docs", "docs/design"]
        .iter()
        .flat_map(|directory| markdown_in(&root().join(directory)))
        .collect()
}

fn markdown_in(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory)
        .expect("readable")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect()
}

fn blocks(document: &Path) -> Vec<Block> {
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
    /// Whether there was something to run.
    fn check(&self, project: &Project) -> bool {
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
            // Run in those proxies by the tests of the bridge.
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
        let server = self
            .remarks
            .iter()
            .find_map(|remark| remark.strip_prefix("served by: "));
        if let Some(server) = server {
            self.serve(project, server, |port| {
                let script = self.text.replace("127.0.0.1:3000", &format!("127.0.0.1:{port}"));
                self.run_command(project, &script);
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

/// Whether a text is what a pattern with `…` lines says.
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
struct Project {
    workspace: Workspace,
    path: String,
    programs: PathBuf,
}

impl Project {
    fn new() -> Self {
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

    fn shell(&self, script: &str) -> Command {
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
    fn has_program(&self, command: &str) -> bool {
        let name = command.split_whitespace().next().unwrap_or_default();
        let ours = name.starts_with("ahma_");
        if !ours || self.programs.join(name).exists() {
            return true;
        }
        assert!(
            std::env::var_os("CI").is_none(),
            "{name} is missing: cargo build --workspace --bins"
        );
        eprintln!("skipped: `{command}` needs cargo build --workspace --bins");
        false
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.directory().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.directory().join(file);
        fs::create_dir_all(path.parent().expect("it has one")).expect("writable");
        fs::write(path, text).expect("writable");
    }
}
