//! The admin API: what runs, for whom, and how to stop it. For operators alone, which `routes/gate.rs` checks.
//!
//! Every change is written to the audit trail with the operator's name. `docs/operations.md` describes each answer, and
//! `schemas/admin.schema.json` its form.

use std::sync::Arc;

use ahma_common::contract::OutputPlace;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use http::{StatusCode, Uri};
use serde::Deserialize;
use serde_json::{Value, json};

use super::archived::Asker;
use super::body;
use crate::archive::ArchiveQuestion;
use crate::auth::Principal;
use crate::bridge::Bridge;
use crate::bridge_admin::{AdminError, Asked, did};
use crate::http::refusal::{Refusal, json_response};

pub(super) type AskingOperator = Extension<Arc<Principal>>;
pub(super) type AdminResponse = Result<Response, Refusal>;

pub(crate) fn router() -> Router<Arc<Bridge>> {
    Router::new()
        .route("/admin/v1/sessions", get(sessions))
        .route("/admin/v1/sessions/{id}", axum::routing::delete(end_session))
        .route("/admin/v1/operations", get(operations))
        .route("/admin/v1/operations/{id}/output", get(output))
        .route("/admin/v1/operations/{id}/findings", get(findings))
        .route("/admin/v1/operations/{id}/cancel", post(cancel))
        .route("/admin/v1/tokens", get(tokens))
        .route("/admin/v1/tokens/{name}", axum::routing::delete(revoke))
        .route("/admin/v1/drain", post(drain))
}

/// The body of a request to cancel.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelBody {
    reason: Option<String>,
}

async fn sessions(State(bridge): State<Arc<Bridge>>) -> Response {
    answer(&json!({ "sessions": bridge.described_sessions() }))
}

async fn end_session(
    State(bridge): State<Arc<Bridge>>,
    Extension(operator): AskingOperator,
    Path(id): Path<String>,
    uri: Uri,
) -> AdminResponse {
    let reason = parameter(&uri, "reason");
    match bridge.end_session_for(&operator, &id, reason.as_deref()).await {
        true => Ok(answer(&json!({ "ended": id }))),
        false => Err(Refusal::not_found(format!("no session has the id {id}"))),
    }
}

async fn operations(State(bridge): State<Arc<Bridge>>, uri: Uri) -> Response {
    let (status, principal) = (parameter(&uri, "status"), parameter(&uri, "principal"));
    let is_wanted = |field: &str, wanted: &Option<String>, operation: &Value| {
        wanted.is_none() || operation[field].as_str() == wanted.as_deref()
    };
    // Of all of them a pool lists the newest only, and those that are open may be older.
    let asked = match status.as_deref() {
        Some("queued" | "running") => Asked::Open,
        _ => Asked::All,
    };
    let mut operations = bridge.described_operations(asked).await;
    operations.retain(|operation| {
        is_wanted("status", &status, operation) && is_wanted("principal", &principal, operation)
    });
    answer(&json!({ "operations": operations }))
}

async fn output(asker: Asker, Path(id): Path<String>, uri: Uri) -> AdminResponse {
    let place = OutputPlace {
        from_line: number(&uri, "from_line")?,
        from_byte: number(&uri, "from_byte")?,
        lines: number(&uri, "lines")?,
    };
    let read = asker.bridge.read_output(&id, place).await;
    asker.or_ask(read, ArchiveQuestion::Output { id, place }).await
}

async fn findings(asker: Asker, Path(id): Path<String>, uri: Uri) -> AdminResponse {
    let from = number(&uri, "from")?.unwrap_or(0);
    let read = asker.bridge.read_findings(&id, from).await;
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    asker.or_ask(read, ArchiveQuestion::Findings { id, from }).await
}

async fn cancel(asker: Asker, Path(id): Path<String>, request: Request) -> AdminResponse {
    let Asker { bridge, operator, .. } = &asker;
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, &bridge.settings).await?;
    let CancelBody { reason } = match body.is_empty() {
        true => CancelBody::default(),
        false => serde_json::from_slice(&body).map_err(|error| {
            Refusal::bad_request(format!("the body is not {{\"reason\": TEXT}}: {error}"))
        })?,
    };
    let cancelled = bridge.cancel_operation(operator, &id, reason.as_deref()).await;
    let why = did(&operator.name, "cancelled it", reason.as_deref());
    asker.or_ask(cancelled, ArchiveQuestion::Stop { id, why }).await
}

async fn tokens(State(bridge): State<Arc<Bridge>>) -> Response {
    answer(&json!({ "tokens": bridge.auth.tokens() }))
}

async fn revoke(
    State(bridge): State<Arc<Bridge>>,
    Extension(operator): AskingOperator,
    Path(name): Path<String>,
    uri: Uri,
) -> AdminResponse {
    let stop_work = parameter(&uri, "stop_work").as_deref() == Some("true");
    bridge.record_admin(
        "revoke_token",
        &operator,
        json!({ "token": name, "stop_work": stop_work }),
    );
    let (tokens, token) = (Arc::clone(&bridge), name.clone());
    let revoked = match tokio::task::spawn_blocking(move || tokens.auth.revoke(&token)).await {
        Ok(revoked) => revoked.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let unwritten = |error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, -32000, error);
    if !revoked.map_err(unwritten)? {
        return Err(Refusal::not_found(format!("no token is called {name}")));
    }
    if stop_work {
        bridge
            .stop_work_of(&name, &did(&operator.name, "revoked its token", None))
            .await;
    }
    Ok(answer(&json!({ "revoked": name, "stopped_work": stop_work })))
}

async fn drain(State(bridge): State<Arc<Bridge>>, Extension(operator): AskingOperator) -> Response {
    bridge.record_admin("drain", &operator, json!({}));
    bridge.shutdown.cancel();
    let seconds = bridge.settings.times.drain.as_secs_f64();
    let body = json!({ "draining": true, "seconds": seconds }).to_string();
    json_response(StatusCode::ACCEPTED, body.into())
}

/// A parameter in the query.
fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let query = uri.query().unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()))
}

pub(super) fn number(uri: &Uri, name: &str) -> Result<Option<u64>, Refusal> {
    let text = parameter(uri, name);
    let number = text.map(|text| text.parse::<u64>()).transpose();
    number.map_err(|_| Refusal::bad_request(format!("`{name}` must be a number")))
}

pub(super) fn answer(body: &Value) -> Response {
    json_response(StatusCode::OK, body.to_string().into())
}

impl From<AdminError> for Refusal {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::UnknownOperation(_) => Self::not_found(error.to_string()),
            AdminError::Backend(_) => Self::new(StatusCode::BAD_GATEWAY, -32000, error.to_string()),
        }
    }
}
