//! The JSON-RPC envelope: the kind of a message, its ids, and their positions in the text.
//!
//! Everything borrows from the text, and a message is changed by cutting at known offsets, so a body is
//! never re-serialised: number formats, key order and unknown fields reach the other side as they were sent.
//! This module never looks into results or tool arguments.

use std::{borrow::Cow, ops::Range};

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, de::Deserializer};
use serde_json::value::RawValue;

/// Members that a batch may have: all are read in one go, and nothing else is served meanwhile. A session has by default no
/// more open requests than that.
const MAX_BATCH: usize = 256;

/// Ids and progress tokens are kept while a request is open and repeated in every message that belongs to it, so they are
/// bounded.
pub const MAX_ID_BYTES: usize = 1024;

/// One JSON-RPC message, read but not taken apart.
#[derive(Debug)]
pub struct Envelope<'a> {
    text: &'a str,
    pub kind: Kind<'a>,
    /// `params`, or the `result` of a response.
    body: Option<&'a RawValue>,
    lacks_params: bool,
    /// The fields of `params`, read once. Those of a `result`, which may be long, are read on demand.
    params: Option<Result<Params<'a>, EnvelopeError>>,
}

#[derive(Debug)]
pub enum Kind<'a> {
    Request {
        id: &'a RawValue,
        method: Cow<'a, str>,
    },
    Notification {
        method: Cow<'a, str>,
    },
    Response {
        id: &'a RawValue,
        error_code: Option<i64>,
    },
}

/// A message that is known to be a request, and so to have an id that its answer goes to.
#[derive(Debug, Clone, Copy)]
pub struct RpcRequest<'a> {
    pub envelope: &'a Envelope<'a>,
    pub id: &'a RawValue,
    pub method: &'a str,
}

/// The fields of `params` that a relay may look at.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Params<'a> {
    #[serde(borrow, default, rename = "_meta", deserialize_with = "present")]
    meta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub uri: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "taskId")]
    pub task_id: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "requestId")]
    pub request_id: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "progressToken")]
    pub progress_token: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "protocolVersion")]
    pub protocol_version: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "clientInfo")]
    pub client_info: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
}

/// The fields of `params._meta` that a relay may look at.
#[derive(Debug, Default, Deserialize)]
pub struct Meta<'a> {
    #[serde(borrow, default, rename = "progressToken")]
    pub progress_token: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    pub protocol_version: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/subscriptionId")]
    pub subscription_id: Option<&'a RawValue>,
    /// Of a request: the client it comes from, for the bridge alone to write. Of a notification: the client it is for.
    #[serde(borrow, default, rename = "ahma/client", deserialize_with = "present")]
    pub client: Option<&'a RawValue>,
    /// Of a request: the principal it comes from, for the bridge alone to write.
    #[serde(borrow, default, rename = "ahma/principal", deserialize_with = "present")]
    pub principal: Option<&'a RawValue>,
    /// Of a request: the name of its client's program, for the bridge alone to write.
    #[serde(borrow, default, rename = "ahma/program", deserialize_with = "present")]
    pub program: Option<&'a RawValue>,
    /// Of a request: the tools it may list and call, for the bridge alone to write.
    #[serde(borrow, default, rename = "ahma/tools", deserialize_with = "present")]
    pub tools: Option<&'a RawValue>,
    /// Of a notification: the request it belongs to. Not in the specification, where stdio has one client.
    #[serde(borrow, default, rename = "ahma/relatedRequestId")]
    pub related_request: Option<&'a RawValue>,
}

/// The reason why a text is not one JSON-RPC message. The display text is meant for the peer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EnvelopeError {
    #[error("the body is not valid JSON: {0}")]
    NotJson(String),
    #[error("the body is not a JSON-RPC 2.0 message: {0}")]
    NotJsonRpc(String),
}

