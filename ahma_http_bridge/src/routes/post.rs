//! POST: reads one message, finds out which era it speaks, and hands it on.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;

use super::exchange::Exchange;
use super::{body, legacy, modern};
use crate::auth::Principal;
use crate::bridge::Bridge;
use crate::http::negotiate::{self, single};
use crate::http::refusal::Refusal;
use crate::http::standard_headers::PROTOCOL_VERSION;
use crate::version;
use ahma_common::envelope::{self, Envelope, Kind};

pub(crate) async fn post(
    State(bridge): State<Arc<Bridge>>,
    Extension(principal): Extension<Arc<Principal>>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, &bridge.settings).await?;
    let wanted = negotiate::wanted(&parts.headers)?;
    negotiate::require_json(&parts.headers)?;
    let exchange = Exchange::new(&bridge, &principal, &parts, wanted, &body);
    if envelope::is_batch(&body) {
        return legacy::batch(exchange).await;
    }
    let envelope = Envelope::parse(&body)?;
    dispatch(exchange, &envelope)
        .await
        .map_err(|refusal| match &envelope.kind {
            Kind::Request { id, .. } => refusal.for_request(id.get()),
            Kind::Notification { .. } | Kind::Response { .. } => refusal,
        })
}

async fn dispatch(exchange: Exchange<'_>, envelope: &Envelope<'_>) -> Result<Response, Refusal> {
    let params = envelope.params()?;
    let meta = params.meta()?;
    let header_version = single(exchange.headers, PROTOCOL_VERSION)?;
    // `initialize` opens the legacy era whatever version it names, unless it carries the mark of the other.
    let is_initialize = envelope.method() == Some("initialize") && meta.protocol_version.is_none();
    let is_modern = header_version.is_some_and(version::is_modern)
        || meta.protocol_version.is_some()
        || envelope.method() == Some("server/discover");
    if is_modern && !is_initialize {
        return modern::handle(exchange, envelope, &params, &meta).await;
    }
    match header_version {
        Some(version) if !version::is_legacy(version) && !is_initialize => Err(Refusal::bad_request(
            format!("protocol version {version} in {PROTOCOL_VERSION} is not supported"),
        )),
        _ => legacy::handle(exchange, envelope).await,
    }
}
