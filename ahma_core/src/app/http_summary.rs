//! Summary of an HTTP server at its start: the settings that result from its flags.

use ahma_http_bridge::{AuthSettings, BridgeSettings, Isolation, TokenSource};

use super::settings::Settings;
use crate::mcp::SandboxNote;

/// Lines for a terminal, below the one with the address.
pub(super) fn summary(
    settings: &Settings,
    bridge: &BridgeSettings,
    sandbox: &SandboxNote,
    origin: &str,
) -> String {
    let auth = match &bridge.auth {
        AuthSettings::None => "none: every program on this machine is admitted, but no command".to_owned(),
        AuthSettings::Token(TokenSource::Single(_)) => "one token for all clients".to_owned(),
        AuthSettings::Token(TokenSource::File(file)) => format!("tokens of {}", file.display()),
        AuthSettings::OAuth(oauth) => format!("OAuth by {}", oauth.issuer),
    };
    let isolation = match bridge.isolation {
        Isolation::Shared => "one server process for all clients",
        Isolation::PerSession => "a server process for each session, confined to the client's first root",
    };
    let limits = &bridge.limits;
    let audit = bridge.audit_file.as_ref().map_or_else(
        || "sessions go to the log (--audit-file keeps a trail)".to_owned(),
        |file| file.display().to_string(),
    );
    let metrics = match bridge.metrics {
        true => format!("{origin}/metrics"),
        false => "off (--metrics)".to_owned(),
    };
    let scope = sandbox.scope.display();
    let for_clients = format!("{} sessions, {} connections", limits.sessions, limits.connections);
    // What a front end does not decide, its summary does not say.
    let (sandbox, limits, tools) = match &sandbox.pool {
        Some(pool) => (
            format!("that of each worker, scope {scope}"),
            for_clients,
            format!("those of the workers of pool {pool}, which run all commands"),
        ),
        None => (
            format!("{}, scope {scope}, network {}", sandbox.tier, sandbox.network),
            format!(
                "{for_clients}, {} operations at once",
                settings.execution.max_operations
            ),
            settings.tools_dir.display().to_string(),
        ),
    };
    let lines = [
        ("auth", auth),
        ("isolation", isolation.to_owned()),
        ("sandbox", sandbox),
        ("limits", limits),
        ("tools", tools),
        ("audit", audit),
        ("metrics", metrics),
        ("console", format!("{origin}/")),
    ];
    let line = |(name, value): (&str, String)| format!("  {name:<10}{value}\n");
    lines.into_iter().map(line).collect()
}