impl EnvelopeError {
    pub fn code(&self) -> i64 {
        match self {
            Self::NotJson(_) => -32700,
            Self::NotJsonRpc(_) => -32600,
        }
    }
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Keeps an explicit `null` apart from a missing field, which `Option` alone does not.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// True if the text is an array, the form of a JSON-RPC batch.
pub fn is_batch(body: &[u8]) -> bool {
    body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// The members of a batch, each to be read as an envelope of its own.
pub fn batch_members(body: &[u8]) -> Result<Vec<&RawValue>, EnvelopeError> {
    let members: Vec<&RawValue> =
        serde_json::from_slice(body).map_err(|error| EnvelopeError::NotJson(error.to_string()))?;
    if members.is_empty() {
        return Err(EnvelopeError::NotJsonRpc("the batch is empty".to_owned()));
    }
    if members.len() > MAX_BATCH {
        let why = format!(
            "a batch may have {MAX_BATCH} members, this one has {}",
            members.len()
        );
        return Err(EnvelopeError::NotJsonRpc(why));
    }
    Ok(members)
}

impl<'a> Envelope<'a> {
    pub fn parse(body: &'a [u8]) -> Result<Self, EnvelopeError> {
        let text = std::str::from_utf8(body).map_err(|error| EnvelopeError::NotJson(error.to_string()))?;
        if !text.trim_ascii_start().starts_with('{') {
            // Serde would read an array into a struct field by field.
            serde_json::from_str::<&RawValue>(text)
                .map_err(|error| EnvelopeError::NotJson(error.to_string()))?;
            return Err(EnvelopeError::NotJsonRpc("it is not an object".to_owned()));
        }
        let wire: Wire<'a> = serde_json::from_str(text).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => EnvelopeError::NotJsonRpc(error.to_string()),
            _ => EnvelopeError::NotJson(error.to_string()),
        })?;
        if wire.jsonrpc.as_deref() != Some("2.0") {
            return Err(EnvelopeError::NotJsonRpc(r#""jsonrpc" must be "2.0""#.to_owned()));
        }
        let kind = match (wire.id, wire.method) {
            (Some(id), Some(method)) => Kind::Request {
                id: usable_id(id)?,
                method,
            },
            (None, Some(method)) => Kind::Notification { method },
            (Some(id), None) if wire.result.is_some() || wire.error.is_some() => Kind::Response {
                id,
                error_code: wire.error.map(error_code),
            },
            _ => {
                return Err(EnvelopeError::NotJsonRpc(
                    "it has neither a method nor a result".to_owned(),
                ));
            }
        };
        let lacks_params = wire.params.is_none();
        let body = wire
            .params
            .filter(|params| params.get() != "null")
            .or(wire.result);
        let params = match &kind {
            Kind::Request { .. } | Kind::Notification { .. } => Some(object_fields(body)),
            Kind::Response { .. } => None,
        };
        Ok(Self {
            text,
            kind,
            body,
            lacks_params,
            params,
        })
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The message as a request, which it must be.
    pub fn request(&self) -> Result<RpcRequest<'_>, EnvelopeError> {
        match &self.kind {
            Kind::Request { id, method } => Ok(RpcRequest {
                envelope: self,
                id,
                method,
            }),
            Kind::Notification { .. } | Kind::Response { .. } => {
                Err(EnvelopeError::NotJsonRpc("it is not a request".to_owned()))
            }
        }
    }

    /// The `result` of a response.
    pub fn result(&self) -> Option<&'a RawValue> {
        self.body.filter(|_| matches!(self.kind, Kind::Response { .. }))
    }

    /// The known fields of `params`, or of a `result`, whose `_meta` looks the same. A key given twice is an error, since two
    /// readers could then disagree.
    pub fn params(&self) -> Result<Params<'a>, EnvelopeError> {
        self.params.clone().unwrap_or_else(|| object_fields(self.body))
    }

    /// The resource that the message is about.
    pub fn uri(&self) -> Option<Cow<'a, str>> {
        string_of(self.params().ok()?.uri?)
    }

    /// The text of `params`, if it is an object.
    pub fn params_object(&self) -> Option<&'a RawValue> {
        let body = self.body.filter(|_| !matches!(self.kind, Kind::Response { .. }));
        body.filter(|params| params.get().starts_with('{'))
    }

    /// True if there is no member `params`, not even one that is `null`.
    pub fn lacks_params(&self) -> bool {
        self.lacks_params
    }

    /// The request or notification method, if it is one.
    pub fn method(&self) -> Option<&str> {
        match &self.kind {
            Kind::Request { method, .. } | Kind::Notification { method } => Some(method),
            Kind::Response { .. } => None,
        }
    }

    /// The edit that puts `text` in the place of a borrowed value.
    pub fn edit(&self, value: &RawValue, text: impl Into<String>) -> Edit {
        Edit {
            span: self.span(value),
            text: text.into(),
        }
    }

    /// The message on one line.
    pub fn on_one_line(&self) -> Bytes {
        splice(self.text, Vec::new()).freeze()
    }

    /// The same with one value replaced.
    pub fn replaced(&self, value: &RawValue, text: &str) -> Bytes {
        splice(self.text, vec![self.edit(value, text)]).freeze()
    }

    /// The position of a borrowed value in this envelope's text.
    pub fn span(&self, value: &RawValue) -> Range<usize> {
        let start = value.get().as_ptr() as usize - self.text.as_ptr() as usize;
        start..start + value.get().len()
    }
}

