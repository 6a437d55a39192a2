//! MCP clients: the file in which each keeps its servers, and the entry `Ahama` in it.

use std::path::{Path, PathBuf};

use ahma_common::contract::SCOPE_VARIABLE;
use clap::ValueEnum;
use serde_json::{Value, json};

use super::repeatable_flags::RepeatableFlags;

/// The name under which clients know the running server.
pub(crate) const SERVER: &str = "Ahama";

/// A program that speaks to MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    #[value(name = "vscode")]
    VsCode,
    Cursor,
    Claude,
    Codex,
    Windsurf,
    #[value(name = "copilot")]
    CopilotCli,
}

impl Client {
    pub(crate) fn all() -> impl ExactSizeIterator<Item = Self> {
        Self::value_variants().iter().copied()
    }

    /// Name for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::VsCode => "VS Code",
            Self::Cursor => "Cursor",
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Windsurf => "Windsurf",
            Self::CopilotCli => "Copilot CLI",
        }
    }

    /// Value of `--client`.
    pub(crate) fn flag(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// All values of `--client`, for messages.
    pub(crate) fn flag_values() -> String {
        Self::all().map(Self::flag).collect::<Vec<_>>().join("|")
    }

    /// The file that holds its servers, in the project if the client has one there, else in the home directory.
    /// None if that is not known.
    pub(crate) fn file(self, project: &Path, home: Option<&Path>) -> Option<PathBuf> {
        match self {
            Self::VsCode => Some(project.join(".vscode/mcp.json")),
            Self::Cursor => Some(project.join(".cursor/mcp.json")),
            Self::Claude => Some(project.join(".mcp.json")),
            Self::Codex => Some(project.join(".codex/config.toml")),
            Self::Windsurf => home.map(|home| home.join(".codeium/windsurf/mcp_config.json")),
            Self::CopilotCli => home.map(|home| home.join(".copilot/mcp-config.json")),
        }
    }

    /// Name of the table of servers in that file.
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Cursor | Self::Claude | Self::Windsurf | Self::CopilotCli => "mcpServers",
            Self::Codex => "mcp_servers",
        }
    }

    /// The entry, with these flags. Clients with a file for each project start the server in it or name it by a variable,
    /// so that the file can be shared; a file for all projects must say which one.
    pub(crate) fn entry(self, command: &str, project: &Path, flags: Vec<String>) -> Value {
        let scope = match self {
            Self::VsCode | Self::Claude | Self::Codex => None,
            Self::Cursor => Some(WORKSPACE.to_owned()),
            Self::Windsurf | Self::CopilotCli => Some(project.display().to_string()),
        };
        let scope = scope.into_iter().flat_map(|scope| [SCOPE_FLAG.to_owned(), scope]);
        let args: Vec<String> = scope.chain(flags).collect();
        let mut entry = match self {
            Self::VsCode | Self::Cursor | Self::Claude | Self::CopilotCli => {
                json!({ "type": "stdio", "command": command })
            }
            Self::Codex | Self::Windsurf => json!({ "command": command }),
        };
        if !args.is_empty() {
            entry["args"] = args.into();
        }
        if self == Self::VsCode {
            entry["cwd"] = WORKSPACE.into();
        }
        if self == Self::Claude {
            // Otherwise it shows the model only the names of the tools, and many tasks never ask for more.
            entry["alwaysLoad"] = true.into();
        }
        if self == Self::CopilotCli {
            entry["tools"] = json!(["*"]);
            // It defers tools as well if there are more than about thirty in all.
            entry["deferTools"] = "never".into();
        }
        entry
    }

    /// The words of `flags`, with paths that are valid in the directory in which this client starts the server.
    pub(crate) fn flags(
        self,
        flags: &RepeatableFlags,
        project: &Path,
        working_directory: &Path,
    ) -> Vec<String> {
        flags.words(|path| {
            let path = match path.is_absolute() {
                true => path.to_owned(),
                false => {
                    let path = working_directory.join(path);
                    path.canonicalize().unwrap_or(path)
                }
            };
            let shown = |path: &Path| path.display().to_string();
            match (path.strip_prefix(project), self) {
                (Err(_), _) | (_, Self::Windsurf | Self::CopilotCli) => shown(&path),
                (Ok(inner), Self::Cursor) => shown(&Path::new(WORKSPACE).join(inner)),
                // It is started in the project.
                (Ok(inner), Self::VsCode | Self::Claude | Self::Codex) => shown(&Path::new(".").join(inner)),
            }
        })
    }

    /// Judges the program and the project of an existing entry; the rest is the user's.
    pub(crate) fn fit(self, entry: &Value, project: &Path) -> Fit {
        let starts_us = entry["command"]
            .as_str()
            .and_then(|command| Path::new(command).file_name())
            .is_some_and(|name| name == "ahma_mcp");
        let mut args = entry["args"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        match self {
            _ if !starts_us => Fit::AnotherProgram,
            Self::Windsurf | Self::CopilotCli if !args.any(|arg| Path::new(arg) == project) => {
                Fit::AnotherProject
            }
            Self::Cursor
                if !args.any(|arg| arg.starts_with(SCOPE_FLAG)) && entry["env"][SCOPE_VARIABLE].is_null() =>
            {
                Fit::NoScope
            }
            Self::VsCode | Self::Cursor | Self::Claude | Self::Codex | Self::Windsurf | Self::CopilotCli => {
                Fit::Good
            }
        }
    }

    /// Next step for the user.
    pub(crate) fn next_step(self) -> &'static str {
        match self {
            Self::VsCode => "open .vscode/mcp.json in VS Code and press Start above the entry",
            Self::Cursor => "switch the server on in Cursor's settings, under MCP",
            Self::Claude => "start claude here and allow the server when it asks",
            Self::Codex => "Codex reads the file in projects that it trusts; codex mcp list shows the server",
            Self::Windsurf => "press Refresh in Windsurf's list of MCP servers",
            Self::CopilotCli => "start copilot here; /mcp show lists the server",
        }
    }
}

/// Judgement of an entry `Ahama`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    Good,
    /// The client starts servers anywhere, and the entry does not say for which project.
    NoScope,
    /// One file serves all projects, and its entry is for another one.
    AnotherProject,
    AnotherProgram,
}

/// Variable that editors replace by the project directory.
const WORKSPACE: &str = "${workspaceFolder}";

pub(crate) const SCOPE_FLAG: &str = "--sandbox-scope";
