//! JSON-RPC messages on lines of text: one message in, one message out, one write each.
//!
//! rmcp has a transport of this kind. This one is more robust: messages before the handshake, garbage, over-long lines and
//! repeated ids are answered or dropped one by one. Answers are written in their order, at once and without a task in
//! between. The server learns of the end of input at once, with rmcp five seconds later.

use std::{collections::HashSet, io, sync::Arc, time::Duration};

use ahma_common::{
    lines::{Line, LineReader},
    outbox::Outbox,
};
use memchr::memmem;
use parking_lot::Mutex;
use rmcp::{
    RoleServer,
    model::{
        CallToolRequest, ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage,
        JsonRpcVersion2_0, RequestId,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny},
};
use serde_json::error::Category;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Notify,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::error::malformed;

/// JSON-RPC over lines.
#[derive(Debug)]
pub(super) struct LineTransport<R, W> {
    lines: LineReader<R>,
    outbox: Arc<Outbox<W>>,
    open: Arc<OpenRequests>,
    opening: Opening,
    /// An answer of our own was pushed and has not been waited for.
    owes_flush: bool,
    /// Set at the end of input: until then open requests may still be answered.
    answers_until: Option<Instant>,
    /// Cancelled when the client is gone.
    client_gone: CancellationToken,
}

/// rmcp ends the connection when anything but a request comes before the handshake, so such messages stop here.
#[derive(Debug, PartialEq, Eq)]
enum Opening {
    /// No request has opened the session yet.
    Awaited,
    /// This one did, unless its answer turns out to be an error.
    By(RequestId),
    Done,
}

/// Resources that one subscription may name.
const MAX_SUBSCRIPTIONS: usize = 1024;

/// Longer than a tool's arguments can sensibly be.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Time that requests read before the end of input may take to be answered, as in `printf … | ahma_mcp`.
const ANSWER_TIMEOUT_AFTER_END: Duration = Duration::from_millis(250);

