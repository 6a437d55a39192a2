//! Stands in for `remote` in builds without the feature `client`: nothing is mounted.

use std::sync::Arc;

use super::{active_sandbox::ActiveSandbox, settings::Settings};
use crate::mcp::Remotes;

#[derive(Debug)]
pub(crate) struct Mount;

pub(crate) fn is_configured(_: &Settings) -> bool {
    false
}

pub(crate) async fn mount(_: &Settings, _: &ActiveSandbox) -> Mount {
    Mount
}

impl Mount {
    pub(crate) fn remotes(&self) -> Option<Arc<Remotes>> {
        None
    }

    pub(crate) async fn end(self) {}
}
