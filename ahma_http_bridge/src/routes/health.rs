//! The small routes, and the answers to requests that fit no route.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{StatusCode, Uri};
use serde_json::json;

use crate::bridge::Bridge;
use crate::dependency::Dependency;
use crate::http::refusal::{Refusal, json_response};
use crate::paths::ENDPOINT;

/// The one public fact about a bridge: it can answer requests, or why it cannot.
pub(crate) async fn healthz(State(bridge): State<Arc<Bridge>>) -> Response {
    if bridge.shutdown.is_cancelled() {
        return status(StatusCode::SERVICE_UNAVAILABLE, "draining");
    }
    let dependency = bridge.settings.dependency.as_deref();
    match dependency.and_then(Dependency::obstacle) {
        Some(obstacle) => status(StatusCode::SERVICE_UNAVAILABLE, obstacle),
        None => status(StatusCode::OK, "ok"),
    }
}

fn status(code: StatusCode, word: &str) -> Response {
    json_response(code, json!({ "status": word }).to_string().into())
}

/// Numbers for a Prometheus server, if they are asked for at all.
pub(crate) async fn metrics(State(bridge): State<Arc<Bridge>>) -> Result<Response, Refusal> {
    if !bridge.settings.metrics {
        return Err(Refusal::not_found("metrics are off; start with --metrics"));
    }
    let mut text = bridge.metrics.render(bridge.gauges(), &bridge.recorder.metrics);
    if let Some(dependency) = &bridge.settings.dependency {
        text.push_str(&dependency.metrics());
    }
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

/// Address of the authorization server: RFC 9728.
pub(crate) async fn resource_metadata(
    State(bridge): State<Arc<Bridge>>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let metadata = bridge.auth.resource_metadata(uri.path());
    let metadata = metadata.ok_or_else(|| Refusal::not_found("no authorization server is named here"))?;
    Ok(json_response(StatusCode::OK, metadata.to_string().into()))
}

pub(crate) async fn nothing_here() -> Response {
    Refusal::not_found("nothing is served at this path; the endpoint is /mcp").into_response()
}

pub(crate) async fn wrong_method(State(bridge): State<Arc<Bridge>>, uri: Uri) -> Response {
    let sse_path = &bridge.settings.sse_path;
    let allowed = match uri.path() {
        ENDPOINT => "GET, POST, DELETE",
        path if path == sse_path.as_str() => "GET",
        path if path == sse_path.messages() => "POST",
        _ => "GET, HEAD",
    };
    Refusal::method_not_allowed(allowed).into_response()
}
