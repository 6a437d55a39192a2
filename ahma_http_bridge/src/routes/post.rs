//! POST: reads one message, finds out which era it speaks, and hands it on.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::OwnedSemaphorePermit;

use super::{body, legacy, modern};
use crate::auth::Principal;
use crate::bridge::Bridge;
use crate::child::{CallParams, Reply};
use crate::envelope::{self, Envelope, Kind, RpcRequest};
use crate::http::negotiate::{self, Wanted, single};
use crate::http::refusal::Refusal;
use crate::http::standard_headers::PROTOCOL_VERSION;
use crate::http::version;
use crate::session::Session;

/// A request as the eras' handlers want it.
#[derive(Debug)]
pub(crate) struct Posted<'a> {
    pub(crate) bridge: &'a Arc<Bridge>,
    pub(crate) principal: &'a Arc<Principal>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) wanted: Wanted,
    pub(crate) body: &'a Bytes,
}

impl Posted<'_> {
    /// How a request of this client is passed on, in a session or without one.
    pub(crate) fn call_params(
        &self,
        request: RpcRequest<'_>,
        session: Option<&Session>,
        permit: OwnedSemaphorePermit,
        reply: Reply,
    ) -> CallParams {
        let sessions = &self.bridge.sessions;
        let without_session = || sessions.owner_without_session(&self.principal.name);
        CallParams {
            reply,
            owner: session.map_or_else(without_session, Session::serial),
            patience: Some(self.bridge.settings.times.request),
            permit: Some(permit),
            activity: session.map(Session::use_it),
            record: self.bridge.record_call(request, self.principal, session),
            provisional: session.and_then(|session| session.subscribing(request)),
        }
    }
}

pub(crate) async fn post(
    State(bridge): State<Arc<Bridge>>,
    Extension(principal): Extension<Arc<Principal>>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, &bridge.settings).await?;
    let wanted = negotiate::wanted(&parts.headers)?;
    negotiate::require_json(&parts.headers)?;
    let posted = Posted {
        bridge: &bridge,
        principal: &principal,
        headers: &parts.headers,
        wanted,
        body: &body,
    };
    if envelope::is_batch(&body) {
        return legacy::batch(posted).await;
    }
    let envelope = Envelope::parse(&body)?;
    dispatch(posted, &envelope)
        .await
        .map_err(|refusal| match &envelope.kind {
            Kind::Request { id, .. } => refusal.for_request(id.get()),
            Kind::Notification { .. } | Kind::Response { .. } => refusal,
        })
}

async fn dispatch(posted: Posted<'_>, envelope: &Envelope<'_>) -> Result<Response, Refusal> {
    let params = envelope.params()?;
    let meta = params.meta()?;
    let header_version = single(posted.headers, PROTOCOL_VERSION)?;
    // `initialize` opens the legacy era whatever version it names, unless it carries the mark of the other.
    let is_initialize = envelope.method() == Some("initialize") && meta.protocol_version.is_none();
    let is_modern = header_version.is_some_and(version::is_modern)
        || meta.protocol_version.is_some()
        || envelope.method() == Some("server/discover");
    if is_modern && !is_initialize {
        return modern::handle(posted, envelope, &params, &meta).await;
    }
    match header_version {
        Some(version) if !version::is_legacy(version) && !is_initialize => Err(Refusal::bad_request(
            format!("protocol version {version} in {PROTOCOL_VERSION} is not supported"),
        )),
        _ => legacy::handle(posted, envelope).await,
    }
}
