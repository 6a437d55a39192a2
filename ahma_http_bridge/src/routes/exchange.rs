//! One HTTP request and its response, with what all revisions of the protocol share: finding the session, passing a request on,
//! and answering with JSON or with an event stream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ahma_common::envelope::{Envelope, EnvelopeError, Kind, RpcRequest};
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::activity::Activity;
use crate::auth::Principal;
use crate::bridge::Bridge;
use crate::child::{Answer, CallFailure, CallParams, Child, Reply, ReplySink as _};
use crate::http::negotiate::{Wanted, single};
use crate::http::refusal::{Era, Refusal, error_body, json_response, status_of};
use crate::http::sse::{self, Opening, StreamGuard};
use crate::peer::Peer;
use crate::session::{
    BackendLease, EndReason, EventStream, Keep, Next, OpenCall, RequestError, Session, Transport,
    WaitingRequest,
};
use crate::version;

pub(crate) const SESSION_ID: &str = "mcp-session-id";

/// Time that the head of an event stream waits for its first event. An answer that comes by then gets its own status and
/// goes out in one piece.
const HEAD_TIMEOUT: Duration = Duration::from_secs(1);

/// A request with everything that its handler needs.
#[derive(Debug)]
pub(crate) struct Exchange<'a> {
    pub(crate) bridge: &'a Arc<Bridge>,
    pub(crate) principal: &'a Arc<Principal>,
    pub(crate) peer: Option<Peer>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) wanted: Wanted,
    pub(crate) body: &'a Bytes,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(
        bridge: &'a Arc<Bridge>,
        principal: &'a Arc<Principal>,
        parts: &'a Parts,
        wanted: Wanted,
        body: &'a Bytes,
    ) -> Self {
        Self {
            bridge,
            principal,
            peer: parts.extensions.get().copied(),
            headers: &parts.headers,
            wanted,
            body,
        }
    }

    /// The session that the headers name, `None` if they name none.
    pub(super) async fn session(&self) -> Result<Option<Arc<Session>>, Refusal> {
        session_of(self.bridge, self.principal, self.headers).await
    }

    /// Address of the client.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.peer.map(|peer| peer.address)
    }

    /// Parameters for passing a request of this client on, in a session or without one.
    pub(super) fn call_params(
        &self,
        request: RpcRequest<'_>,
        session: Option<&Session>,
        permit: OwnedSemaphorePermit,
        reply: Reply,
    ) -> CallParams {
        let without_session = || self.bridge.sessions.client_without_session(&self.principal.name);
        CallParams {
            reply,
            client: session.map_or_else(without_session, Session::serial),
            principal: self.principal.identity(),
            program: session.and_then(Session::program),
            tools: self.principal.tools.clone(),
            timeout: Some(self.bridge.settings.times.request),
            observer: Some(Box::new(OpenCall {
                _permit: permit,
                _activity: session.map(Session::use_it),
                record: self.bridge.record_call(request, self.principal, session),
                claim: session.and_then(|session| session.subscribing(request)),
            })),
        }
    }

    /// The answer to a request of a session as one value.
    pub(super) async fn answer(
        &self,
        session: &Arc<Session>,
        request: RpcRequest<'_>,
    ) -> Result<Answer, RequestError> {
        if let Some(answer) = session.answer_here(request) {
            return Ok(answer);
        }
        let permit = session.permit()?;
        let (child, waiting) = match session.running() {
            Some(child) => (child, None),
            None => {
                let waiting = session.wait_as(request.id);
                let timeout = self.bridge.settings.times.request;
                (session.ready_for(&waiting, timeout).await?, Some(waiting))
            }
        };
        let (tx, answer) = oneshot::channel();
        let params = self.call_params(request, Some(session), permit, Reply::Once(tx));
        // A failure to send reaches the receiver too.
        let number = child.call(request, params);
        take_back(&child, number, waiting.as_ref(), session);
        Ok(answer.await.unwrap_or_else(|_| Answer::lost()))
    }

    /// Answers a request that stands alone. `guard` is made of its child and its number there, and lives until it is answered.
    pub(super) async fn answer_without_session<G: StreamGuard>(
        &self,
        request: RpcRequest<'_>,
        timeout: Option<Duration>,
        era: Era,
        guard: impl FnOnce(BackendLease, Option<u64>) -> G,
    ) -> Result<Response, Refusal> {
        self.bridge.refuse_under_pressure()?;
        let permit = self.bridge.sessionless.permit(self.principal)?;
        let lease = self.bridge.child_without_session(self.principal).await?;
        let call = |reply| {
            let params = self.call_params(request, None, permit, reply);
            // A failure to send is in the reply.
            lease.child.call(request, CallParams { timeout, ..params }).ok()
        };
        match self.wanted {
            Wanted::Json => {
                let (tx, answer) = oneshot::channel();
                let number = call(Reply::Once(tx));
                let mut guard = guard(lease, number);
                let answer = answer.await.unwrap_or_else(|_| Answer::lost());
                guard.completed();
                Ok(answer_response(answer, era))
            }
            Wanted::EventStream => {
                let stream = EventStream::for_answers(0, Keep::UntilRead, 1);
                let number = call(Reply::Events(Arc::clone(&stream) as _));
                let guard = guard(lease, number);
                Ok(self.stream_response(&stream, None, era, guard).await)
            }
        }
    }

    /// Passes a request on, now if the child is there, else as soon as it is; the answer or the failure goes to the stream. It may
    /// take the client's help to get there, which it is asked for on that same stream.
    pub(super) fn start_call(
        &self,
        session: &Arc<Session>,
        request: RpcRequest<'_>,
        stream: &Arc<EventStream>,
    ) {
        if let Some(answer) = session.answer_here(request) {
            return stream.finish(answer);
        }
        let permit = match session.permit() {
            Ok(permit) => permit,
            Err(error) => return refuse(stream, request.id, error),
        };
        let reply = Reply::Events(Arc::clone(stream) as _);
        let params = self.call_params(request, Some(session), permit, reply);
        if let Some(child) = session.running() {
            // A failure to send is in the stream.
            let number = child.call(request, params);
            return take_back(&child, number, None, session);
        }
        let timeout = self.bridge.settings.times.request;
        let message = Box::<str>::from(request.envelope.text());
        let (session, stream, id) = (Arc::clone(session), Arc::clone(stream), request.id.to_owned());
        // Here and not in the task, which may begin after the client has taken the request back.
        let (activity, waiting) = (session.use_it(), session.wait_as(&id));
        self.bridge.tasks.spawn(async move {
            let _activity = activity;
            let call = |child: &Child| -> Result<_, EnvelopeError> {
                let envelope = Envelope::parse(message.as_bytes())?;
                Ok(child.call(envelope.request()?, params))
            };
            match session.ready_for(&waiting, timeout).await {
                Ok(child) => match call(&child) {
                    Ok(number) => take_back(&child, number, Some(&waiting), &session),
                    Err(error) => refuse(&stream, &id, error.into()),
                },
                Err(error) => refuse(&stream, &id, error),
            }
        });
    }

    /// Answers with a stream; with a plain response if everything is there already. `guard` lives as long as the stream is read.
    pub(super) async fn stream_response<G: StreamGuard>(
        &self,
        stream: &Arc<EventStream>,
        session: Option<&Session>,
        era: Era,
        mut guard: G,
    ) -> Response {
        let mut reader = stream.read_after(None);
        let opening = match tokio::time::timeout(HEAD_TIMEOUT, reader.next()).await {
            Ok(Next::Event(event)) => match &event.outcome {
                Some(outcome) if stream.is_exhausted() => {
                    guard.completed();
                    if let Some(session) = session {
                        session.streams.forget(stream);
                    }
                    return match status_of(outcome, era) {
                        StatusCode::OK => sse::single_response(&event.body),
                        status => json_response(status, event.body),
                    };
                }
                _ => Opening::Event(event),
            },
            Ok(Next::End) => return sse::empty_response(),
            Ok(Next::Missed(_)) | Err(_) => session.map_or(Opening::Retry, opening_for),
        };
        sse::response(reader, opening, self.bridge.settings.times.keep_alive, guard)
    }
}

