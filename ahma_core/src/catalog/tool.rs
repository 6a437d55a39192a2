//! The catalogue and its entries.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use ahma_common::nearest;

use super::familiar_names;
use crate::mtdf::{Annotations, AvailabilityCheck, Leaf, LeafAction, Level};

/// Tools that look after operations: always there, and not in the catalogue.
const OPERATION_TOOLS: [&str; 4] = ["await", "cancel", "output", "status"];

/// Names suggested for one that no tool has.
const MAX_SUGGESTIONS: usize = 3;

/// All tools that can be called, by name.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    pub(super) tools: BTreeMap<String, Arc<Tool>>,
    pub(super) expose: Expose,
}

/// Tools that clients are shown in the list; the others are found by a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Expose {
    /// Built-in tools, and those of the level `core`.
    #[default]
    Core,
    All,
    /// Built-in tools only.
    Search,
}

/// Settings, apart from the tool files, that descriptions and schemas depend on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CatalogSettings {
    /// The tools for files are offered.
    pub files: bool,
    pub expose: Expose,
    /// The shell that only reads is offered; without a sandbox nothing would keep it from writing.
    pub read_only_shell: bool,
}

/// One tool as it is offered.
#[derive(Debug, Clone)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// A JSON Schema of type object.
    pub input_schema: Arc<Map<String, Value>>,
    /// With all four hints.
    pub annotations: Annotations,
    /// The tool file; `None` for a built-in tool.
    pub file: Option<String>,
    /// Every probe must succeed for the tool to be available. A sequence needs those of all its steps.
    pub probes: Vec<Arc<AvailabilityCheck>>,
    pub install_instructions: Option<String>,
    pub(crate) leaf: Arc<Leaf>,
}

impl Catalog {
    /// In the order of their names, which is the same in every run.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.values()
    }

    /// Those that clients are shown.
    pub fn listed(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools().filter(|tool| !self.hides(tool))
    }

    /// Those that clients are not shown, and can call nevertheless.
    pub fn hidden(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools().filter(|tool| self.hides(tool))
    }

    pub fn hides(&self, tool: &Tool) -> bool {
        let is_exposed = match self.expose {
            Expose::Core => tool.leaf.level == Level::Core,
            Expose::All => true,
            Expose::Search => false,
        };
        // The shortest list has one shell: the other can do all that this one can.
        let is_spare = matches!(tool.leaf.action, LeafAction::ReadOnlyScript);
        (tool.file.is_some() || is_spare) && !is_exposed
    }

    pub fn expose(&self) -> Expose {
        self.expose
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    pub fn len(&self) -> usize {
        self.tools.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The catalogue without the tools that `keep` turns down, for instance because they are not installed.
    #[must_use]
    pub fn filtered(&self, mut keep: impl FnMut(&Tool) -> bool) -> Self {
        let kept = self.tools.iter().filter(|(_, tool)| keep(tool));
        Self {
            tools: kept
                .map(|(name, tool)| (name.clone(), Arc::clone(tool)))
                .collect(),
            expose: self.expose,
        }
    }

    /// The tools that may be meant by `name`, built-in ones included, best first: those that do what tools of that name do
    /// elsewhere, then those whose names are most like it; at most three.
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        let known: Vec<&str> = self
            .tools
            .keys()
            .map(String::as_str)
            .chain(OPERATION_TOOLS)
            .collect();
        // The first that is there: a shell does everything, but a tool made for it does it better.
        let meant = familiar_names::meant(name).find(|meant| known.contains(meant));
        let mut found: Vec<&str> = meant.into_iter().collect();
        let near = nearest(name, known)
            .into_iter()
            .filter(|near| Some(*near) != meant);
        found.extend(near);
        found.truncate(MAX_SUGGESTIONS);
        found
    }
}
