//! The time that clients wait for the answer to a call.
//!
//! A client that gives up on a request loses its answer, and most do not say how long they wait; so the table holds
//! only what is known of a client, with a margin.

use std::time::Duration;

use rmcp::{RoleServer, service::RequestContext};

use super::server::ServerSettings;

/// Most clients give up after a minute.
pub(crate) const DEFAULT_SYNC_WAIT: Duration = Duration::from_secs(45);

/// By the name that the client gives itself. `claude-code` moves a call to the background after two minutes, the others
/// give it up after five and ten.
const KNOWN_WAITS: [(&str, Duration); 3] = [
    ("claude-code", Duration::from_secs(110)),
    ("codex-mcp-client", Duration::from_secs(240)),
    ("gemini-cli-mcp-client", Duration::from_secs(540)),
];

/// Waits only as long as it gets progress notifications.
const RESET_BY_PROGRESS: (&str, Duration) = ("opencode", Duration::from_secs(540));

/// Time that a synchronous call may take: the user's choice, or what its client allows.
pub(super) fn sync_wait(settings: &ServerSettings, ctx: &RequestContext<RoleServer>) -> Duration {
    settings.sync_wait.unwrap_or_else(|| {
        let name = ctx.client_info().map(|client| client.name);
        let has_progress = ctx.meta.get_progress_token().is_some();
        of_client(name.as_deref().unwrap_or_default(), has_progress)
    })
}

fn of_client(name: &str, has_progress: bool) -> Duration {
    let resets = has_progress.then_some(RESET_BY_PROGRESS);
    KNOWN_WAITS
        .into_iter()
        .chain(resets)
        .find(|(known, _)| *known == name)
        .map_or(DEFAULT_SYNC_WAIT, |(_, wait)| wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_made_to_wait_only_as_long_as_it_is_known_to() {
        for (name, has_progress, seconds) in [
            ("", true, 45),
            ("another", true, 45),
            ("claude-code", false, 110),
            ("codex-mcp-client", false, 240),
            ("gemini-cli-mcp-client", true, 540),
            ("opencode", false, 45),
            ("opencode", true, 540),
        ] {
            assert_eq!(
                of_client(name, has_progress),
                Duration::from_secs(seconds),
                "{name}"
            );
        }
    }
}
