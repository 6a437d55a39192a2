//! The admin API: what runs, for whom, and how to stop it. For operators alone; `routes/gate.rs` lets no one else in.
//!
//! Every change is written to the audit trail with the operator's name. `docs/operations.md` describes each answer, and
//! `schemas/admin.schema.json` its form.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use http::{StatusCode, Uri};
use serde::Deserialize;
use serde_json::{Value, json};

use super::archived::Archived;
use super::body;
use crate::archive::ArchiveQuestion;
use crate::auth::Principal;
use crate::bridge::Bridge;
use crate::bridge_admin::{AdminError, Asked};
use crate::console::did;
use crate::http::refusal::{Refusal, json_response};
use crate::session::EndReason;

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
    let session = bridge.sessions.remove(&id);
    let session = session.ok_or_else(|| Refusal::not_found(format!("no session has the id {id}")))?;
    let why = did(&operator.name, "ended the session", reason.as_deref());
    bridge.record_admin(
        "end_session",
        &operator,
        json!({ "session": id, "reason": reason }),
    );
    bridge.end_session(session, EndReason::Operator(why)).await;
    Ok(answer(&json!({ "ended": id })))
}

async fn operations(State(bridge): State<Arc<Bridge>>, uri: Uri) -> Response {
    let (status, principal) = (parameter(&uri, "status"), parameter(&uri, "principal"));
    let is_wanted = |field: &str, wanted: &Option<String>, operation: &Value| {
        wanted.is_none() || operation[field].as_str() == wanted.as_deref()
    };
    let mut operations = bridge.described_operations(Asked::All).await;
    operations.retain(|operation| {
        is_wanted("status", &status, operation) && is_wanted("principal", &principal, operation)
    });
    answer(&json!({ "operations": operations }))
}

async fn output(
    State(bridge): State<Arc<Bridge>>,
    Extension(operator): AskingOperator,
    Extension(archived): Extension<Archived>,
    Path(id): Path<String>,
    uri: Uri,
) -> AdminResponse {
    let (from_line, lines) = (number(&uri, "from_line")?, number(&uri, "lines")?);
    let place = json!({ "id": id, "from_line": from_line, "lines": lines });
    let read = bridge.read_output(&id, place).await;
    let question = ArchiveQuestion::Output { id, from_line, lines };
    archived.unless_known(read, &bridge, &operator, question).await
}

async fn findings(
    State(bridge): State<Arc<Bridge>>,
    Extension(operator): AskingOperator,
    Extension(archived): Extension<Archived>,
    Path(id): Path<String>,
    uri: Uri,
) -> AdminResponse {
    let from = number(&uri, "from")?.unwrap_or(0);
    let place = json!({ "id": id, "from": from });
    let read = bridge.read_findings(&id, place).await;
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    let question = ArchiveQuestion::Findings { id, from };
    archived.unless_known(read, &bridge, &operator, question).await
}

async fn cancel(
    State(bridge): State<Arc<Bridge>>,
    Extension(operator): AskingOperator,
    Extension(archived): Extension<Archived>,
    Path(id): Path<String>,
    request: Request,
) -> AdminResponse {
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, &bridge.settings).await?;
    let CancelBody { reason } = match body.is_empty() {
        true => CancelBody::default(),
        false => serde_json::from_slice(&body).map_err(|error| {
            Refusal::bad_request(format!("the body is not {{\"reason\": TEXT}}: {error}"))
        })?,
    };
    bridge.record_admin("cancel", &operator, json!({ "operation": id, "reason": reason }));
    let why = did(&operator.name, "cancelled it", reason.as_deref());
    let cancelled = bridge.cancel_operation(&id, &why).await;
    let question = ArchiveQuestion::Stop { id, why };
    archived
        .unless_known(cancelled, &bridge, &operator, question)
        .await
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
    let revoked = bridge
        .auth
        .revoke(&name)
        .map_err(|error| Refusal::bad_request(error.to_string()))?;
    if !revoked {
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
