//! Messages between front ends and workers about tools and operations; JSON for `ahma_cluster`.

use std::io;

use serde::{Deserialize, Serialize};

use crate::{
    mtdf::ToolSource,
    observe::Progress,
    operation::{LossCause, Outcome, StepPosition},
};

/// Progress of a running operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ProgressReport {
    pub(super) progress: Progress,
    pub(super) step: Option<StepPosition>,
    pub(super) ready: bool,
}

/// The end of an operation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct EndReport {
    pub(super) outcome: Option<Outcome>,
    /// Reason why the worker did not run it.
    pub(super) refusal: Option<String>,
    pub(super) lost: Option<LostOutput>,
}

/// Output that is not kept.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LostOutput {
    pub(super) total_bytes: u64,
    pub(super) total_lines: u64,
    /// The last bytes.
    pub(super) tail: Vec<u8>,
    pub(super) cause: LossCause,
}

/// The tools of a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Announcement {
    /// Name and text of each tool file.
    pub(super) files: Vec<(String, String)>,
    pub(super) file_tools: bool,
    pub(super) read_only_shell: bool,
    pub(super) unavailable: Vec<UnavailableThere>,
}

/// A tool that does not work on a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnavailableThere {
    pub(super) tool: String,
    pub(super) reason: String,
    pub(super) install_instructions: Option<String>,
}

/// Tool files repeat themselves, and a message has a limit.
const COMPRESSION: i32 = 3;

/// Far more than all packs together.
const MAX_BYTES: usize = 64 << 20;

impl Announcement {
    pub(super) fn sources(&self) -> impl Iterator<Item = ToolSource> + '_ {
        self.files.iter().map(|(name, text)| ToolSource {
            name: name.clone(),
            text: text.clone(),
        })
    }

    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        zstd::bulk::compress(&serde_json::to_vec(self)?, COMPRESSION)
    }

    pub(super) fn decode(message: &[u8]) -> io::Result<Self> {
        Ok(serde_json::from_slice(&zstd::bulk::decompress(
            message, MAX_BYTES,
        )?)?)
    }
}