impl<'a> Params<'a> {
    /// The text of `_meta`, if it is an object.
    pub fn meta_object(&self) -> Option<&'a RawValue> {
        self.meta.filter(|meta| meta.get().starts_with('{'))
    }

    /// A `_meta` that is there and `null`.
    pub fn null_meta(&self) -> Option<&'a RawValue> {
        self.meta.filter(|meta| meta.get() == "null")
    }

    pub fn meta(&self) -> Result<Meta<'a>, EnvelopeError> {
        let meta: Meta<'a> = object_fields(self.meta)?;
        meta.progress_token
            .map_or(Ok(()), |token| within_bounds("progressToken", token))?;
        Ok(meta)
    }
}

fn object_fields<'a, T: Default + Deserialize<'a>>(value: Option<&'a RawValue>) -> Result<T, EnvelopeError> {
    match value {
        Some(value) if value.get().starts_with('{') => {
            serde_json::from_str(value.get()).map_err(|error| EnvelopeError::NotJsonRpc(error.to_string()))
        }
        _ => Ok(T::default()),
    }
}

/// MCP allows strings and numbers; `null` would make the answer unattributable.
fn usable_id(id: &RawValue) -> Result<&RawValue, EnvelopeError> {
    match id.get().as_bytes().first() {
        Some(b'"' | b'-' | b'0'..=b'9') => within_bounds("id", id).map(|()| id),
        _ => Err(EnvelopeError::NotJsonRpc(
            r#""id" must be a string or a number"#.to_owned(),
        )),
    }
}

fn within_bounds(name: &str, value: &RawValue) -> Result<(), EnvelopeError> {
    match value.get().len() {
        ..=MAX_ID_BYTES => Ok(()),
        _ => Err(EnvelopeError::NotJsonRpc(format!(
            r#""{name}" is longer than {MAX_ID_BYTES} bytes"#
        ))),
    }
}

fn error_code(error: &RawValue) -> i64 {
    #[derive(Deserialize)]
    struct Error {
        code: i64,
    }
    serde_json::from_str::<Error>(error.get()).map_or(-32603, |error| error.code)
}

/// The text of a JSON string, or `None` when the value is something else.
pub fn string_of(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str(value.get()).ok()
}

/// A part of a text and its replacement.
#[derive(Debug)]
pub struct Edit {
    pub span: Range<usize>,
    pub text: String,
}

/// The text with every edit made, on one line: line breaks inside JSON are white space, but would end a
/// frame on the pipe or in an event stream.
pub fn splice(text: &str, mut edits: Vec<Edit>) -> BytesMut {
    edits.sort_by_key(|edit| edit.span.start);
    let grown: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let mut out = BytesMut::with_capacity(text.len() + grown + 1);
    let mut done = 0;
    for edit in edits {
        out.put_slice(&text.as_bytes()[done..edit.span.start]);
        out.put_slice(edit.text.as_bytes());
        done = edit.span.end;
    }
    out.put_slice(&text.as_bytes()[done..]);
    let mut from = 0;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', &out[from..]) {
        out[from + at] = b' ';
        from += at + 1;
    }
    out
}

/// An error response. `id` is a JSON text.
pub fn error_message(id: Option<&str>, code: i64, message: &str) -> Bytes {
    let text = serde_json::Value::from(message);
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":{text}}}}}"#,
        id.unwrap_or("null")
    ))
}

/// A response. `id` and `result` are JSON texts.
pub fn result_message(id: &str, result: &str) -> Bytes {
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;
