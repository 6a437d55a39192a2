//! The HTTP surface: which path does what. axum stays here and in `http`.

mod body;
mod delete;
mod events;
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

use crate::auth::METADATA_PATH;
use crate::bridge::Bridge;
use crate::http::compression::LargeJson;
use crate::http::guard::WebGuard;

pub(crate) const ENDPOINT: &str = "/mcp";
pub(crate) const HEALTH_PATH: &str = "/healthz";

pub(crate) fn router(bridge: &Arc<Bridge>, guard: WebGuard) -> Router {
    let sse_path = bridge.settings.sse_path.clone();
    let message_path = sse_legacy::message_path(&sse_path);
    let gate = Arc::new(gate::Gate {
        guard,
        bridge: Arc::clone(bridge),
    });
    Router::new()
        .route(
            ENDPOINT,
            post_method(post::post).get(events::get).delete(delete::delete),
        )
        .route(&sse_path, get(sse_legacy::open))
        .route(&message_path, post_method(sse_legacy::message))
        .route(HEALTH_PATH, get(health::healthz))
        .route("/metrics", get(health::metrics))
        .route(METADATA_PATH, get(health::resource_metadata))
        .route(
            &format!("{METADATA_PATH}{ENDPOINT}"),
            get(health::resource_metadata),
        )
        .fallback(health::nothing_here)
        .method_not_allowed_fallback(health::wrong_method)
        .layer(from_fn_with_state(gate, gate::pass))
        .layer(CompressionLayer::new().compress_when(LargeJson))
        .with_state(Arc::clone(bridge))
}
