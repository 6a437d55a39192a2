//! Tools of the packs, called through the server: the text that a model reads, which is the snapshot, and findings.
//!
//! The programs are the real ones, except in `recorded`. A failure costs at most 2 KB, a success at most 300 bytes.

mod build;
mod lint;
mod recorded;
mod target;
mod test_runs;
mod web;

use std::{fmt, fs, path::Path, sync::LazyLock};

use regex::Regex;

use serde_json::{Value, json};
use test_support::{Era, Server, Workspace, needs, pack_file, test_programs};

use crate::{session::options, toolchains};

const MAX_FAILURE_BYTES: usize = 2_000;
const MAX_SUCCESS_BYTES: usize = 300;

/// A project with files of packs, and a server for it.
struct Project {
    workspace: Workspace,
    server: Server,
}

/// Result of a call: what a model reads, and the same as data.
struct Answer {
    text: String,
    data: Value,
}

impl Project {
    /// With the tool files and files of the project: name and text.
    fn new(tools: &[&str], files: &[(&str, &str)]) -> Self {
        let workspace = Workspace::new();
        for tool in tools {
            let text = fs::read_to_string(pack_file(tool)).unwrap();
            workspace.write_tool(tool, &serde_json::from_str(&text).unwrap());
        }
        let project = Self {
            server: serving(&workspace),
            workspace,
        };
        for (name, text) in files {
            project.write(name, text);
        }
        project
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.workspace.scope().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        let mut arguments = arguments;
        arguments["execution_mode"] = "synchronous".into();
        let id = self
            .server
            .request("tools/call", json!({"name": tool, "arguments": arguments}));
        let answer = self
            .server
            .answer_within(id, toolchains::TOOL_TIMEOUT)
            .expect("an answer in time");
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().expect("a text");
        let scope = self.workspace.scope().display().to_string();
        Answer {
            text: text.replace(&scope, "[scope]"),
            data: result["structuredContent"].clone(),
        }
    }

    /// A call that finds something or fails.
    #[track_caller]
    fn finds(&mut self, tool: &str, arguments: Value) -> Answer {
        let answer = self.call(tool, arguments);
        let bytes = answer.text.len();
        assert!(bytes <= MAX_FAILURE_BYTES, "{bytes} bytes: {}", answer.text);
        answer
    }

    /// A call that has nothing to complain of.
    #[track_caller]
    fn succeeds(&mut self, tool: &str, arguments: Value) -> Answer {
        let answer = self.call(tool, arguments);
        assert_eq!(answer.data["status"], "completed", "{}", answer.text);
        assert!(answer.text.len() <= MAX_SUCCESS_BYTES, "{}", answer.text);
        answer
    }
}

/// Whatever differs from run to run, and the word that stands for it in a snapshot.
static VOLATILE: LazyLock<[(Regex, &str); 7]> = LazyLock::new(|| {
    [
        (r"\bop_\w+", "[id]"),
        (r"\b\d+(?:\.\d+)? ?(?:ms|s|sec|seconds)\b", "[time]"),
        (r"\b127\.0\.0\.1:\d+", "127.0.0.1:[port]"),
        (r"\btcp/\d+|\b\d+/tcp|\btcp port \d+", "tcp [port]"),
        (r"\b\d{4}-\d\d-\d\d[ T][\d:]+", "[date]"),
        (r"\[\d+ lines? in all", "[[number] lines in all"),
        // A condition that sqlmap makes up.
        (r"\b\d{4}=\d{4}\b", "[number]=[number]"),
    ]
    .map(|(pattern, word)| (Regex::new(pattern).unwrap(), word))
});

/// The text with nothing in it that differs from run to run.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replaced = VOLATILE.iter().fold(self.text.clone(), |text, (pattern, word)| {
            pattern.replace_all(&text, *word).into_owned()
        });
        f.write_str(&replaced)
    }
}

impl Answer {
    /// Severity, id and location of each finding.
    fn findings(&self) -> Vec<String> {
        let findings = self.data["findings"].as_array().into_iter().flatten();
        let word = |finding: &Value, field: &str| finding[field].as_str().unwrap_or("-").to_owned();
        findings
            .map(|finding| {
                ["severity", "id", "location"]
                    .map(|field| word(finding, field))
                    .join(" ")
            })
            .collect()
    }
}

/// With the programs that `scripts/test-programs` installs in front of the others.
fn serving(workspace: &Workspace) -> Server {
    let own = ["tools/bin", "node_modules/.bin"].map(|directory| test_programs().join(directory));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = own.into_iter().chain(std::env::split_paths(&path));
    let mut options = options(workspace)
        .env("PATH", std::env::join_paths(path).unwrap())
        .env("VIRTUAL_ENV", test_programs().join("tools"));
    for (variable, default) in [("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv")] {
        if let Some(directory) = toolchains::real(variable, default) {
            options = options.env(variable, directory);
        }
    }
    // Where Debian's packages of testssl and nikto keep their lists.
    for directory in ["/etc/testssl", "/etc/nikto", "/var/lib/nikto"] {
        if Path::new(directory).is_dir() {
            options = options.args(["--allow-read", directory]);
        }
    }
    options.args(["--sync-wait", "600s"]).open(Era::Legacy)
}

/// True if a Python tool of the tests is there.
fn needs_python(tool: &str) -> bool {
    let program = test_programs().join("tools/bin").join(tool);
    needs(program, &["--version"], "scripts/test-programs")
}
