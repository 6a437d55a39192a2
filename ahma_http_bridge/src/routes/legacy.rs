//! POST in the revisions with sessions, 2025-03-26 to 2025-11-25.

use std::sync::Arc;

use ahma_common::envelope::{Envelope, RpcRequest, batch_members};
use axum::response::{IntoResponse, Response};
use bytes::{BufMut, BytesMut};
use futures::future::join_all;
use http::{HeaderValue, StatusCode};

use super::exchange::{Exchange, SESSION_ID, UnclaimedSession, answer_response, deliver, refuse_ended};
use crate::http::negotiate::{Wanted, single};
use crate::http::refusal::{Era, Refusal, error_body, json_response};
use crate::http::sse;
use crate::http::standard_headers::PROTOCOL_VERSION;
use crate::session::{InitializeOutcome, Session, Transport};
use crate::version;

pub(crate) async fn handle(exchange: Exchange<'_>, envelope: &Envelope<'_>) -> Result<Response, Refusal> {
    if envelope.method() == Some("initialize") {
        return initialize(exchange, envelope).await;
    }
    let Some(session) = exchange.session().await? else {
        return without_session(exchange, envelope).await;
    };
    refuse_ended(&session)?;
    let _activity = session.use_it();
    let Some(request) = deliver(&session, envelope).await else {
        return Ok(StatusCode::ACCEPTED.into_response());
    };
    session.note_request(request).await;
    match exchange.wanted {
        Wanted::Json => {
            let answer = exchange.answer(&session, request).await?;
            Ok(answer_response(answer, Era::Legacy))
        }
        Wanted::EventStream => Ok(stream(&exchange, &session, &[request]).await),
    }
}

/// Answers requests of a session on one stream.
async fn stream(exchange: &Exchange<'_>, session: &Arc<Session>, requests: &[RpcRequest<'_>]) -> Response {
    let stream = session.streams.open_request(requests.len());
    for request in requests {
        exchange.start_call(session, *request, &stream);
    }
    exchange
        .stream_response(&stream, Some(session), Era::Legacy, session.use_it())
        .await
}

async fn initialize(exchange: Exchange<'_>, envelope: &Envelope<'_>) -> Result<Response, Refusal> {
    let Ok(request) = envelope.request() else {
        return Err(Refusal::bad_request("`initialize` is a request and needs an id"));
    };
    let bridge = exchange.bridge;
    let session = bridge.open_session(exchange.principal, Transport::StreamableHttp)?;
    let _activity = session.use_it();
    let unclaimed = UnclaimedSession::new(bridge, &session);
    let answered = |body| match exchange.wanted {
        Wanted::Json => json_response(StatusCode::OK, body),
        Wanted::EventStream => sse::single_response(&body),
    };
    let mut response = match session.initialize(request, &bridge.initialize_cache).await? {
        InitializeOutcome::Accepted(body) => answered(body),
        InitializeOutcome::Declined(body) => return Ok(answered(body)),
    };
    bridge.keep_session(&session, envelope).await;
    unclaimed.claim();
    bridge.record_opened(&session, envelope, exchange.address());
    if let Ok(id) = HeaderValue::from_str(session.id()) {
        response.headers_mut().insert(SESSION_ID, id);
    }
    Ok(response)
}

/// Without isolation a client may do without a session too; it then gets answers and nothing else.
async fn without_session(exchange: Exchange<'_>, envelope: &Envelope<'_>) -> Result<Response, Refusal> {
    if !exchange.bridge.is_shared() {
        return Err(Refusal::bad_request(format!(
            "send the {SESSION_ID} header that initialize was answered with"
        )));
    }
    let Ok(request) = envelope.request() else {
        return Ok(StatusCode::ACCEPTED.into_response());
    };
    if matches!(request.method, "resources/subscribe" | "resources/unsubscribe") {
        return Err(Refusal::bad_request(
            "updates of a resource go to a session; send initialize to start one",
        ));
    }
    let timeout = Some(exchange.bridge.settings.times.request);
    let keep = |lease, _number| lease;
    exchange
        .answer_without_session(request, timeout, Era::Legacy, keep)
        .await
}

/// Several messages in one body, which only the 2025-03-26 revision has.
pub(crate) async fn batch(exchange: Exchange<'_>) -> Result<Response, Refusal> {
    let session = exchange.session().await?;
    let header = single(exchange.headers, PROTOCOL_VERSION)?;
    let has_batches = |session: &Arc<Session>| session.version().or(header) == Some(version::WITH_BATCHES);
    let Some(session) = session.filter(has_batches) else {
        return Err(Refusal::bad_request(
            "only sessions of revision 2025-03-26 may send batches",
        ));
    };
    refuse_ended(&session)?;
    let _activity = session.use_it();
    let members = batch_members(exchange.body)?;
    let envelopes = members
        .iter()
        .map(|member| Envelope::parse(member.get().as_bytes()))
        .collect::<Result<Vec<_>, _>>()?;
    if envelopes
        .iter()
        .any(|envelope| envelope.method() == Some("initialize"))
    {
        return Err(Refusal::bad_request("`initialize` must not be in a batch"));
    }
    let mut requests = Vec::new();
    for envelope in &envelopes {
        requests.extend(deliver(&session, envelope).await);
    }
    if requests.is_empty() {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    for request in &requests {
        session.note_request(*request).await;
    }
    if exchange.wanted == Wanted::EventStream {
        return Ok(stream(&exchange, &session, &requests).await);
    }
    let answers = requests.iter().map(|request| async {
        match exchange.answer(&session, *request).await {
            Ok(answer) => answer.body,
            Err(error) => error_body(&error, request.id.get()),
        }
    });
    let mut body = BytesMut::from(&b"["[..]);
    for (index, answer) in join_all(answers).await.iter().enumerate() {
        if index > 0 {
            body.put_u8(b',');
        }
        body.put_slice(answer);
    }
    body.put_u8(b']');
    Ok(json_response(StatusCode::OK, body.freeze()))
}
