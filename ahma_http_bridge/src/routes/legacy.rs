//! POST in the revisions with sessions, 2025-03-26 to 2025-11-25.

use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use bytes::{BufMut, BytesMut};
use futures::future::join_all;
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::post::Posted;
use crate::auth::Principal;
use crate::bridge::Bridge;
use crate::child::{Answer, CallFailure, Child, Reply};
use crate::envelope::{Envelope, EnvelopeError, Kind, RpcRequest, batch_members};
use crate::http::negotiate::{Wanted, single};
use crate::http::refusal::{Era, Refusal, json_response, status_of};
use crate::http::sse::{self, Opening};
use crate::http::standard_headers::PROTOCOL_VERSION;
use crate::http::version;
use crate::session::{EndReason, Greeting, Place, Session, SessionError, Transport};
use crate::stream::{EventStream, Keep, Next};

pub(crate) const SESSION_ID: &str = "mcp-session-id";

/// How long the head of an event stream waits for its first event. An answer that comes by then has the
/// status it deserves and goes out in one piece.
pub(crate) const HEAD_PATIENCE: Duration = Duration::from_secs(1);

/// The session the headers name, `None` if they name none.
pub(crate) fn session_of(
    bridge: &Bridge,
    principal: &Principal,
    headers: &HeaderMap,
) -> Result<Option<Arc<Session>>, Refusal> {
    let Some(id) = single(headers, SESSION_ID)? else {
        return Ok(None);
    };
    match bridge.sessions.find(id, principal) {
        Some(session) if session.transport() == Transport::StreamableHttp => Ok(Some(session)),
        _ => Err(Refusal::not_found(
            "no such session; send initialize to start one",
        )),
    }
}

pub(crate) fn refuse_ended(session: &Session) -> Result<(), Refusal> {
    match session.end_reason() {
        Some(reason) => Err(SessionError::Ended(reason).into()),
        None => Ok(()),
    }
}

pub(crate) async fn handle(posted: Posted<'_>, envelope: &Envelope<'_>) -> Result<Response, Refusal> {
    if envelope.method() == Some("initialize") {
        return initialize(posted, envelope).await;
    }
    let Some(session) = session_of(posted.bridge, posted.principal, posted.headers)? else {
        return without_session(posted, envelope).await;
    };
    refuse_ended(&session)?;
    let _activity = session.use_it();
    match &envelope.kind {
        Kind::Notification { .. } => {
            session.notified(envelope).await;
            Ok(StatusCode::ACCEPTED.into_response())
        }
        Kind::Response { .. } => {
            session.answered(envelope).await;
            Ok(StatusCode::ACCEPTED.into_response())
        }
        Kind::Request { id, method } => answer(posted, &session, RpcRequest { envelope, id, method }).await,
    }
}

async fn initialize(posted: Posted<'_>, envelope: &Envelope<'_>) -> Result<Response, Refusal> {
    let Ok(request) = envelope.request() else {
        return Err(Refusal::bad_request("`initialize` is a request and needs an id"));
    };
    let bridge = posted.bridge;
    let session = bridge.open_session(posted.principal, Transport::StreamableHttp)?;
    let _activity = session.use_it();
    let unclaimed = Unclaimed::new(bridge, &session);
    let answered = |body| match posted.wanted {
        Wanted::Json => json_response(StatusCode::OK, body),
        Wanted::EventStream => sse::single_response(&body),
    };
    let mut response = match session.initialize(request, &bridge.greeter).await? {
        Greeting::Welcome(body) => answered(body),
        Greeting::Declined(body) => return Ok(answered(body)),
    };
    unclaimed.claim();
    bridge.record_opened(&session, envelope);
    if let Ok(id) = HeaderValue::from_str(session.id()) {
        response.headers_mut().insert(SESSION_ID, id);
    }
    Ok(response)
}

/// A session that no client can use yet. It ends if it stays so: when `initialize` fails it cannot be repeated, and a
/// client that goes away meanwhile does not know how far it came, nor maybe the id.
pub(crate) struct Unclaimed<'a> {
    bridge: &'a Arc<Bridge>,
    session: Option<&'a Arc<Session>>,
}

impl<'a> Unclaimed<'a> {
    pub(crate) fn new(bridge: &'a Arc<Bridge>, session: &'a Arc<Session>) -> Self {
        Self {
            bridge,
            session: Some(session),
        }
    }