/// With this much unread output no further request is taken until the client reads.
const MAX_UNREAD_OUTPUT: usize = 8 * 1024 * 1024;

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    pub(crate) fn new(input: R, output: W, client_gone: CancellationToken) -> Self {
        Self {
            lines: LineReader::new(input, MAX_MESSAGE_BYTES),
            outbox: Arc::new(Outbox::new(output, usize::MAX)),
            open: Arc::default(),
            opening: Opening::Awaited,
            owes_flush: false,
            answers_until: None,
            client_gone,
        }
    }

    /// Reads on until there is a message for rmcp.
    async fn next_message(&mut self) -> io::Result<Option<RxJsonRpcMessage<RoleServer>>> {
        loop {
            if self.owes_flush || self.outbox.queued_bytes()? > MAX_UNREAD_OUTPUT {
                self.outbox.flushed().await?;
                self.owes_flush = false;
            }
            match self.lines.next().await? {
                Line::End => return Ok(None),
                Line::TooLong => {
                    let message =
                        format!("the message is longer than {MAX_MESSAGE_BYTES} bytes and was not read");
                    self.refuse(None, ErrorData::invalid_request(message, None));
                }
                Line::Text(line) if line.trim_ascii().is_empty() => {}
                Line::Text(line) => match parse(&line) {
                    Ok(message) => {
                        if let Some(message) = self.admit(message) {
                            return Ok(Some(message));
                        }
                    }
                    Err(Unfit::PassOver) => {}
                    Err(Unfit::Refuse(id, error)) => self.refuse(id, error),
                },
            }
        }
    }

    /// Lets a message through, or deals with it here.
    fn admit(&mut self, message: RxJsonRpcMessage<RoleServer>) -> Option<RxJsonRpcMessage<RoleServer>> {
        match &message {
            JsonRpcMessage::Request(request) => {
                if !self.open.open(&request.id) {
                    // Answering under that id would be taken for the answer to the first request.
                    let message = format!(
                        "a request with id {} is still open; ids must not be used twice",
                        request.id
                    );
                    self.refuse(None, ErrorData::invalid_request(message, None));
                    return None;
                }
                let opens_session = !matches!(
                    request.request,
                    ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_)
                );
                if opens_session && self.opening == Opening::Awaited {
                    self.opening = Opening::By(request.id.clone());
                }
            }
            _ if self.opening == Opening::Awaited => {
                tracing::debug!("dropped a message that came before the session was opened");
                return None;
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // A cancelled request is never answered.
                    self.open.close(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Some(message)
    }

    /// Answers input that rmcp never sees.
    fn refuse(&mut self, id: Option<RequestId>, error: ErrorData) {
        tracing::warn!(code = error.code.0, "refused a message: {}", error.message);
        self.write(&TxJsonRpcMessage::<RoleServer>::error(error, id));
        self.owes_flush = true;
    }

    fn write(&self, message: &TxJsonRpcMessage<RoleServer>) {
        match serde_json::to_vec(message) {
            Ok(mut line) => {
                line.push(b'\n');
                // A client that is gone is noticed by `flushed`, which follows.
                let _ = self.outbox.send(&line);
            }
            Err(error) => tracing::error!(%error, "a message could not be written as JSON"),
        }
    }

    fn note_answer(&mut self, message: &TxJsonRpcMessage<RoleServer>) {
        let (id, opened) = match message {
            JsonRpcMessage::Response(response) => (Some(&response.id), Opening::Done),
            JsonRpcMessage::Error(error) => (error.id.as_ref(), Opening::Awaited),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => return,
        };
        let Some(id) = id else { return };
        self.open.close(id);
        if matches!(&self.opening, Opening::By(opener) if opener == id) {
            self.opening = opened;
        }
    }
}

/// A line that is no message.
#[derive(Debug)]
enum Unfit {
    /// A kind of message that JSON-RPC leaves unanswered.
    PassOver,
    Refuse(Option<RequestId>, ErrorData),
}

fn parse(line: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, Unfit> {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    if let Some(call) = parse_call(line) {
        return Ok(call);
    }
    let error = match serde_json::from_slice(line) {
        Ok(message) => return within_bounds(message),
        Err(error) => error,
    };
    if matches!(error.classify(), Category::Syntax | Category::Eof) {
        let id = outlined_request(line);
        let message = match id {
            Some(_) => format!("the message cannot be read: {error}"),
            None => format!("the line is not JSON: {error}"),
        };
        return Err(Unfit::Refuse(
            id,
            ErrorData::new(ErrorCode::PARSE_ERROR, message, None),
        ));
    }
    if let Some((id, method)) = enveloped_request(line) {
        return Err(Unfit::Refuse(Some(id), malformed(&method)));
    }
    let value: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
    let has_method = value.get("method").is_some_and(serde_json::Value::is_string);
    let given_id = value.get("id");
    let id = given_id.and_then(|id| RequestId::deserialize(id).ok());
    let message = if value.is_array() {
        "batches are not supported; send one message on each line"
    } else if has_method && given_id.is_none() {
        tracing::debug!(%error, "passed over a notification of an unknown form");
        return Err(Unfit::PassOver);
    } else if has_method && id.is_none() {
        "the id of a request must be a string or an integer"
    } else {
        "the line is not a JSON-RPC 2.0 message"
    };
    Err(Unfit::Refuse(id, ErrorData::invalid_request(message, None)))
}

/// rmcp compares every resource of a subscription with every other, on the thread that serves all.
fn within_bounds(message: RxJsonRpcMessage<RoleServer>) -> Result<RxJsonRpcMessage<RoleServer>, Unfit> {
    if let JsonRpcMessage::Request(request) = &message
        && let ClientRequest::SubscriptionsListenRequest(listen) = &request.request
        && let Some(resources) = &listen.params.notifications.resource_subscriptions
        && resources.len() > MAX_SUBSCRIPTIONS
    {
        let message = format!(
            "resourceSubscriptions names {} resources; {MAX_SUBSCRIPTIONS} are the most for one subscription",
            resources.len()
        );
        return Err(Unfit::Refuse(
            Some(request.id.clone()),
            ErrorData::invalid_params(message, None),
        ));
    }
    Ok(message)
}

/// A call of a tool, which is what most lines are. rmcp would try every kind of message on it, one after the other. Anything
/// that is not plainly a call is left to rmcp, so this decides nothing.
fn parse_call(line: &[u8]) -> Option<RxJsonRpcMessage<RoleServer>> {
    #[derive(Deserialize)]
    struct Call {
        #[serde(rename = "jsonrpc")]
        _version: JsonRpcVersion2_0,
        id: RequestId,
        #[serde(flatten)]
        request: CallToolRequest,
        #[serde(default, rename = "result", deserialize_with = "refuse")]
        _result: (),
        #[serde(default, rename = "error", deserialize_with = "refuse")]
        _error: (),
    }
    memmem::find(line, br#""tools/call""#)?;
    let call: Call = serde_json::from_slice(line).ok()?;
    Some(JsonRpcMessage::request(call.request.into(), call.id))
}

/// The id and the method of a request that has the form of one, whatever its parameters are.
fn enveloped_request(line: &[u8]) -> Option<(RequestId, String)> {
    #[derive(Deserialize)]
    struct Enveloped {
        #[serde(rename = "jsonrpc")]
        _version: JsonRpcVersion2_0,
        id: RequestId,
        method: String,
        #[serde(default, rename = "params")]
        _params: IgnoredAny,
        #[serde(default, rename = "result", deserialize_with = "refuse")]
        _result: (),
        #[serde(default, rename = "error", deserialize_with = "refuse")]
        _error: (),
    }
    let request: Enveloped = serde_json::from_slice(line).ok()?;
    Some((request.id, request.method))
}

/// A request has no such member.
fn refuse<'de, D: Deserializer<'de>>(_: D) -> Result<(), D::Error> {
    Err(D::Error::custom("not a request"))
}

/// The id of a request of which some value cannot be read: a number out of range, half a character, a thousand brackets.
/// Its sender waits for an answer.
fn outlined_request(line: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Outline {
        id: RequestId,
        #[serde(rename = "method")]
        _method: String,
    }
    serde_json::from_slice(line)
        .ok()
        .map(|outline: Outline| outline.id)
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        self.note_answer(&message);
        self.write(&message);
        let outbox = self.outbox.clone();
        let client_gone = self.client_gone.clone();
        // A client that no longer listens is gone, even if it keeps its other end open.
        async move { Ok(outbox.flushed().await.inspect_err(|_| client_gone.cancel())?) }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        if self.answers_until.is_none() {
            match self.next_message().await {
                Ok(Some(message)) => return Some(message),
                Ok(None) => tracing::info!("end of input"),
                Err(error) => tracing::info!(%error, "the client can no longer be reached"),
            }
        }
        // This future is dropped and made anew whenever rmcp has something to send, so the deadline lives outside it.
        let deadline = *self
            .answers_until
            .get_or_insert_with(|| Instant::now() + ANSWER_TIMEOUT_AFTER_END);
        let _ = tokio::time::timeout_at(deadline, self.open.all_closed()).await;
        self.client_gone.cancel();
        None
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // Answers are still delivered, but a client that does not read delays nothing.
        let _ = tokio::time::timeout(ANSWER_TIMEOUT_AFTER_END, self.outbox.flushed()).await;
        Ok(())
    }
}

/// Requests that were read and not yet answered: knows which ids are taken, and when the last of them is free.
#[derive(Debug, Default)]
struct OpenRequests {
    ids: Mutex<HashSet<RequestId>>,
    idle: Notify,
}

impl OpenRequests {
    /// False if a request with this id is still open.
    fn open(&self, id: &RequestId) -> bool {
        self.ids.lock().insert(id.clone())
    }

    fn close(&self, id: &RequestId) {
        let mut ids = self.ids.lock();
        ids.remove(id);
        if ids.is_empty() {
            self.idle.notify_waiters();
        }
    }

    /// Returns when every request is answered.
    async fn all_closed(&self) {
        loop {
            let notified = self.idle.notified();
            if self.ids.lock().is_empty() {
                return;
            }
            notified.await;
        }
    }
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
