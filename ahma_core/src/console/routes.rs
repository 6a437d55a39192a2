//! Paths of the console, and what its pages share.

use std::{path::PathBuf, sync::Arc};

use ahma_http_bridge::{Operator, OperatorSide, ServerAccess, Visitor};
use axum::{
    Extension, Router,
    extract::{FromRequestParts, Path, State},
    http::{HeaderMap, StatusCode, Uri, header, request::Parts, uri::Authority},
    response::{Html, IntoResponse, Redirect, Response},
    routing::{any, get, post},
};
use maud::Markup;
use tokio_util::sync::CancellationToken;

use super::{
    audit, history,
    layout::{self, ASSETS},
    live,
    machine::Machine,
    now, operation, output, pooled,
    query::Query,
    source::{HistorySource, SourceError},
    tools, welcome,
};
use crate::operation::Workforce;

/// Places of the history, and of the audit trail if there is one; the workers of the pool if the server is a front end.
#[derive(Debug, Clone)]
pub struct ConsoleSettings {
    pub state_dirs: Vec<PathBuf>,
    pub audit_file: Option<PathBuf>,
    pub pool: Option<Arc<dyn Workforce>>,
}

/// State shared by all pages. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Console {
    pub(super) source: HistorySource,
    pub(super) machine: Arc<Machine>,
    pub(super) audit_file: Option<PathBuf>,
    pub(super) pool: Option<Arc<dyn Workforce>>,
    pub(super) shutdown: CancellationToken,
}

pub(super) type PageResult = Result<Response, SourceError>;

impl Console {
    /// Samples load and memory until `shutdown`; needs a runtime.
    pub fn start(settings: ConsoleSettings, shutdown: CancellationToken) -> Self {
        let machine = Arc::new(Machine::default());
        tokio::spawn(Arc::clone(&machine).watch(shutdown.clone()));
        Self {
            source: HistorySource::new(&settings.state_dirs),
            machine,
            audit_file: settings.audit_file,
            pool: settings.pool,
            shutdown,
        }
    }

    /// The pages and the history, for a server over HTTP.
    pub fn operator_side(self) -> OperatorSide {
        OperatorSide {
            archive: Arc::new(self.source.clone()),
            pages: self.router(),
        }
    }

    /// The pages, for a server that knows its visitors.
    pub fn router(self) -> Router {
        Router::new()
            .route("/", get(first_page))
            // Shown when a login failed.
            .route("/console/login", any(first_page))
            .route("/console/now/events", get(now_events))
            .route("/console/operations/{id}", get(operation_page))
            .route("/console/operations/{id}/events", get(operation_events))
            .route("/console/operations/{id}/export/{form}", get(export))
            .route("/console/operations/{id}/cancel", post(cancel))
            .route("/console/sessions/{id}/end", post(end_session))
            .route("/console/history", get(history_page))
            .route("/console/tools", get(tools_page))
            .route("/console/sandbox", get(sandbox_page))
            .route("/console/audit", get(audit_page))
            .route("/console/assets/{version}/{name}", get(asset))
            .with_state(self)
    }
}

impl IntoResponse for SourceError {
    fn into_response(self) -> Response {
        let (status, title) = match &self {
            Self::UnknownOperation(_) | Self::Unknown(_) => (StatusCode::NOT_FOUND, "Not found"),
            Self::History(_) | Self::Output(_) => (StatusCode::INTERNAL_SERVER_ERROR, "Cannot be read"),
            Self::Refused(_) => (StatusCode::CONFLICT, "Not done"),
            Self::Malformed(_) => (StatusCode::BAD_REQUEST, "Not understood"),
        };
        (status, Html(layout::failure(title, &self).into_string())).into_response()
    }
}

pub(super) fn page(markup: Markup) -> PageResult {
    Ok(Html(markup.into_string()).into_response())
}

/// An operator who asks for a page, and the parameters of its address.
pub(super) struct Visit {
    pub(super) console: Console,
    pub(super) operator: Operator,
    pub(super) query: Query,
}

impl FromRequestParts<Console> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Response> {
        let operator = Extension::from_request_parts(parts, console).await;
        let Extension(operator) = operator.map_err(IntoResponse::into_response)?;
        Ok(Self {
            console: console.clone(),
            operator,
            query: Query::of(&parts.uri),
        })
    }
}

impl Visit {
    /// The server to ask about a pool, if it is a front end.
    fn front_end(&self) -> Option<&ServerAccess> {
        self.console.pool.as_ref().and(self.operator.server.as_ref())
    }
}

async fn first_page(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    uri: Uri,
) -> PageResult {
    // Requests of HTTP/2 have no such header.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or(uri.authority().map(Authority::as_str));
    match visitor {
        Visitor::Nobody {
            entry,
            server,
            refused,
        } => page(welcome::page(
            entry,
            server.as_ref().zip(host),
            refused.as_deref(),
        )),
        Visitor::Operator(operator) => page(now::page(&console, &operator).await?),
    }
}

async fn now_events(visit: Visit) -> Response {
    live::stream(now::NowView::new(visit.console, visit.operator))
}

async fn operation_page(visit: Visit, Path(id): Path<String>) -> PageResult {
    match (operation::page(&visit, &id).await, visit.front_end()) {
        (Err(SourceError::UnknownOperation(_)), Some(server)) => {
            page(pooled::page(&visit, server, &id).await?)
        }
        (shown, _) => page(shown?),
    }
}

async fn operation_events(visit: Visit, Path(id): Path<String>) -> PageResult {
    match (
        operation::OperationView::open(&visit, &id).await,
        visit.front_end(),
    ) {
        (Err(SourceError::UnknownOperation(_)), Some(server)) => {
            Ok(live::stream(pooled::PooledView::open(&visit, server, &id).await?))
        }
        (view, _) => Ok(live::stream(view?)),
    }
}

async fn export(visit: Visit, Path((id, form)): Path<(String, String)>) -> PageResult {
    output::export(&visit.console.source, &visit.operator, &id, &form).await
}

async fn cancel(visit: Visit, Path(id): Path<String>, form: String) -> PageResult {
    let reason = Query::read(&form).text("reason");
    let (source, operator) = (&visit.console.source, &visit.operator);
    let cancelled = source.cancel(operator, &id, reason.as_deref()).await;
    match (cancelled, visit.front_end()) {
        (Err(SourceError::UnknownOperation(_)), Some(server)) => {
            pooled::cancel(operator, server, &id, reason.as_deref()).await?;
        }
        (cancelled, _) => cancelled?,
    }
    Ok(Redirect::to(&layout::operation_path(&id)).into_response())
}

async fn end_session(
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    form: String,
) -> PageResult {
    let reason = Query::read(&form).text("reason");
    let ended = match &operator.server {
        Some(server) => server.end_session(&operator, &id, reason.as_deref()).await,
        None => false,
    };
    if ended {
        Ok(Redirect::to("/").into_response())
    } else {
        Err(SourceError::Unknown(format!("session {id}")))
    }
}

async fn history_page(visit: Visit) -> PageResult {
    page(history::page(&visit).await?)
}

async fn tools_page(visit: Visit) -> PageResult {
    page(tools::tools_page(&visit).await?)
}

async fn sandbox_page(visit: Visit) -> PageResult {
    page(tools::sandbox_page(&visit).await?)
}

async fn audit_page(visit: Visit) -> PageResult {
    page(audit::page(&visit).await?)
}

async fn asset(Path((_, name)): Path<(String, String)>) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => ([(header::CONTENT_TYPE, asset.kind)], asset.text).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
