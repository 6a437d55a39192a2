//! From valid tool files to the catalogue.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use super::{
    input_schema::{default_mode, input_schema, shell_schema},
    tool::{Catalog, CatalogSettings, Tool},
};
use crate::mtdf::{Action, Annotations, Leaf, Probe, SHELL_TOOL, ToolDef};

/// Appended to the description of every tool that runs in the background unless told otherwise.
const ASYNC_SENTENCE: &str = "Runs in the background and returns an operation id at once. Do not wait for it: go on with \
     other work, and collect the result with `await`.";

/// What the built-in shell is for.
const SHELL_DESCRIPTION: &str = "Runs a shell script inside the sandbox: pipes, redirections, several commands. \
     Only the sandbox scope is writable. Use it where no other tool fits.";

impl Catalog {
    /// The enabled tools of `files`, plus the built-in shell. A name that is taken twice goes to the first file.
    pub fn build(files: &[ToolDef], settings: CatalogSettings) -> Self {
        let enabled = || {
            let all = files
                .iter()
                .flat_map(|file| file.leaves.iter().map(move |leaf| (file, leaf)));
            all.filter(|(_, leaf)| leaf.enabled)
        };
        let leaves: HashMap<&str, &Leaf> = enabled()
            .map(|(_, leaf)| (leaf.name.as_str(), leaf.as_ref()))
            .collect();
        let mut tools = BTreeMap::from([(SHELL_TOOL.to_owned(), Arc::new(shell(settings)))]);
        for (file, leaf) in enabled() {
            tools.entry(leaf.name.clone()).or_insert_with(|| {
                Arc::new(Tool {
                    name: leaf.name.clone(),
                    description: description(leaf, settings),
                    input_schema: Arc::new(input_schema(leaf, default_mode(leaf, settings))),
                    annotations: leaf.annotations.clone(),
                    file: Some(file.file.clone()),
                    probes: probes(leaf, &leaves),
                    install_instructions: leaf.install_instructions.clone(),
                    leaf: Arc::clone(leaf),
                })
            });
        }
        Self { tools }
    }
}

fn shell(settings: CatalogSettings) -> Tool {
    let annotations = Annotations {
        title: Some("Sandboxed shell".into()),
        read_only: Some(false),
        destructive: Some(true),
        idempotent: Some(false),
        open_world: Some(true),
    };
    let leaf = Leaf {
        name: SHELL_TOOL.into(),
        pointer: String::new(),
        name_pointer: String::new(),
        description: SHELL_DESCRIPTION.into(),
        action: Action::Script,
        synchronous: None,
        timeout: None,
        annotations: annotations.clone(),
        enabled: true,
        probes: Vec::new(),
        install_instructions: None,
    };
    Tool {
        name: SHELL_TOOL.into(),
        description: description(&leaf, settings),
        input_schema: Arc::new(shell_schema(default_mode(&leaf, settings))),
        annotations,
        file: None,
        probes: Vec::new(),
        install_instructions: None,
        leaf: Arc::new(leaf),
    }
}

fn description(leaf: &Leaf, settings: CatalogSettings) -> String {
    let described = leaf.description.trim();
    if settings.force_sync || leaf.synchronous == Some(true) {
        return described.to_owned();
    }
    let stop = if described.ends_with(['.', '!', '?', ':']) {
        ""
    } else {
        "."
    };
    format!("{described}{stop} {ASYNC_SENTENCE}")
}

/// What must be there for the leaf to work, each probe once.
fn probes(leaf: &Leaf, leaves: &HashMap<&str, &Leaf>) -> Vec<Arc<Probe>> {
    let mut probes: Vec<Arc<Probe>> = Vec::new();
    let mut seen = HashSet::from([leaf.name.as_str()]);
    let mut waiting = vec![leaf];
    while let Some(leaf) = waiting.pop() {
        for probe in &leaf.probes {
            if !probes.contains(probe) {
                probes.push(Arc::clone(probe));
            }
        }
        if let Action::Sequence(sequence) = &leaf.action {
            let targets = sequence
                .steps
                .iter()
                .filter_map(|step| leaves.get(step.target.as_str()));
            waiting.extend(targets.filter(|target| seen.insert(target.name.as_str())));
        }
    }
    probes
}
