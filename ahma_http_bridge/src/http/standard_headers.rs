//! The headers of the 2026-07-28 revision that repeat what the body says.
//!
//! Something on the way may have decided by the header, so a header that contradicts the body is refused.
//! `Mcp-Param-*` depend on a tool's schema, which a bridge does not know: they are the server's to check.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, StatusCode};
use serde_json::value::RawValue;

use super::negotiate::single;
use super::refusal::{CODE_HEADER_MISMATCH, Refusal};
use crate::version;
use ahma_common::contract::{META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION};
use ahma_common::envelope::{Envelope, Kind, Meta, Params, string_of};

pub(crate) const PROTOCOL_VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Checks a request or notification of the modern era. `meta` is its `params._meta`.
pub(crate) fn check(
    headers: &HeaderMap,
    envelope: &Envelope<'_>,
    params: &Params<'_>,
    meta: &Meta<'_>,
) -> Result<(), Refusal> {
    let header_version = single(headers, PROTOCOL_VERSION)?;
    if matches!(envelope.kind, Kind::Request { .. }) {
        check_version(header_version, meta)?;
    }
    if !header_version.is_some_and(version::is_modern) {
        return Ok(());
    }
    let method = envelope.method().unwrap_or_default();
    compare(headers, METHOD, Some(method))?;
    let name = name_source(method, params).and_then(string_of);
    compare(headers, NAME, name.as_deref())
}

fn check_version(header: Option<&str>, meta: &Meta<'_>) -> Result<(), Refusal> {
    let version = meta.protocol_version.and_then(string_of);
    let capabilities = meta.client_capabilities;
    let has_capabilities = capabilities.is_some_and(|value| value.get().starts_with('{'));
    let missing = match (&version, has_capabilities) {
        (Some(_), true) => None,
        (Some(_), false) => Some(META_CLIENT_CAPABILITIES.to_owned()),
        (None, true) => Some(META_PROTOCOL_VERSION.to_owned()),
        (None, false) => Some(format!("{META_PROTOCOL_VERSION} and {META_CLIENT_CAPABILITIES}")),
    };
    if let Some(missing) = missing {
        let message = format!("params._meta lacks {missing}");
        return Err(Refusal::new(StatusCode::BAD_REQUEST, -32602, message));
    }
    let body = version.unwrap_or_default();
    match header {
        None => Err(mismatch(format!(
            "the {PROTOCOL_VERSION} header is missing; params._meta says {body}"
        ))),
        Some(header) if header != body => Err(mismatch(format!(
            "the {PROTOCOL_VERSION} header says {header}, params._meta says {body}"
        ))),
        Some(_) => Ok(()),
    }
}

/// The value that `Mcp-Name` repeats.
fn name_source<'a>(method: &str, params: &Params<'a>) -> Option<&'a RawValue> {
    match method {
        "tools/call" | "prompts/get" => params.name,
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => params.uri,
        "tasks/get" | "tasks/update" | "tasks/cancel" => params.task_id,
        _ => None,
    }
}

fn compare(headers: &HeaderMap, name: &str, body: Option<&str>) -> Result<(), Refusal> {
    let header =
        single(headers, name).map_err(|_| mismatch(format!("the {name} header is not one plain text")))?;
    match (header.map(decoded), body) {
        (None, None) => Ok(()),
        (None, Some(body)) => Err(mismatch(format!(
            "the {name} header is missing; the body says {body}"
        ))),
        (Some(None), _) => Err(mismatch(format!("the {name} header is not valid base64"))),
        (Some(Some(header)), Some(body)) if header == body => Ok(()),
        (Some(Some(header)), body) => Err(mismatch(format!(
            "the {name} header says {header}, the body says {}",
            body.unwrap_or("nothing")
        ))),
    }
}

/// Values that do not fit into a header are sent as `=?base64?…?=`.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let value = value.trim_matches([' ', '\t']);
    match value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    {
        None => Some(Cow::Borrowed(value)),
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?)
            .ok()
            .map(Cow::Owned),
    }
}

fn mismatch(message: String) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, CODE_HEADER_MISMATCH, message)
}