/// A JSON response with the status that the answer deserves.
pub(super) fn answer_response(answer: Answer, era: Era) -> Response {
    json_response(status_of(&answer.outcome.into(), era), answer.body)
}

/// The session that the headers name, `None` if they name none.
pub(super) async fn session_of(
    bridge: &Arc<Bridge>,
    principal: &Arc<Principal>,
    headers: &HeaderMap,
) -> Result<Option<Arc<Session>>, Refusal> {
    let Some(id) = single(headers, SESSION_ID)? else {
        return Ok(None);
    };
    match bridge.find_session(id, principal).await? {
        Some(session) if session.transport() == Transport::StreamableHttp => Ok(Some(session)),
        _ => Err(no_such_session()),
    }
}

pub(super) fn no_such_session() -> Refusal {
    Refusal::not_found("no such session; send initialize to start one")
}

pub(super) fn refuse_ended(session: &Session) -> Result<(), RequestError> {
    session.over().map_or(Ok(()), Err)
}

/// Hands a notification or a response to the session. A request is given back.
pub(super) async fn deliver<'e>(session: &Session, envelope: &'e Envelope<'e>) -> Option<RpcRequest<'e>> {
    match &envelope.kind {
        Kind::Notification { .. } => session.notified(envelope).await,
        Kind::Response { .. } => session.answered(envelope).await,
        Kind::Request { id, method } => return Some(RpcRequest { envelope, id, method }),
    }
    None
}

