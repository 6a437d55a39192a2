//! GET: the session's standing stream, or a broken stream taken up again.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};

use super::delete::refuse_modern;
use super::exchange::{SESSION_ID, opening_for, refuse_ended, session_of};
use crate::auth::Principal;
use crate::bridge::Bridge;
use crate::http::negotiate::{Wanted, single, wanted};
use crate::http::refusal::Refusal;
use crate::http::sse::{self, Opening};

pub(crate) async fn get(
    State(bridge): State<Arc<Bridge>>,
    Extension(principal): Extension<Arc<Principal>>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    refuse_modern(&headers)?;
    if wanted(&headers)? != Wanted::EventStream {
        return Err(Refusal::new(
            StatusCode::NOT_ACCEPTABLE,
            -32000,
            "GET needs Accept: text/event-stream",
        ));
    }
    let session = session_of(&bridge, &principal, &headers)
        .await?
        .ok_or_else(|| Refusal::bad_request(format!("name the session in the {SESSION_ID} header")))?;
    refuse_ended(&session)?;
    let last_event_id = single(&headers, "last-event-id")?;
    if last_event_id.is_some_and(|id| session.streams.is_from_elsewhere(id)) {
        session.announce_gap();
    }
    // 404 would mean that the session is gone.
    let reader = session.streams.resume(last_event_id).ok_or_else(|| {
        Refusal::bad_request("nothing is kept of the stream of this Last-Event-ID; the session goes on")
    })?;
    let opening = match last_event_id {
        None => opening_for(&session),
        Some(_) => Opening::Retry,
    };
    Ok(sse::response(
        reader,
        opening,
        bridge.settings.times.keep_alive,
        session.use_it(),
    ))
}
