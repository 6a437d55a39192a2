//! Stands in for `remote` in builds without the feature `client`: nothing is mounted.

use std::sync::Arc;

use super::{active_sandbox::ActiveSandbox, settings::Settings};
use crate::mcp::Remotes;

/// Cannot exist.
#[derive(Debug)]
pub(crate) enum Mount {}

pub(crate) fn is_configured(_: &Settings) -> bool {
    false
}

pub(crate) async fn mount(_: &Settings, _: &ActiveSandbox) -> Option<Mount> {
    None
}

impl Mount {
    pub(crate) fn remotes(&self) -> Arc<Remotes> {
        match *self {}
    }

    pub(crate) async fn end(self) {
        match self {}
    }
}