/// The first event of a session's stream, where none has come in time.
pub(super) fn opening_for(session: &Session) -> Opening {
    match session.version() {
        Some(version) if version >= version::FIRST_WITH_PRIMING => Opening::Priming,
        _ => Opening::Retry,
    }
}

fn refuse(stream: &EventStream, id: &RawValue, error: RequestError) {
    stream.refuse(error_body(&error, id.get()), error);
}

/// Cancels a request that the child got although its session had ended or its client had cancelled it. Either leaves a mark
/// first and then looks for the request at the child; this looks for the marks afterwards, so one of the two finds the other.
fn take_back(
    child: &Child,
    number: Result<u64, CallFailure>,
    waiting: Option<&WaitingRequest>,
    session: &Session,
) {
    let Ok(number) = number else { return };
    if session.over().is_some() {
        child.cancel(number, CallFailure::SessionEnded, "the session ended");
    } else if waiting.is_some_and(WaitingRequest::is_cancelled) {
        child.cancel(number, CallFailure::Cancelled, "the client cancelled it");
    }
}

/// A session that no client can use yet. It ends if it stays so: when `initialize` fails it cannot be repeated, and a
/// client that goes away meanwhile does not know how far it came, nor maybe the id.
pub(super) struct UnclaimedSession<'a> {
    bridge: &'a Arc<Bridge>,
    session: Option<&'a Arc<Session>>,
}

impl<'a> UnclaimedSession<'a> {
    pub(super) fn new(bridge: &'a Arc<Bridge>, session: &'a Arc<Session>) -> Self {
        Self {
            bridge,
            session: Some(session),
        }
    }

    pub(super) fn claim(mut self) {
        self.session = None;
    }
}

impl Drop for UnclaimedSession<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.bridge
                .end_session_later(Arc::clone(session), EndReason::NotInitialized);
        }
    }
}

/// An open stream is a use of the session.
impl StreamGuard for Activity {}

/// A child without a session is in use as long as the stream.
impl StreamGuard for BackendLease {}
