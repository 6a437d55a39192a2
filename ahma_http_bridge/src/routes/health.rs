//! The small routes, and the answers to requests that fit no route.

use axum::response::{IntoResponse, Response};
use http::StatusCode;

use crate::http::refusal::{Refusal, json_response};

/// Says that the bridge serves requests. It says nothing about whom.
pub(crate) async fn healthz() -> Response {
    json_response(StatusCode::OK, bytes::Bytes::from_static(br#"{"status":"ok"}"#))
}

pub(crate) async fn nothing_here() -> Response {
    Refusal::not_found("nothing is served at this path; the endpoint is /mcp").into_response()
}

pub(crate) async fn wrong_method() -> Response {
    Refusal::method_not_allowed("GET, POST, DELETE").into_response()
}
