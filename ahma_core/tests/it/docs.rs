//! The documentation as a test: every command in it is run, every example is checked, every message exists.
//!
//! [`doc_blocks`](crate::doc_blocks) says what the comments above a block mean.

use std::{
    fs,
    path::{Path, PathBuf},
};

use base64::Engine as _;
use serde_json::Value;

use crate::doc_blocks::{Block, Project, blocks};

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

/// Things that a test cannot have: servers elsewhere, a toolchain in this empty home, a pager, a trail or a history with something in
/// it.
const NOT_RUN: [&str; 7] = [
    "://",
    "jira",
    "my-server",
    "cargo_",
    "man -l",
    "audit verify",
    " ID ",
];

#[test]
fn examples_in_every_help_work() {
    let mut commands_run = 0;
    for program in [
        "ahma_mcp",
        "ahma_mcp init",
        "ahma_mcp packs",
        "ahma_mcp doctor",
        "ahma_mcp run",
        "ahma_mcp record",
        "ahma_mcp history",
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

/// Name of a heading in links.
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
