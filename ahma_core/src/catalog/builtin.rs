//! Tools of the catalogue that come with the server: the shell and the file tools.
//!
//! They run like tools from files. Those that look after operations are not in the catalogue: see `mcp::builtin`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    input_schema::{object_schema, shell_schema},
    tool::{CatalogSettings, Tool},
};
use crate::mtdf::{Annotations, FileTool, Leaf, LeafAction, Level, READ_ONLY_SHELL_TOOL, SHELL_TOOL};

/// Purpose of the built-in shell.
const SHELL_DESCRIPTION: &str = "Runs a shell script where no other tool fits.";

/// Purpose of the shell that only reads.
const READ_ONLY_SHELL_DESCRIPTION: &str = "Runs a shell script that cannot change anything: the scope is read-only, the \
     network closed, `/tmp` its own. For looking around: ls, cat, rg, find, git status, log and diff.";

/// Every built-in tool of the catalogue.
pub(super) fn tools(settings: CatalogSettings) -> Vec<Tool> {
    let mut tools = vec![shell()];
    if settings.read_only_shell {
        tools.push(read_only_shell());
    }
    if settings.files {
        tools.extend(file_tools());
    }
    tools
}

fn shell() -> Tool {
    tool(
        SHELL_TOOL,
        SHELL_DESCRIPTION,
        LeafAction::Script,
        Annotations {
            open_world: Some(true),
            ..changes()
        },
        shell_schema(),
    )
}

fn read_only_shell() -> Tool {
    tool(
        READ_ONLY_SHELL_TOOL,
        READ_ONLY_SHELL_DESCRIPTION,
        LeafAction::ReadOnlyScript,
        reads(),
        shell_schema(),
    )
}

/// Hints for a tool that changes files in the scope.
fn changes() -> Annotations {
    Annotations {
        title: None,
        read_only: Some(false),
        destructive: Some(true),
        idempotent: Some(false),
        open_world: Some(false),
    }
}

/// Hints for a tool that changes nothing.
fn reads() -> Annotations {
    Annotations {
        read_only: Some(true),
        destructive: Some(false),
        idempotent: Some(true),
        ..changes()
    }
}

fn file_tools() -> [Tool; 4] {
    let text = json!({ "type": "string" });
    [
        tool(
            "file_read",
            "Reads text files with numbered lines, or lists a directory.",
            LeafAction::File(FileTool::Read),
            reads(),
            object_schema(
                json!({
                    "path": text,
                    "paths": { "type": "array", "items": text },
                    "from_line": { "type": "integer" },
                    "max_lines": { "type": "integer" },
                }),
                &[],
            ),
        ),
        tool(
            "file_write",
            "Creates or replaces a file: `content`, or the output of operation `from_output` (`format`: its findings).",
            LeafAction::File(FileTool::Write),
            Annotations {
                idempotent: Some(true),
                ..changes()
            },
            object_schema(
                json!({
                    "path": text,
                    "content": text,
                    "from_output": text,
                    "format": { "type": "string", "enum": ["json", "sarif", "junit"] },
                }),
                &["path"],
            ),
        ),
        tool(
            "file_edit",
            "Replaces exact text in a file. Each `old` must occur once, or set `all`. All edits or none.",
            LeafAction::File(FileTool::Edit),
            changes(),
            object_schema(
                json!({
                    "path": text,
                    "edits": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": { "old": text, "new": text, "all": { "type": "boolean" } },
                            "required": ["old", "new"],
                        },
                    },
                }),
                &["path", "edits"],
            ),
        ),
        tool(
            "file_patch",
            "Applies a unified diff, whose line numbers may be wrong, or a `*** Begin Patch` block. All files or none.",
            LeafAction::File(FileTool::Patch),
            changes(),
            object_schema(json!({ "patch": text }), &["patch"]),
        ),
    ]
}

fn tool(
    name: &str,
    description: &str,
    action: LeafAction,
    annotations: Annotations,
    input_schema: Map<String, Value>,
) -> Tool {
    // Only a script may take so long that it goes on in the background.
    let synchronous = (!matches!(action, LeafAction::Script)).then_some(true);
    Tool {
        name: name.into(),
        description: description.into(),
        input_schema: Arc::new(input_schema),
        annotations: annotations.clone(),
        file: None,
        probes: Vec::new(),
        install_instructions: None,
        leaf: Arc::new(Leaf {
            name: name.into(),
            pointer: String::new(),
            name_pointer: String::new(),
            description: description.into(),
            action,
            level: Level::Core,
            synchronous,
            timeout: None,
            annotations,
            enabled: true,
            probes: Vec::new(),
            install_instructions: None,
        }),
    }
}
