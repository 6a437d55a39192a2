//! The tools directory: loading, reloading and availability.
//!
//! One task, the keeper, owns everything that changes: what the files said last, and which programs were found. It
//! publishes a new [`Toolbox`] whenever either changes; everyone else only reads. A file that does not make sense never
//! takes another one down, and a bad edit leaves the version before it in place.

mod keeper;
mod load;
mod probe;
mod shelf;
mod watch;

use std::path::{Path, PathBuf};

pub use keeper::{ToolboxHandle, ToolboxSettings, open};
pub use load::read_tool_file;
pub use probe::Prober;

use crate::{
    catalog::{Catalog, Tool},
    mtdf::Problem,
};

/// The tools as they stand at one moment.
#[derive(Debug, Clone, Default)]
pub struct Toolbox {
    /// Every enabled tool of every good file.
    pub catalog: Catalog,
    /// Those of them that can be called: what they need was found, or is still being looked for.
    pub offered: Catalog,
    /// In the order of their names.
    pub unavailable: Vec<Unavailable>,
    /// Of all files, in the order of their names.
    pub problems: Vec<Problem>,
    /// Files that were edited into something broken; their last good version is in use.
    pub stale: Vec<String>,
    pub directory: PathBuf,
    /// Why the directory as a whole gave no tools.
    pub directory_problem: Option<String>,
    /// How many probes have not answered yet; one that is asked again has.
    pub probing: usize,
    /// How often the directory was read; 0 before the first time.
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
    fn new(tool: &Tool, reason: String) -> Self {
        Self {
            tool: tool.name.clone(),
            file: tool.file.clone(),
            reason,
            install_instructions: tool.install_instructions.clone(),
        }
    }
}

/// Looks for what one tool needs; nothing if all of it is there.
pub async fn look_for(tool: &Tool, prober: &Prober, scope: &Path) -> Option<Unavailable> {
    for probe in &tool.probes {
        if let Err(reason) = prober.ask(scope, probe).await {
            return Some(Unavailable::new(tool, reason));
        }
    }
    None
}

impl Toolbox {
    /// Why a tool that exists cannot be called, if it cannot.
    pub fn lacks(&self, tool: &str) -> Option<&Unavailable> {
        self.unavailable
            .iter()
            .find(|unavailable| unavailable.tool == tool)
    }

    /// Whether clients would see another list of tools.
    pub fn offers_the_same_as(&self, other: &Self) -> bool {
        self.offered.len() == other.offered.len()
            && self
                .offered
                .tools()
                .zip(other.offered.tools())
                .all(|(ours, theirs)| {
                    ours.name == theirs.name
                        && ours.description == theirs.description
                        && ours.annotations == theirs.annotations
                        && ours.input_schema == theirs.input_schema
                })
    }
}
