//! The layers of the core: pure modules, then the system's, the actors, the protocol and the edge, and no cycles.

use std::{
    fs,
    path::{Path, PathBuf},
};

use test_support::{Layers, sources};

/// Modules that may do input and output; the others compute.
const IMPURE: &[&str] = &[
    "sandbox",
    "files",
    "jail",
    "shell",
    "operation",
    "toolbox",
    "history",
    "console",
    "cluster",
    "mcp",
    "app",
    "bin",
];

fn rules() -> Layers<'static> {
    Layers {
        sources: workspace().join("ahma_core/src"),
        layers: &[
            &["observe"],
            &["mtdf"],
            &["catalog"],
            &["call"],
            &["files", "sandbox"],
            &["jail"],
            &["shell"],
            &["operation", "toolbox"],
            &["history"],
            &["console"],
            &["cluster"],
            &["mcp"],
            &["app"],
            &["bin"],
        ],
        reserved: &[
            ("rmcp", &["mcp"]),
            ("clap", &["app", "bin"]),
            ("rusqlite", &["history"]),
            ("axum", &["console"]),
            ("maud", &["console"]),
            ("ahma_cluster", &["cluster", "app"]),
            // `app` configures the servers, `mcp` calls them.
            ("ahma_http_mcp_client", &["app", "mcp"]),
            ("tokio", IMPURE),
            ("std::fs", IMPURE),
            ("std::process", IMPURE),
            ("std::net", IMPURE),
            ("std::thread", IMPURE),
            ("std::env", IMPURE),
            ("rustix", IMPURE),
            ("libc", IMPURE),
        ],
    }
}

#[test]
fn modules_use_lower_layers_only() {
    assert_eq!(rules().violations(), Vec::<String>::new());
}

#[test]
fn the_common_crate_knows_no_tool_no_http_and_no_other_crate() {
    let common = Layers {
        sources: workspace().join("ahma_common/src"),
        layers: &[
            &[
                "contract",
                "darwin",
                "error_chain",
                "lines",
                "loopback",
                "nearest",
                "outbox",
                "private_file",
                "process",
                "redaction",
                "retry",
                "secret",
                "tool_patterns",
                "words",
            ],
            &["envelope", "value", "variables"],
        ],
        reserved: &[
            ("rmcp", &[]),
            ("axum", &[]),
            ("http", &[]),
            ("hyper", &[]),
            ("reqwest", &[]),
            ("clap", &["value", "variables"]),
            ("ahma_core", &[]),
            ("ahma_http_bridge", &[]),
            ("ahma_http_mcp_client", &[]),
        ],
    };
    assert_eq!(common.violations(), Vec::<String>::new());
}

#[test]
fn the_check_sees_what_is_forbidden() {
    let forbidden = [
        ("mtdf", "use tokio::sync::mpsc;"),
        ("mtdf", "let text = std::fs::read_to_string(path);"),
        ("call", "use crate::jail::Launcher;"),
        ("observe", "let tool: crate::mtdf::Leaf;"),
        // Of one layer.
        ("toolbox", "use crate::operation::Engine;"),
        ("unheard_of", ""),
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
    let allowed = [
        ("call", "use crate::{catalog::Catalog, mtdf::Leaf};"),
        ("operation", "use crate::jail::Launcher;\nuse tokio::fs;"),
        ("mcp", "use rmcp::model::Tool;"),
        ("app", "use ahma_http_mcp_client::RemoteServers;"),
        ("app", "use clap::Parser;"),
        ("call", "//! `crate::jail` and tokio::fs are named in words only."),
        ("mtdf", "mod operation_names; let operation = 1;"),
    ];
    rules().assert_sees(&forbidden, &allowed);
}

#[test]
fn the_bridge_does_not_depend_on_the_core() {
    let manifest = fs::read_to_string(workspace().join("ahma_http_bridge/Cargo.toml")).unwrap();
    assert!(
        !manifest.contains("ahma_core"),
        "ahma_http_bridge must not depend on ahma_core"
    );
}

#[test]
fn the_tour_names_what_exists() {
    let root = workspace();
    let tour = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let crates = [
        "ahma_cluster",
        "ahma_common",
        "ahma_core",
        "ahma_http_bridge",
        "ahma_http_mcp_client",
    ];
    let code: String = (crates.iter())
        .flat_map(|name| sources(&root.join(name).join("src")))
        .map(|(_, text)| text)
        .collect();
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
            root.join(name).exists() || root.join("ahma_core/src").join(name).exists()
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

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_path_buf()
}
