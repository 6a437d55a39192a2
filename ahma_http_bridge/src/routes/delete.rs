//! DELETE: the client ends its session. The answer comes when a child of its own is gone with all commands; a shared one
//! has been told by then, and ends what it ran for the client.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, response::IntoResponse, response::Response};
use http::{HeaderMap, StatusCode};

use super::exchange::{SESSION_ID, no_such_session};
use crate::auth::Principal;
use crate::bridge::Bridge;
use crate::http::negotiate::single;
use crate::http::refusal::Refusal;
use crate::http::standard_headers::PROTOCOL_VERSION;
use crate::version;

pub(crate) async fn delete(
    State(bridge): State<Arc<Bridge>>,
    Extension(principal): Extension<Arc<Principal>>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    refuse_modern(&headers)?;
    let id = single(&headers, SESSION_ID)?
        .ok_or_else(|| Refusal::bad_request("name the session to end in the Mcp-Session-Id header"))?;
    match bridge.delete_session(id, &principal).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(no_such_session()),
    }
}

/// The modern era knows neither sessions nor a stream outside of a request.
pub(crate) fn refuse_modern(headers: &HeaderMap) -> Result<(), Refusal> {
    match single(headers, PROTOCOL_VERSION)? {
        Some(version) if version::is_modern(version) => Err(Refusal::method_not_allowed("POST")),
        _ => Ok(()),
    }
}
