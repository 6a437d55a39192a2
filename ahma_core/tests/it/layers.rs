//! The architecture as a test: which module may use which, and who may know which crate.
//!
//! It reads the source text. That is crude, but it cannot be fooled by features or targets that this build leaves out.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The modules of `ahma_core` with their layer; a lower number is further up and knows less.
const LAYERS: [(&str, usize); 12] = [
    ("mtdf", 0),
    ("catalog", 0),
    ("call", 0),
    ("observe", 0),
    ("sandbox", 1),
    ("jail", 1),
    ("shell", 1),
    ("operation", 2),
    ("toolbox", 2),
    ("mcp", 3),
    ("app", 4),
    ("bin", 4),
];

const PURE: [&str; 4] = ["mtdf", "catalog", "call", "observe"];

/// Text that marks the use of something, and the modules that may use it.
const RESERVED: [(&str, &[&str]); 4] = [
    ("rmcp::", &["mcp"]),
    ("clap::", &["app", "bin"]),
    ("axum::", &[]),
    // `app` configures the servers, `mcp` calls them.
    ("ahma_http_mcp_client::", &["app", "mcp"]),
];

/// What pure modules must not touch.
const IMPURE: [&str; 9] = [
    "tokio::",
    "std::fs",
    "std::process",
    "std::net",
    "std::thread",
    "std::env",
    "rustix::",
    "libc::",
    "rmcp::",
];

#[test]
fn modules_use_only_layers_above_them() {
    let mut violations = Vec::new();
    for file in sources() {
        violations.extend(file.violations());
    }
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn every_module_has_a_layer() {
    let known: Vec<&str> = LAYERS.iter().map(|(module, _)| *module).collect();
    for file in sources() {
        let module = file.module.as_str();
        assert!(
            module == "lib" || known.contains(&module),
            "{} belongs to no layer",
            file.path.display()
        );
    }
}

#[test]
fn the_check_sees_what_is_forbidden() {
    let check = |module: &str, text: &str| {
        let file = SourceFile {
            path: PathBuf::from(module),
            module: module.into(),
            text: text.into(),
        };
        !file.violations().is_empty()
    };
    let forbidden = [
        ("mtdf", "use tokio::sync::mpsc;"),
        ("mtdf", "let text = std::fs::read_to_string(path);"),
        ("call", "use crate::jail::Launcher;"),
        (
            "call",
            "use crate::{\n    catalog::Catalog,\n    operation::Engine,\n};",
        ),
        ("observe", "use std::{\n    fs,\n    time::Duration,\n};"),
        ("observe", "use std::{collections::BTreeMap, process::Command};"),
        ("jail", "use crate::operation::Engine;"),
        ("operation", "use rmcp::model::Tool;"),
        ("operation", "crate::mcp::convert(tool)"),
        ("mcp", "use clap::Parser;"),
        ("app", "use axum::Router;"),
        ("toolbox", "use ahma_http_mcp_client::RemoteServers;"),
    ];
    for (module, text) in forbidden {
        assert!(check(module, text), "not noticed in {module}: {text}");
    }
    let allowed = [
        ("call", "use crate::{catalog::Catalog, mtdf::Leaf};"),
        ("operation", "use crate::jail::Launcher;\nuse tokio::fs;"),
        ("mcp", "use rmcp::model::Tool;"),
        ("app", "use ahma_http_mcp_client::RemoteServers;"),
        ("app", "use clap::Parser;"),
        ("call", "//! `crate::jail` and tokio::fs are named in words only."),
        ("mtdf", "mod operation_names; let operation = 1;"),
    ];
    for (module, text) in allowed {
        assert!(!check(module, text), "wrongly refused in {module}: {text}");
    }
}

#[test]
fn the_bridge_does_not_depend_on_the_core() {
    let manifest = fs::read_to_string(workspace().join("ahma_http_bridge/Cargo.toml")).unwrap();
    assert!(
        !manifest.contains("ahma_core"),
        "ahma_http_bridge must not depend on ahma_core"
    );
    for path in rust_files(&workspace().join("ahma_http_bridge/src")) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("ahma_core::"), "{} uses ahma_core", path.display());
    }
}