    pub(crate) fn claim(mut self) {
        self.session = None;
    }
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            let (bridge, session) = (Arc::clone(self.bridge), Arc::clone(session));
            let tasks = bridge.tasks.clone();
            tasks.spawn(async move { bridge.end_session(session, EndReason::NotInitialized).await });
        }
    }
}

/// Without isolation a client may do without a session too; it then hears answers and nothing else.
async fn without_session(posted: Posted<'_>, envelope: &Envelope<'_>) -> Result<Response, Refusal> {
    if !posted.bridge.is_shared() {
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
    posted.bridge.refuse_under_pressure()?;
    let permit = posted.bridge.guests.permit(posted.principal)?;
    let child = posted.bridge.child_without_session(posted.principal).await?.child;
    match posted.wanted {
        Wanted::Json => {
            let answer = ask(&child, request, &posted, None, permit, None).await;
            Ok(json_response(status_of(answer.verdict, Era::Legacy), answer.body))
        }
        Wanted::EventStream => {
            let stream = EventStream::for_answers(0, Keep::UntilRead, 1);
            let params = posted.call_params(request, None, permit, Reply::Events(Arc::clone(&stream)));
            // A failure to send is in the stream.
            let _ = child.call(request, params);
            Ok(stream_response(&stream, None, Opening::Retry, posted.bridge).await)
        }
    }
}

async fn answer(
    posted: Posted<'_>,
    session: &Arc<Session>,
    request: RpcRequest<'_>,
) -> Result<Response, Refusal> {
    match posted.wanted {
        Wanted::Json => {
            let answer = answer_for(&posted, session, request).await?;
            Ok(json_response(status_of(answer.verdict, Era::Legacy), answer.body))
        }
        Wanted::EventStream => {
            let stream = session.outward.open_request(1);
            start_call(&posted, session, request, &stream);
            Ok(stream_response(&stream, Some(session), opening_for(session), posted.bridge).await)
        }
    }
}

/// The answer to a request as one value.
async fn answer_for(
    posted: &Posted<'_>,
    session: &Arc<Session>,
    request: RpcRequest<'_>,
) -> Result<Answer, Refusal> {
    if let Some(answer) = session.answer_here(request) {
        return Ok(answer);
    }
    let permit = session.permit()?;
    let (child, place) = match session.running() {
        Some(child) => (child, None),
        None => {
            let place = session.wait_as(request.id);
            let patience = posted.bridge.settings.times.request;
            (session.ready_for(&place, patience).await?, Some(place))
        }
    };
    Ok(ask(&child, request, posted, Some(session), permit, place).await)
}

async fn ask(
    child: &Child,
    request: RpcRequest<'_>,
    posted: &Posted<'_>,
    session: Option<&Session>,
    permit: OwnedSemaphorePermit,
    place: Option<Place>,
) -> Answer {
    let (tx, answer) = oneshot::channel();
    let params = posted.call_params(request, session, permit, Reply::Once(tx));
    // A failure to send reaches the receiver too.
    let number = child.call(request, params);
    take_back(child, number, place.as_ref(), session);
    answer.await.unwrap_or_else(|_| Answer::lost())
}

/// Cancels a request that the child has now and had better not have. Whoever ends a session or cancels a request marks
/// it before looking among those the child has; this looks at the marks after the child has it.
fn take_back(
    child: &Child,
    number: Result<u64, CallFailure>,
    place: Option<&Place>,
    session: Option<&Session>,
) {
    let Ok(number) = number else { return };
    if session.is_some_and(|session| session.over().is_some()) {
        child.cancel(number, CallFailure::SessionEnded, "the session ended");
    } else if place.is_some_and(Place::is_cancelled) {
        child.cancel(number, CallFailure::Cancelled, "the client cancelled it");
    }
}

/// Passes a request on, now if the child is there, else as soon as it is; the stream hears of it in any case.
/// It may take the client's help to get there, which it is asked for on that same stream.
pub(crate) fn start_call(
    posted: &Posted<'_>,
    session: &Arc<Session>,
    request: RpcRequest<'_>,
    stream: &Arc<EventStream>,
) {
    if let Some(answer) = session.answer_here(request) {
        return stream.finish(answer);
    }
    let permit = match session.permit() {
        Ok(permit) => permit,
        Err(error) => return stream.finish(Refusal::from(error).into_answer(request.id.get())),
    };
    let params = posted.call_params(request, Some(session), permit, Reply::Events(Arc::clone(stream)));
    if let Some(child) = session.running() {
        // A failure to send is in the stream.
        let number = child.call(request, params);
        return take_back(&child, number, None, Some(session));
    }
    let patience = posted.bridge.settings.times.request;
    let message = Box::<str>::from(request.envelope.text());
    let (session, stream, id) = (Arc::clone(session), Arc::clone(stream), request.id.to_owned());
    // Here and not in the task, which may begin after the client has taken the request back.
    let (activity, place) = (session.use_it(), session.wait_as(&id));
    posted.bridge.tasks.spawn(async move {
        let _activity = activity;
        let call = |child: &Child| -> Result<_, EnvelopeError> {
            let envelope = Envelope::parse(message.as_bytes())?;
            Ok(child.call(envelope.request()?, params))
        };
        match session.ready_for(&place, patience).await {
            Ok(child) => match call(&child) {
                Ok(number) => take_back(&child, number, Some(&place), Some(&session)),
                Err(error) => stream.finish(Refusal::from(error).into_answer(id.get())),
            },
            Err(SessionError::Cancelled) => stream.finish(CallFailure::Cancelled.answer(id.get())),
            Err(error) => stream.finish(Refusal::from(error).into_answer(id.get())),
        }
    });
}

fn opening_for(session: &Session) -> Opening {
    match session.version() {
        Some(version) if version >= version::FIRST_WITH_PRIMING => Opening::Priming,
        _ => Opening::Retry,
    }
}

/// Answers with a stream; with a plain response if everything is there already.
async fn stream_response(
    stream: &Arc<EventStream>,
    session: Option<&Arc<Session>>,
    opening: Opening,
    bridge: &Bridge,
) -> Response {
    let mut reader = stream.read_after(None);
    let opening = match tokio::time::timeout(HEAD_PATIENCE, reader.next()).await {
        Ok(Next::Event(event)) => match event.verdict {
            Some(verdict) if stream.is_exhausted() => {
                if let Some(session) = session {
                    session.outward.forget(stream);
                }
                return match status_of(verdict, Era::Legacy) {
                    StatusCode::OK => sse::single_response(&event.body),
                    status => json_response(status, event.body),
                };
            }
            _ => Opening::Event(event),
        },
        Ok(Next::End) => return sse::empty_response(),
        Ok(Next::Missed(_)) | Err(_) => opening,
    };
    let keep_alive = bridge.settings.times.keep_alive;
    match session {
        Some(session) => sse::response(reader, opening, keep_alive, session.use_it()),
        None => sse::response(reader, opening, keep_alive, ()),
    }
}

/// Several messages in one body, which only the 2025-03-26 revision has.
pub(crate) async fn batch(posted: Posted<'_>) -> Result<Response, Refusal> {
    let session = session_of(posted.bridge, posted.principal, posted.headers)?;
    let header = single(posted.headers, PROTOCOL_VERSION)?;
    let has_batches = |session: &Arc<Session>| session.version().or(header) == Some(version::WITH_BATCHES);
    let Some(session) = session.filter(has_batches) else {
        return Err(Refusal::bad_request(
            "only sessions of revision 2025-03-26 may send batches",
        ));
    };
    refuse_ended(&session)?;
    let _activity = session.use_it();
    let members = batch_members(posted.body)?;
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
    for envelope in &envelopes {
        match envelope.kind {
            Kind::Notification { .. } => session.notified(envelope).await,
            Kind::Response { .. } => session.answered(envelope).await,
            Kind::Request { .. } => {}
        }
    }
    let requests: Vec<_> = envelopes
        .iter()
        .filter_map(|envelope| envelope.request().ok())
        .collect();
    if requests.is_empty() {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    if posted.wanted == Wanted::EventStream {
        let stream = session.outward.open_request(requests.len());
        requests
            .iter()
            .for_each(|request| start_call(&posted, &session, *request, &stream));
        return Ok(stream_response(&stream, Some(&session), opening_for(&session), posted.bridge).await);
    }
    let answers = join_all(
        requests
            .iter()
            .map(|request| batch_answer(&posted, &session, *request)),
    )
    .await;
    let mut body = BytesMut::from(&b"["[..]);
    for (place, answer) in answers.iter().enumerate() {
        if place > 0 {
            body.put_u8(b',');
        }
        body.put_slice(&answer.body);
    }
    body.put_u8(b']');
    Ok(json_response(StatusCode::OK, body.freeze()))
}

async fn batch_answer(posted: &Posted<'_>, session: &Arc<Session>, request: RpcRequest<'_>) -> Answer {
    answer_for(posted, session, request)
        .await
        .unwrap_or_else(|refusal| refusal.into_answer(request.id.get()))
}
