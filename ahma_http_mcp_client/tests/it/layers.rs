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
    let rules = rules();
    for (module, text) in [
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
    ] {
        assert_ne!(
            rules.violations_in(module, text),
            Vec::<String>::new(),
            "{module}: {text}"
        );
    }
    for (module, text) in [
        (
            "remote",
            "use crate::{config::ServerConfig, oauth::{LoginError, PendingLogin}};",
        ),
        ("remote", "/// See crate::front.\nuse super::handle::Control;"),
        ("lib", "pub use front::front;"),
    ] {
        assert_eq!(
            rules.violations_in(module, text),
            Vec::<String>::new(),
            "{module}: {text}"
        );
    }
}