#[test]
fn the_tour_names_what_exists() {
    let root = workspace();
    let tour = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let code: String = sources().iter().map(|file| code_of(&file.text)).collect();
    let is_defined = |kinds: &[&str], name: &str| {
        kinds.iter().any(|kind| {
            ["(", "<", " ", ";"]
                .iter()
                .any(|end| code.contains(&format!("{kind} {name}{end}")))
        })
    };
    let mut names = 0;
    for name in tour.split('`').skip(1).step_by(2) {
        let exists = if name.ends_with(".rs") || name.ends_with('/') {
            root.join(name).exists() || root.join("ahma_core/src").join(name).is_file()
        } else if let Some((owner, function)) = name.split_once("::") {
            is_defined(&["struct", "enum", "mod"], owner) && is_defined(&["fn"], function)
        } else if name.starts_with(char::is_uppercase) {
            is_defined(&["struct", "enum"], name)
        } else {
            continue;
        };
        assert!(exists, "ARCHITECTURE.md: there is no `{name}`");
        names += 1;
    }
    assert!(names > 30, "only {names} names were found");
}

struct SourceFile {
    path: PathBuf,
    /// The top-level module that it belongs to; `lib` for the root.
    module: String,
    text: String,
}

impl SourceFile {
    fn violations(&self) -> Vec<String> {
        let layers: BTreeMap<&str, usize> = LAYERS.into_iter().collect();
        let code = code_of(&self.text);
        let paths = used_paths(&code);
        let mut violations = Vec::new();
        let mut complain =
            |what: &str| violations.push(format!("{}: must not use `{what}`", self.path.display()));
        if let Some(own) = layers.get(self.module.as_str()) {
            for (module, layer) in &layers {
                let path = format!("crate::{module}");
                if layer > own && paths.iter().any(|used| is_below(used, &path)) {
                    complain(&path);
                }
            }
        }
        for (marker, allowed) in RESERVED {
            let path = marker.trim_end_matches("::");
            if !allowed.contains(&self.module.as_str()) && paths.iter().any(|used| is_below(used, path)) {
                complain(path);
            }
        }
        if PURE.contains(&self.module.as_str()) {
            for marker in IMPURE {
                let path = marker.trim_end_matches("::");
                if paths.iter().any(|used| is_below(used, path)) {
                    complain(path);
                }
            }
        }
        violations
    }
}

/// All sources of `ahma_core` except its tests.
fn sources() -> Vec<SourceFile> {
    let root = workspace().join("ahma_core/src");
    let files = rust_files(&root)
        .into_iter()
        .filter(|path| !path.to_string_lossy().ends_with("_tests.rs"));
    files
        .map(|path| {
            let relative = path.strip_prefix(&root).unwrap();
            let first = relative
                .components()
                .next()
                .unwrap()
                .as_os_str()
                .to_string_lossy();
            SourceFile {
                module: first.trim_end_matches(".rs").to_owned(),
                text: fs::read_to_string(&path).unwrap(),
                path,
            }
        })
        .collect()
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_path_buf()
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The text without comments; strings stay, which is harmless.
fn code_of(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// Every path in the code, with the braces of `use` opened: `std::{fs, io}` gives `std::fs` and `std::io`.
fn used_paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut prefixes: Vec<String> = vec![String::new()];
    let mut current = String::new();
    for letter in code.chars() {
        match letter {
            letter if letter.is_alphanumeric() || letter == '_' || letter == ':' => current.push(letter),
            '{' => {
                let prefix = prefixes.last().cloned().unwrap_or_default();
                // A brace after `::` opens a group of a `use`; any other one is a block and has no prefix.
                prefixes.push(if current.ends_with("::") {
                    format!("{prefix}{current}")
                } else {
                    String::new()
                });
                current.clear();
            }
            other => {
                if !current.is_empty() {
                    paths.push(format!(
                        "{}{current}",
                        prefixes.last().cloned().unwrap_or_default()
                    ));
                    current.clear();
                }
                if other == '}' {
                    prefixes.pop();
                }
            }
        }
    }
    paths.push(current);
    paths
}

fn is_below(used: &str, path: &str) -> bool {
    used == path && path.contains("::") || used.strip_prefix(path).is_some_and(|rest| rest.starts_with("::"))
}
