//! The catalogue and its entries.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use crate::mtdf::{Annotations, BUILT_IN_TOOLS, Leaf, Probe, nearest};

/// All tools that can be called, by name.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    pub(super) tools: BTreeMap<String, Arc<Tool>>,
}

/// What the descriptions and schemas depend on besides the tool files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CatalogSettings {
    /// Every call waits for its result, so no description speaks of the background.
    pub force_sync: bool,
}

/// One tool as it is offered.
#[derive(Debug, Clone)]
pub struct Tool {
    pub name: String,
    /// With the standard sentence about asynchronous calls where it applies.
    pub description: String,
    /// A JSON Schema of type object.
    pub input_schema: Arc<Map<String, Value>>,
    pub annotations: Annotations,
    /// The tool file; `None` for the built-in shell.
    pub file: Option<String>,
    /// Every probe must succeed for the tool to be available. A sequence needs those of all its steps.
    pub probes: Vec<Arc<Probe>>,
    pub install_instructions: Option<String>,
    pub(crate) leaf: Arc<Leaf>,
}

impl Catalog {
    /// In the order of their names, which is the same in every run.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.values()
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
        }
    }

    /// The tools, built-in ones included, whose names are most like `name`; at most three.
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        let built_in = BUILT_IN_TOOLS
            .iter()
            .copied()
            .filter(|name| !self.tools.contains_key(*name));
        nearest(name, self.tools.keys().map(String::as_str).chain(built_in))
    }
}
