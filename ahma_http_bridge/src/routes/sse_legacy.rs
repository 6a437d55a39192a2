//! The HTTP+SSE transport of 2024-11-05: one event stream per session, messages posted separately.
//!
//! The stream is the session: it cannot be resumed. When it ends nothing more is taken from its client, and the session ends
//! once nothing of it runs any more; the next session of that client finds what ran.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;

use super::body;
use super::exchange::{Exchange, UnclaimedSession, deliver, refuse_ended};
use crate::activity::Activity;
use crate::auth::Principal;
use crate::bridge::Bridge;
use crate::http::negotiate::{self, Wanted};
use crate::http::refusal::Refusal;
use crate::http::sse::{self, Opening, StreamGuard};
use crate::session::{InitializeOutcome, RequestError, Session, Transport};
use ahma_common::envelope::{Envelope, RpcRequest};

pub(crate) async fn open(
    State(bridge): State<Arc<Bridge>>,
    Extension(principal): Extension<Arc<Principal>>,
) -> Result<Response, Refusal> {
    let session = bridge.open_session(&principal, Transport::HttpSse)?;
    let endpoint = format!(
        "{}?sessionId={}",
        bridge.settings.sse_path.messages(),
        session.id()
    );
    let reader = session.streams.standing().read_after(None);
    let keep_alive = bridge.settings.times.keep_alive;
    let guard = DisconnectOnDrop {
        _activity: session.use_it(),
        session,
    };
    Ok(sse::response(
        reader,
        Opening::Endpoint(endpoint),
        keep_alive,
        guard,
    ))
}

pub(crate) async fn message(
    State(bridge): State<Arc<Bridge>>,
    Extension(principal): Extension<Arc<Principal>>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, &bridge.settings).await?;
    negotiate::require_json(&parts.headers)?;
    let query = parts.uri.query().unwrap_or_default();
    let session = url::form_urlencoded::parse(query.as_bytes())
        .find_map(|(key, id)| (key == "sessionId").then(|| bridge.sessions.find(&id, &principal)))
        .flatten()
        .filter(|session| session.transport() == Transport::HttpSse && !session.is_disconnected())
        .ok_or_else(|| Refusal::not_found("no such session; open the event stream first"))?;
    refuse_ended(&session)?;
    let envelope = Envelope::parse(&body)?;
    let exchange = Exchange::new(&bridge, &principal, &parts, Wanted::EventStream, &body);
    match deliver(&session, &envelope).await {
        Some(request) if request.method == "initialize" => initialize(&exchange, &session, request)
            .await
            .map_err(|error| Refusal::from(error).for_request(request.id.get()))?,
        Some(request) => exchange.start_call(&session, request, session.streams.standing()),
        None => {}
    }
    Ok(StatusCode::ACCEPTED.into_response())
}

async fn initialize(
    exchange: &Exchange<'_>,
    session: &Arc<Session>,
    request: RpcRequest<'_>,
) -> Result<(), RequestError> {
    let bridge = exchange.bridge;
    // One that has been initialised stays, whatever its client repeats.
    let unclaimed = (session.version().is_none()).then(|| UnclaimedSession::new(bridge, session));
    let claim = || unclaimed.into_iter().for_each(UnclaimedSession::claim);
    match session.initialize(request, &bridge.initialize_cache).await {
        Ok(InitializeOutcome::Accepted(answer)) => {
            claim();
            bridge.record_opened(session, request.envelope, exchange.address());
            session.push(answer);
            Ok(())
        }
        Ok(InitializeOutcome::Declined(answer)) => {
            session.push(answer);
            Ok(())
        }
        Err(RequestError::InitializedAlready) => {
            claim();
            Err(RequestError::InitializedAlready)
        }
        Err(error) => Err(error),
    }
}

/// Marks the session as disconnected when its stream is gone.
struct DisconnectOnDrop {
    session: Arc<Session>,
    _activity: Activity,
}

impl StreamGuard for DisconnectOnDrop {}

impl Drop for DisconnectOnDrop {
    fn drop(&mut self) {
        self.session.disconnect();
    }
}
