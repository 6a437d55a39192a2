//! Paths of the console, and what its pages share.

use std::{path::PathBuf, sync::Arc};

use ahma_http_bridge::{Operator, OperatorSide, ServerAccess, Visitor};
use axum::{
    Extension, Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, Uri, header},
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

    /// The server to ask about a pool, if it is a front end.
    fn front_end<'a>(&self, operator: &'a Operator) -> Option<&'a ServerAccess> {
        self.pool.as_ref().and(operator.server.as_ref())
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
        let status = match &self {
            Self::UnknownOperation(_) | Self::Unknown(_) => StatusCode::NOT_FOUND,
            Self::History(_) | Self::Output(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Refused(_) => StatusCode::CONFLICT,
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
        };
        (status, Html(layout::failure(&self).into_string())).into_response()
    }
}

pub(super) fn page(markup: Markup) -> PageResult {
    Ok(Html(markup.into_string()).into_response())
}

async fn first_page(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
) -> PageResult {
    match visitor {
        Visitor::Nobody { entry, refused, .. } => page(welcome::page(entry, refused.as_deref(), &headers)),
        Visitor::Operator(operator) => page(now::page(&console, &operator).await?),
    }
}

async fn now_events(State(console): State<Console>, Extension(operator): Extension<Operator>) -> Response {
    live::stream(now::NowView::new(console, operator))
}

async fn operation_page(
    State(console): State<Console>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    uri: Uri,
) -> PageResult {
    let query = Query::of(&uri);
    let shown = operation::page(&console, &operator, &id, &query).await;
    match (shown, console.front_end(&operator)) {
        (Err(SourceError::UnknownOperation(_)), Some(server)) => {
            page(pooled::page(&operator, server, &id, &query).await?)
        }
        (shown, _) => page(shown?),
    }
}

async fn operation_events(
    State(console): State<Console>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    uri: Uri,
) -> PageResult {
    let query = Query::of(&uri);
    let view = operation::OperationView::open(console.clone(), &operator, &id, &query).await;
    match (view, console.front_end(&operator)) {
        (Err(SourceError::UnknownOperation(_)), Some(server)) => Ok(live::stream(
            pooled::PooledView::open(console.clone(), server, &id, &query).await?,
        )),
        (view, _) => Ok(live::stream(view?)),
    }
}

async fn export(
    State(console): State<Console>,
    Extension(operator): Extension<Operator>,
    Path((id, form)): Path<(String, String)>,
) -> PageResult {
    output::export(&console.source, &operator, &id, &form).await
}

async fn cancel(
    State(console): State<Console>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    form: String,
) -> PageResult {
    let reason = Query::read(&form).text("reason");
    let cancelled = console.source.cancel(&operator, &id, reason.as_deref()).await;
    match (cancelled, console.front_end(&operator)) {
        (Err(SourceError::UnknownOperation(_)), Some(server)) => {
            pooled::cancel(&operator, server, &id, reason.as_deref()).await?;
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

async fn history_page(
    State(console): State<Console>,
    Extension(operator): Extension<Operator>,
    uri: Uri,
) -> PageResult {
    page(history::page(&console, &operator, &Query::of(&uri)).await?)
}

async fn tools_page(
    State(console): State<Console>,
    Extension(operator): Extension<Operator>,
    uri: Uri,
) -> PageResult {
    page(tools::tools_page(&console, &operator, &Query::of(&uri)).await?)
}

async fn sandbox_page(
    State(console): State<Console>,
    Extension(operator): Extension<Operator>,
    uri: Uri,
) -> PageResult {
    page(tools::sandbox_page(&console, &operator, &Query::of(&uri)).await?)
}

async fn audit_page(State(console): State<Console>, Extension(operator): Extension<Operator>) -> PageResult {
    page(audit::page(&console, &operator).await?)
}

async fn asset(Path((_, name)): Path<(String, String)>) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => ([(header::CONTENT_TYPE, asset.kind)], asset.text).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
