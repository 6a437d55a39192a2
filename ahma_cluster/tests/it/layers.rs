//! The layers of the crate: what computes does not know NATS.

use std::path::Path;

use test_support::Layers;

fn rules() -> Layers<'static> {
    const NATS: &[&str] = &[
        "link", "streams", "inspect", "tail", "output", "worker", "front", "steward",
    ];
    Layers {
        sources: Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        layers: &[
            &["names", "frame", "roster"],
            &["request", "permissions"],
            &["event"],
            &["fold"],
            &["index"],
            &["link"],
            &["streams"],
            &["inspect"],
            &["tail", "output", "sessions"],
            &["worker"],
            &["front"],
            &["steward"],
        ],
        reserved: &[
            ("async_nats", NATS),
            ("ahma_core", &[]),
            ("ahma_http_bridge", &[]),
            ("rmcp", &[]),
            ("clap", &[]),
        ],
    }
}

#[test]
fn modules_use_lower_layers_only() {
    assert_eq!(rules().violations(), Vec::<String>::new());
}

#[test]
fn the_check_sees_what_is_forbidden() {
    let forbidden = [
        ("fold", "use crate::link::Link;"),
        ("frame", "use async_nats::Message;"),
        ("worker", "use crate::steward::watch_over;"),
        ("front", "use ahma_core::mcp;"),
    ];
    let allowed = [
        ("worker", "use crate::{fold::Fold, link::Link};"),
        ("tail", "use async_nats::Message;"),
    ];
    rules().assert_sees(&forbidden, &allowed);
}
