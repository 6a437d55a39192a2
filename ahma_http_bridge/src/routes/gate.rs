//! What every request has to pass before a route sees it.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::json;

use super::HEALTH_PATH;
use crate::auth::{METADATA_PATH, Principal};
use crate::bridge::Bridge;
use crate::http::guard::WebGuard;
use crate::http::refusal::Refusal;

/// How long a restart of the whole server may take.
const RESTART_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) guard: WebGuard,
    pub(crate) bridge: Arc<Bridge>,
}

impl Gate {
    /// Finds out who asks, where it matters.
    async fn admit(&self, path: &str, headers: &HeaderMap) -> Result<Arc<Principal>, Refusal> {
        if path == HEALTH_PATH || path.starts_with(METADATA_PATH) {
            return Ok(Arc::new(Principal::anonymous()));
        }
        if self.bridge.shutdown.is_cancelled() {
            return Err(Refusal::unavailable(
                "the server is shutting down",
                RESTART_PATIENCE,
            ));
        }
        self.bridge.auth.check(headers).await
    }

    fn refuse(&self, request: &Request, refusal: Refusal) -> Response {
        self.bridge.metrics.response(refusal.status());
        let fields = json!({
            "status": refusal.status().as_u16(),
            "path": request.uri().path(),
            "outcome": refusal.message(),
        });
        self.bridge.audit.record("refused", fields);
        refusal.into_response()
    }
}

pub(crate) async fn pass(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    let origin = match gate
        .guard
        .check(request.version(), request.uri(), request.headers())
    {
        Ok(origin) => origin,
        Err(refusal) => return gate.refuse(&request, refusal),
    };
    if let Some(origin) = &origin
        && request.method() == Method::OPTIONS
    {
        return preflight(origin);
    }
    let principal = match gate.admit(request.uri().path(), request.headers()).await {
        Ok(principal) => principal,
        Err(refusal) => return gate.refuse(&request, refusal),
    };
    request.extensions_mut().insert(principal);
    let mut response = next.run(request).await;
    gate.bridge.metrics.response(response.status());
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = origin {
        allow_origin(headers, origin);
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("mcp-session-id, www-authenticate"),
        );
    }
    response
}

/// The answer to a browser that asks before it lets a page send a request.
fn preflight(origin: &HeaderValue) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    allow_origin(headers, origin.clone());
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, DELETE"),
    );
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, \
             mcp-session-id, x-api-key",
        ),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

fn allow_origin(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(VARY, HeaderValue::from_static("origin"));
}
