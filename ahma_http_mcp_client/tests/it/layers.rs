//! The layers of the client: `session` below `remote` below `front`, and no cycles.

use std::path::Path;

use test_support::Layers;

fn rules() -> Layers<'static> {
    Layers {
        sources: Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        layers: &[
            &["name", "shown", "tls", "login_command"],
            &["config"],
            &["oauth"],
            &["transport"],
            &["settings"],
            &["session"],
            &["error"],
            &["remote"],
            &["front", "inspect"],
        ],
        reserved: &[("axum", &[]), ("clap", &[]), ("ahma_core", &[])],
    }
}

#[test]
fn modules_use_lower_layers_only() {
    assert_eq!(rules().violations(), Vec::<String>::new());
}

#[test]
fn the_check_sees_what_is_forbidden() {
    let forbidden = [
        ("oauth", "use crate::settings::ClientSettings;"),
        (
            "session",
            "use crate::{\n    config::ServerConfig,\n    remote::RemoteServers,\n};",
        ),
        // Of one layer.
        ("front", "let found = crate::inspect::inspect(config).await;"),
        ("name", "use crate::{tls, shown::{self, shown_address}};"),
        // Re-exported by the root.
        ("session", "use crate::RemoteServers;"),
        ("remote", "use ahma_core::mcp;"),
        ("forgotten", ""),
    ];
    let allowed = [
        (
            "remote",
            "use crate::{config::ServerConfig, oauth::{LoginError, PendingLogin}};",
        ),
        ("remote", "/// See crate::front.\nuse super::handle::Control;"),
        ("lib", "pub use front::front;"),
    ];
    rules().assert_sees(&forbidden, &allowed);
}
