//! Checks of every request before a route sees it.
//!
//! CORS is answered here and not by `tower-http`: its list of allowed headers is fixed or repeats every header asked for,
//! while ours is a list plus the asked headers that carry a tool's arguments.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, CONNECTION, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use serde_json::json;

use super::body;
use crate::auth::{Principal, Role};
use crate::bridge::Bridge;
use crate::http::guard::WebGuard;
use crate::http::refusal::{Reason, Refusal};
use crate::paths::{ADMIN_PREFIX, HEALTH_PATH, METRICS_PATH, is_console_path, is_metadata_path};
use crate::peer::{Peer, PeerRejected};
use crate::settings::BridgeSettings;

/// Time that a restart of the whole server may take.
const RESTART_TIME: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) guard: WebGuard,
    pub(crate) bridge: Arc<Bridge>,
}

/// The role that a path is for.
fn role_for(path: &str) -> Role {
    match path {
        METRICS_PATH => Role::Metrics,
        path if path.starts_with(ADMIN_PREFIX) => Role::Operator,
        _ => Role::Agent,
    }
}

impl Gate {
    /// The origin that may read the answer, if a page asks.
    fn origin(&self, request: &Request) -> Result<Option<HeaderValue>, Refusal> {
        let (version, uri, headers) = (request.version(), request.uri(), request.headers());
        let origin = self.guard.check(version, uri, headers)?;
        let is_unnamed = |origin: &HeaderValue| !self.guard.names_origin(origin);
        if uri.path().starts_with(ADMIN_PREFIX) && origin.as_ref().is_some_and(is_unnamed) {
            return Err(Refusal::forbidden(
                "a page may use the admin API only from an origin that --allow-origin names",
            ));
        }
        Ok(origin)
    }

    /// The client of a request, if it may use the path.
    async fn admit(&self, path: &str, headers: &HeaderMap) -> Result<Arc<Principal>, Refusal> {
        if path == HEALTH_PATH || is_metadata_path(path) {
            return Ok(Arc::new(Principal::anonymous()));
        }
        let role = role_for(path);
        if self.bridge.shutdown.is_cancelled() && role == Role::Agent {
            return Err(Refusal::unavailable("the server is shutting down", RESTART_TIME));
        }
        let checked = self.bridge.auth.check(headers, self.bridge.writes_messages());
        let principal = checked.await?;
        // Agents and operators may read the metrics, too.
        let is_allowed = role == Role::Metrics || principal.may_act_as(role);
        match is_allowed {
            true => Ok(principal),
            false => Err(Refusal::forbidden(match role {
                Role::Operator => "only the token of an operator is good for the admin API",
                Role::Agent | Role::Metrics => "only the token of an agent is good for tools",
            })),
        }
    }

    /// The answer of a route. Its refusals are recorded: those of the console always, others where calls are.
    async fn answer(&self, requester: &Requester, request: Request, next: Next) -> Response {
        let is_recorded = is_console_path(request.uri().path()) || self.bridge.audit.records_calls();
        let mut response = next.run(request).await;
        self.bridge.metrics.response(response.status());
        if is_recorded && let Some(Reason(reason)) = response.extensions_mut().remove() {
            requester.record(&self.bridge, response.status(), &reason);
        }
        response
    }

    async fn refuse(&self, requester: &Requester, request: Request, refusal: Refusal) -> Response {
        refuse_body(request, &self.bridge.settings).await;
        requester.refuse(&self.bridge, refusal)
    }
}

pub(crate) async fn pass(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    let mut requester = Requester::of(&request);
    let origin = match gate.origin(&request) {
        Ok(origin) => origin,
        Err(refusal) => return gate.refuse(&requester, request, refusal).await,
    };
    // `routes/console.rs` checks access to the console, and no other page may read it.
    if is_console_path(request.uri().path()) {
        return gate.answer(&requester, request, next).await;
    }
    if let Some(origin) = &origin
        && request.method() == Method::OPTIONS
    {
        return preflight(origin, request.headers());
    }
    let mut response = match gate.admit(request.uri().path(), request.headers()).await {
        Ok(principal) => {
            requester.principal = Some(Arc::clone(&principal));
            request.extensions_mut().insert(principal);
            gate.answer(&requester, request, next).await
        }
        // A page of an allowed origin must be able to read that it lacks a credential, and where to get one.
        Err(refusal) => gate.refuse(&requester, request, refusal).await,
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = origin {
        allow_origin(headers, origin);
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("mcp-session-id, retry-after, www-authenticate"),
        );
    }
    response
}

async fn refuse_body(request: Request, settings: &BridgeSettings) {
    let (parts, body) = request.into_parts();
    body::discard(&parts.headers, body, settings).await;
}

/// Answers every request of a connection that may not use the bridge. The connection ends with the answer, so that a
/// client that was wronged is looked at anew.
pub(crate) async fn reject(
    State((bridge, reason)): State<(Arc<Bridge>, PeerRejected)>,
    request: Request,
) -> Response {
    let requester = Requester::of(&request);
    refuse_body(request, &bridge.settings).await;
    let mut response = requester.refuse(&bridge, reason.into());
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Origin and target of a request, for the audit trail.
struct Requester {
    uri: Uri,
    peer: Option<Peer>,
    /// Once it is known.
    principal: Option<Arc<Principal>>,
}

impl Requester {
    fn of(request: &Request) -> Self {
        Self {
            uri: request.uri().clone(),
            peer: request.extensions().get().copied(),
            principal: None,
        }
    }

    fn refuse(&self, bridge: &Bridge, refusal: Refusal) -> Response {
        bridge.metrics.response(refusal.status());
        self.record(bridge, refusal.status(), refusal.message());
        refusal.into_response()
    }

    fn record(&self, bridge: &Bridge, status: StatusCode, reason: &str) {
        let fields = json!({
            "principal": self.principal.as_ref().map(|principal| &*principal.name),
            "peer": self.peer.map(|peer| peer.address.to_string()),
            "status": status.as_u16(),
            "path": self.uri.path(),
            "outcome": reason,
        });
        bridge.audit.record("refused", fields);
    }
}

/// The answer to a browser that asks before it lets a page send a request.
fn preflight(origin: &HeaderValue, asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    allow_origin(headers, origin.clone());
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, DELETE"),
    );
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers(asked));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

const ALLOWED_HEADERS: &str = "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, \
                               mcp-protocol-version, mcp-session-id, x-api-key";

/// Prefix of headers that carry a tool's argument; the rest is the tool's choice.
const ARGUMENT_HEADER: &str = "mcp-param-";

/// The headers a page may send: the known ones, and of those it asks for the ones that carry arguments.
fn allowed_headers(asked: &HeaderMap) -> HeaderValue {
    let asked = asked
        .get_all(ACCESS_CONTROL_REQUEST_HEADERS)
        .iter()
        .filter_map(|names| names.to_str().ok())
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse::<HeaderName>().ok())
        .filter(|name| name.as_str().starts_with(ARGUMENT_HEADER));
    let mut allowed = ALLOWED_HEADERS.to_owned();
    for name in asked {
        allowed.push_str(", ");
        allowed.push_str(name.as_str());
    }
    HeaderValue::try_from(allowed).unwrap_or(HeaderValue::from_static(ALLOWED_HEADERS))
}

fn allow_origin(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(VARY, HeaderValue::from_static("origin"));
}
