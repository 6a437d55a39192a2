//! The HTTP surface: paths and their handlers. axum stays here and in `http`.

mod admin;
mod body;
pub(crate) mod console;
mod delete;
mod events;
mod exchange;
mod gate;
mod health;
mod legacy;
mod modern;
mod post;
mod sse_legacy;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post as post_method};
use tower_http::compression::CompressionLayer;

use crate::bridge::Bridge;
use crate::http::compression::LargeJson;
use crate::http::guard::WebGuard;
use crate::paths::{ENDPOINT, HEALTH_PATH, METADATA_PATH, METRICS_PATH};
use crate::peer::PeerRejected;

/// The router of a connection that may not use the bridge: the same answer everywhere.
pub(crate) fn refusing(bridge: &Arc<Bridge>, reason: PeerRejected) -> Router {
    Router::new()
        .fallback(gate::reject)
        .with_state((Arc::clone(bridge), reason))
}

/// The router of a bridge, with the pages of its console if it has one.
pub(crate) fn router(bridge: &Arc<Bridge>, guard: WebGuard, console: Option<Router>) -> Router {
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
        .merge(admin::router())
        .fallback(health::nothing_here)
        .method_not_allowed_fallback(health::wrong_method)
        .with_state(Arc::clone(bridge))
        .merge(console.unwrap_or_default())
        .layer(from_fn_with_state(gate, gate::pass))
        .layer(CompressionLayer::new().compress_when(LargeJson))
}
