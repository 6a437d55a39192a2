//! The layers of the bridge: `child` below `session` below `routes`, and no cycles.

use std::path::Path;

use test_support::Layers;

fn rules() -> Layers<'static> {
    Layers {
        sources: Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        layers: &[
            &[
                "activity",
                "admin_client",
                "dependency",
                "descriptors",
                "digest",
                "file_stamp",
                "harmless",
                "isolation",
                "metrics",
                "paths",
                "peer",
                "redact",
                "session_store",
                "version",
            ],
            &["audit", "auth", "echo", "logins", "sse_endpoint", "stall", "tls"],
            &["operations"],
            &["child", "settings"],
            &["pressure", "serve_error", "session"],
            &["bridge", "http"],
            &["bridge_admin", "bridge_records", "bridge_sessions"],
            &["console"],
            &["archive"],
            &["maintenance", "routes"],
            &["args", "console_server", "server"],
            &["bin"],
        ],
        reserved: &[
            ("axum", &["console_server", "http", "routes", "server"]),
            (
                "http",
                &["admin_client", "auth", "http", "metrics", "routes", "server"],
            ),
            ("hyper", &["server"]),
            ("clap", &["args", "bin"]),
            ("rmcp", &[]),
            ("ahma_core", &[]),
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
        ("child", "use crate::session::Session;"),
        ("child", "let status = http::StatusCode::OK;"),
        (
            "child",
            "use crate::{\n    descriptors,\n    audit::Audit,\n    session::Activity,\n};",
        ),
        ("session", "use crate::http::refusal::Refusal;"),
        ("session", "use axum::Router;"),
        ("auth", "use crate::settings::BridgeSettings;"),
        // Of one layer.
        ("http", "use crate::bridge::Bridge;"),
        ("routes", "use ahma_core::mcp;"),
        ("unheard_of", ""),
    ];
    let allowed = [
        ("child", "use crate::echo::Echo; //! crate::session"),
        ("session", "use crate::{activity::Activity, child::Child};"),
        ("routes", "use axum::Router;\nuse crate::http::sse;"),
        ("lib", "pub use server::serve;"),
    ];
    rules().assert_sees(&forbidden, &allowed);
}
