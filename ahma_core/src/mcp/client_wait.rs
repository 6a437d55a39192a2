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

/// Most clients give up on a request after a minute without a word.
pub(crate) const MAX_QUIET_AWAIT: Duration = Duration::from_secs(50);

/// A client that asked for progress is told every few seconds that the request is alive.
pub(super) const MAX_AWAIT: Duration = Duration::from_secs(600);

/// Time that a synchronous call may take: the user's choice, or what its client allows.
pub(super) fn sync_wait(settings: &ServerSettings, ctx: &RequestContext<RoleServer>) -> Duration {
    settings.sync_wait.unwrap_or_else(|| {
        let name = ctx.client_info().map(|client| client.name);
        let has_progress = ctx.meta.get_progress_token().is_some();
        of_client(name.as_deref().unwrap_or_default(), has_progress)
    })
}

/// Time that `await` may take: what is asked for, or what the client allows, but never longer than it allows.
pub(super) fn await_wait(
    asked: Option<Duration>,
    settings: &ServerSettings,
    ctx: &RequestContext<RoleServer>,
) -> Duration {
    let has_progress = ctx.meta.get_progress_token().is_some();
    await_within(asked, sync_wait(settings, ctx), has_progress)
}

fn await_within(asked: Option<Duration>, allowed: Duration, has_progress: bool) -> Duration {
    let longest = if has_progress {
        MAX_AWAIT
    } else {
        allowed.max(MAX_QUIET_AWAIT)
    };
    asked.unwrap_or(allowed).min(longest)
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

    /// More than fifty seconds only where the client is known to wait, or hears of progress meanwhile.
    #[test]
    fn await_takes_what_is_asked_for_within_the_limit_of_the_client() {
        for (name, has_progress, asked, seconds) in [
            ("another", false, None, 45),
            ("another", false, Some(20), 20),
            ("another", false, Some(300), 50),
            ("another", true, Some(300), 300),
            ("claude-code", false, Some(300), 110),
            ("codex-mcp-client", false, None, 240),
            ("codex-mcp-client", false, Some(120), 120),
            ("gemini-cli-mcp-client", false, Some(600), 540),
            ("opencode", false, Some(300), 50),
            ("opencode", true, None, 540),
        ] {
            let asked = asked.map(Duration::from_secs);
            let wait = await_within(asked, of_client(name, has_progress), has_progress);
            assert_eq!(wait, Duration::from_secs(seconds), "{name} {asked:?}");
        }
    }
}
