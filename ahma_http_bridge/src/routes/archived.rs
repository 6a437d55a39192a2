//! The part of the admin API that comes from the history: what ran, whatever server process ran it.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Extension, Router};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{StatusCode, Uri};
use serde_json::{Value, json};

use super::admin::{AdminResponse, AskingOperator, answer, number};
use crate::archive::{Archive, ArchiveError, ArchiveQuestion};
use crate::audit::{newest_lines, verify_audit};
use crate::auth::Principal;
use crate::bridge::Bridge;
use crate::bridge_admin::AdminError;
use crate::console::{Operator, ServerAccess};
use crate::http::refusal::Refusal;

/// Lines of the audit trail, unless the request says how many.
const AUDIT_LINES: usize = 200;

pub(crate) fn router() -> Router<Arc<Bridge>> {
    Router::new()
        .route("/admin/v1/history", get(operations))
        .route("/admin/v1/history/{id}", get(operation))
        .route("/admin/v1/history/{id}/{form}", get(export))
        .route("/admin/v1/servers", get(servers))
        .route("/admin/v1/audit", get(audit))
}

/// The history, if the program has one.
#[derive(Debug, Clone)]
pub(super) struct Archived(pub(super) Option<Arc<dyn Archive>>);

/// An operator with a question that the history may have to answer.
pub(super) struct Asker {
    pub(super) bridge: Arc<Bridge>,
    pub(super) operator: Arc<Principal>,
    archived: Archived,
}

impl FromRequestParts<Arc<Bridge>> for Asker {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, bridge: &Arc<Bridge>) -> Result<Self, Response> {
        type Extensions = (AskingOperator, Extension<Archived>);
        let (Extension(operator), Extension(archived)) =
            Extensions::from_request_parts(parts, bridge).await?;
        Ok(Self {
            bridge: Arc::clone(bridge),
            operator,
            archived,
        })
    }
}

impl Asker {
    async fn ask(&self, question: ArchiveQuestion) -> AdminResponse {
        let archive = self.archived.0.as_ref();
        let archive = archive.ok_or_else(|| Refusal::not_found("this server keeps no history"))?;
        let operator = Operator {
            name: Arc::clone(&self.operator.name),
            form_token: "".into(),
            server: Some(ServerAccess(Arc::clone(&self.bridge))),
        };
        let found = archive.answer(operator, question).await?;
        Ok(([(CONTENT_TYPE, found.kind)], found.body).into_response())
    }

    /// The answer of the server process that has the operation, else that of the history.
    pub(super) async fn or_ask(
        &self,
        answered: Result<Value, AdminError>,
        question: ArchiveQuestion,
    ) -> AdminResponse {
        match answered {
            Err(AdminError::UnknownOperation(_)) if self.archived.0.is_some() => self.ask(question).await,
            answered => Ok(answer(&answered?)),
        }
    }
}

async fn operations(asker: Asker, uri: Uri) -> AdminResponse {
    let query = uri.query().unwrap_or_default().to_owned();
    asker.ask(ArchiveQuestion::Operations { query }).await
}

async fn operation(asker: Asker, Path(id): Path<String>) -> AdminResponse {
    asker.ask(ArchiveQuestion::Operation { id }).await
}

async fn export(asker: Asker, Path((id, form)): Path<(String, String)>) -> AdminResponse {
    asker.ask(ArchiveQuestion::Export { id, form }).await
}

async fn servers(asker: Asker) -> AdminResponse {
    asker.ask(ArchiveQuestion::Servers).await
}

/// The newest lines of the audit trail, and whether it is as it was written.
async fn audit(State(bridge): State<Arc<Bridge>>, uri: Uri) -> AdminResponse {
    let lines = number(&uri, "lines")?.map(|lines| usize::try_from(lines).unwrap_or(usize::MAX));
    let file = bridge.settings.audit_file.clone();
    let file = file.ok_or_else(|| Refusal::not_found("there is no audit trail; --audit-file keeps one"))?;
    let read = tokio::task::spawn_blocking(move || {
        let verdict = verify_audit(&file);
        let newest = newest_lines(&file, lines.unwrap_or(AUDIT_LINES))?;
        let parsed = newest
            .into_iter()
            .map(|line| serde_json::from_str(&line).unwrap_or(Value::String(line)));
        Ok(json!({
            "intact": verdict.is_ok(),
            "trouble": verdict.err().map(|error| error.to_string()),
            "lines": parsed.collect::<Vec<Value>>(),
        }))
    });
    let unreadable = |error: String| {
        let message = format!("the audit trail cannot be read: {error}");
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, -32000, message)
    };
    match read.await {
        Ok(Ok(trail)) => Ok(answer(&trail)),
        Ok(Err(error)) => Err(unreadable(std::io::Error::to_string(&error))),
        Err(error) => Err(unreadable(error.to_string())),
    }
}

impl From<ArchiveError> for Refusal {
    fn from(error: ArchiveError) -> Self {
        let message = error.to_string();
        match error {
            ArchiveError::Unknown(_) => Self::not_found(message),
            ArchiveError::Malformed(_) => Self::bad_request(message),
            ArchiveError::Refused(_) => Self::new(StatusCode::CONFLICT, -32000, message),
            ArchiveError::Unreadable(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, -32000, message),
        }
    }
}
