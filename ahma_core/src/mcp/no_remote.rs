//! Stands in for `remote` in builds without the feature `client`: there are no remote servers, so nothing of this runs.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResponse, Tool},
    service::RequestContext,
};

use super::{builtin::RemoteReport, server::Server};
use crate::toolbox::Toolbox;

/// Cannot exist.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Remotes {}

#[derive(Debug)]
pub(super) enum RemoteTool {}

impl Remotes {
    pub(crate) async fn shutdown(&self) {
        match *self {}
    }

    pub(super) async fn list(&self, _: &Toolbox, _: &RequestContext<RoleServer>) -> Vec<Tool> {
        match *self {}
    }

    pub(super) fn find(&self, _: &Toolbox, _: &str) -> Option<RemoteTool> {
        match *self {}
    }

    pub(super) async fn call(
        &self,
        _: RemoteTool,
        _: CallToolRequestParams,
        _: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match *self {}
    }

    pub(super) fn report(&self, _: &Toolbox) -> Vec<RemoteReport> {
        match *self {}
    }

    pub(super) fn problems(&self) -> Vec<String> {
        match *self {}
    }
}

pub(super) async fn follow(_: Arc<Server>) {}

pub(super) async fn tell_of_logins(_: Arc<Server>) {}
