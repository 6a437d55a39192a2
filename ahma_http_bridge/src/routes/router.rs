//! The paths and their handlers.

use std::sync::Arc;

use axum::middleware::from_fn_with_state;
use axum::routing::{get, post as post_method};
use axum::{Extension, Router};
use tower_http::compression::CompressionLayer;

use super::archived::Archived;
use super::{admin, archived, delete, events, gate, health, post, sse_legacy};
use crate::archive::Archive;
use crate::bridge::Bridge;
use crate::http::compression::LargeJson;
use crate::http::guard::WebGuard;
use crate::paths::{ENDPOINT, HEALTH_PATH, METADATA_PATH, METRICS_PATH};
use crate::peer::PeerRejected;

/// The part of a server for operators that the program hands in.
#[derive(Debug, Clone)]
pub struct OperatorSide {
    /// The pages of the console, for `/` (which `/console/login` is too) and below `/console/`. They find a
    /// [`Visitor`](crate::Visitor) in every request.
    pub pages: Router,
    pub archive: Arc<dyn Archive>,
}

/// The router of a connection that may not use the bridge: the same answer everywhere.
pub(crate) fn refusing(bridge: &Arc<Bridge>, reason: PeerRejected) -> Router {
    Router::new()
        .fallback(gate::reject)
        .with_state((Arc::clone(bridge), reason))
}

/// The router of a bridge. Pages have their door before them already.
pub(crate) fn router(bridge: &Arc<Bridge>, guard: WebGuard, operators: Option<OperatorSide>) -> Router {
    let (pages, archive) = operators.map(|side| (side.pages, side.archive)).unzip();
    let sse_path = &bridge.settings.sse_path;
    let gate = Arc::new(gate::Gate {
        guard,
        bridge: Arc::clone(bridge),
    });
    Router::new()
        .route(
            ENDPOINT,
            post_method(post::post)
                .get(events::get)
                .delete(delete::delete)
                .head(health::wrong_method),
        )
        // HEAD would take over a stream, or open a session, for nothing.
        .route(
            sse_path.as_str(),
            get(sse_legacy::open).head(health::wrong_method),
        )
        .route(&sse_path.messages(), post_method(sse_legacy::message))
        .route(HEALTH_PATH, get(health::healthz))
        .route(METRICS_PATH, get(health::metrics))
        .route(METADATA_PATH, get(health::resource_metadata))
        // The metadata of a resource has the resource's path at its end.
        .route(
            &format!("{METADATA_PATH}/{{*of}}"),
            get(health::resource_metadata),
        )
        .merge(
            admin::router()
                .merge(archived::router())
                .layer(Extension(Archived(archive))),
        )
        .fallback(health::nothing_here)
        .method_not_allowed_fallback(health::wrong_method)
        .with_state(Arc::clone(bridge))
        .merge(pages.unwrap_or_default())
        .layer(from_fn_with_state(gate, gate::pass))
        .layer(CompressionLayer::new().compress_when(LargeJson))
}
