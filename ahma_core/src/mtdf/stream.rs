//! The `stream` block of a tool file, as it stands on disk.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the output of a tool is read for progress and findings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamBlock {}
