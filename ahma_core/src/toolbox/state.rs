//! The tools at one moment, and why some of them are missing.

use std::{path::PathBuf, sync::Arc};

use serde::Serialize;

use super::availability::Lack;
use crate::{
    catalog::{Catalog, Tool},
    mtdf::{Problem, ToolSource},
};

/// All tools at one moment.
#[derive(Debug, Clone, Default)]
pub struct Toolbox {
    /// Every enabled tool of every good file.
    pub catalog: Catalog,
    /// The tools whose programs exist, which clients are shown. This does not depend on checks that run a program, because
    /// those take different times at each start.
    pub present: Catalog,
    /// The tools that can be called: no check has failed so far.
    pub offered: Catalog,
    /// In the order of their names.
    pub unavailable: Vec<Unavailable>,
    /// Problems of all files, in the order of their names.
    pub problems: Vec<Problem>,
    /// Files that were edited into something broken; their last good version is in use.
    pub stale: Vec<String>,
    /// Texts of the files in use, if they are announced to other hosts.
    pub sources: Arc<Vec<ToolSource>>,
    pub directory: PathBuf,
    /// Reason why the directory as a whole gave no tools.
    pub directory_problem: Option<String>,
    /// Number of availability checks without a result; one that is repeated has a result.
    pub probing: usize,
    /// Number of times that the directory was read; 0 before the first time.
    pub loads: u64,
}

/// A tool that cannot work here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    pub tool: String,
    pub file: Option<String>,
    pub reason: String,
    pub install_instructions: Option<String>,
}

impl Unavailable {
    pub(super) fn new(tool: &Tool, lack: &Lack) -> Self {
        Self {
            tool: tool.name.clone(),
            file: tool.file.clone(),
            reason: lack.reason().to_owned(),
            install_instructions: tool.install_instructions.clone(),
        }
    }
}

/// Tools that lack the same thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LackingTools {
    /// In the order of their names; never empty.
    pub tools: Vec<String>,
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install_instructions: Option<String>,
}

impl LackingTools {
    /// `git_add`, `git_add and git_log` or `12 tools from git_add to git_worktree`.
    pub fn names(&self) -> String {
        match self.tools.as_slice() {
            [first, _, .., last] if self.tools.len() > 2 => {
                format!("{} tools from {first} to {last}", self.tools.len())
            }
            few => few.join(" and "),
        }
    }
}

impl Toolbox {
    /// The tools that cannot be called, grouped by the reason.
    pub fn lacking(&self) -> Vec<LackingTools> {
        let mut groups: Vec<LackingTools> = Vec::new();
        for missing in &self.unavailable {
            let same = |group: &&mut LackingTools| {
                group.reason == missing.reason && group.install_instructions == missing.install_instructions
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.tools.push(missing.tool.clone()),
                None => groups.push(LackingTools {
                    tools: vec![missing.tool.clone()],
                    reason: missing.reason.clone(),
                    install_instructions: missing.install_instructions.clone(),
                }),
            }
        }
        groups
    }

    /// The reason why a tool that exists cannot be called.
    pub fn unavailable(&self, tool: &str) -> Option<&Unavailable> {
        self.unavailable
            .iter()
            .find(|unavailable| unavailable.tool == tool)
    }

    /// True if clients would see the same list of tools.
    pub fn shows_the_same_as(&self, other: &Self) -> bool {
        self.present.len() == other.present.len()
            && self
                .present
                .tools()
                .zip(other.present.tools())
                .all(|(ours, theirs)| {
                    ours.name == theirs.name
                        && ours.description == theirs.description
                        && ours.annotations == theirs.annotations
                        && ours.input_schema == theirs.input_schema
                })
    }
}
