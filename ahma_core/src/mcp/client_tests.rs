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
