//! From valid tool files to the catalogue.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use super::{
    builtin,
    input_schema::input_schema,
    tool::{Catalog, CatalogSettings, Tool},
};
use crate::mtdf::{Annotations, AvailabilityCheck, Leaf, LeafAction, ToolDef};

impl Catalog {
    /// The enabled tools of `files`, plus the built-in ones. A name that is taken twice goes to the first file.
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
        let built_in = builtin::tools(settings).into_iter();
        let mut tools: BTreeMap<String, Arc<Tool>> =
            built_in.map(|tool| (tool.name.clone(), Arc::new(tool))).collect();
        for (file, leaf) in enabled() {
            tools.entry(leaf.name.clone()).or_insert_with(|| {
                Arc::new(Tool {
                    name: leaf.name.clone(),
                    description: leaf.description.trim().to_owned(),
                    input_schema: Arc::new(input_schema(leaf)),
                    annotations: complete(&leaf.annotations),
                    file: Some(file.file.clone()),
                    probes: probes(leaf, &leaves),
                    install_instructions: leaf.install_instructions.clone(),
                    leaf: Arc::clone(leaf),
                })
            });
        }
        Self {
            tools,
            expose: settings.expose,
        }
    }
}

/// All four hints for clients. A missing one is set to the worst that a program can do, because clients skip the question to
/// their user where a hint allows it.
fn complete(given: &Annotations) -> Annotations {
    let reads_only = given.read_only.unwrap_or(false);
    Annotations {
        title: given.title.clone(),
        read_only: Some(reads_only),
        destructive: Some(!reads_only && given.destructive.unwrap_or(true)),
        idempotent: Some(given.idempotent.unwrap_or(reads_only)),
        open_world: Some(given.open_world.unwrap_or(true)),
    }
}

/// Availability checks of the leaf, each one once.
fn probes(leaf: &Leaf, leaves: &HashMap<&str, &Leaf>) -> Vec<Arc<AvailabilityCheck>> {
    let mut probes: Vec<Arc<AvailabilityCheck>> = Vec::new();
    let mut seen = HashSet::from([leaf.name.as_str()]);
    let mut waiting = vec![leaf];
    while let Some(leaf) = waiting.pop() {
        for probe in &leaf.probes {
            if !probes.contains(probe) {
                probes.push(Arc::clone(probe));
            }
        }
        if let LeafAction::Sequence(sequence) = &leaf.action {
            let targets = sequence
                .steps
                .iter()
                .filter_map(|step| leaves.get(step.target.as_str()));
            waiting.extend(targets.filter(|target| seen.insert(target.name.as_str())));
        }
    }
    probes
}
