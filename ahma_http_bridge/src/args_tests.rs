use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    bridge: BridgeArgs,
}

fn settings(flags: &[&str]) -> Result<BridgeSettings, ArgsError> {
    let words = std::iter::once("program").chain(flags.iter().copied());
    Cli::try_parse_from(words)
        .unwrap()
        .bridge
        .settings("/scope".into())
}

#[test]
fn the_way_to_authenticate_follows_from_what_is_given() {
    let oauth = [
        "--oauth-issuer",
        "https://i.example",
        "--oauth-resource",
        "https://r.example",
    ];
    let table: [(&[&str], Result<&str, ArgsError>); 15] = [
        (&[], Ok("None")),
        (&["--auth", "none"], Ok("None")),
        (&["--tokens-file", "f"], Ok("Token")),
        (&["--http-token", "t"], Ok("Token")),
        (&["--auth", "token"], Err(ArgsError::NoTokens)),
        (
            &["--auth", "none", "--tokens-file", "f"],
            Err(ArgsError::UnusedTokens),
        ),
        (&["--auth", "oauth"], Err(ArgsError::NoIssuer)),
        (
            &["--auth", "oauth", oauth[0], oauth[1], oauth[2], oauth[3]],
            Ok("OAuth"),
        ),
        (&oauth, Ok("OAuth")),
        (&oauth[..2], Err(ArgsError::NoIssuer)),
        (&oauth[2..], Err(ArgsError::NoIssuer)),
        (&["--oauth-scope", "s"], Err(ArgsError::NoIssuer)),
        (
            &["--auth", "none", oauth[0], oauth[1]],
            Err(ArgsError::UnusedIssuer("none")),
        ),
        (
            &["--auth", "token", "--tokens-file", "f", oauth[0], oauth[1]],
            Err(ArgsError::UnusedIssuer("token")),
        ),
        (
            &["--tokens-file", "f", oauth[0], oauth[1], oauth[2], oauth[3]],
            Err(ArgsError::TokensAndOauth),
        ),
    ];
    for (flags, expected) in table {
        let found = settings(flags).map(|settings| format!("{:?}", settings.auth));
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert!(found.starts_with(expected), "{flags:?}: {found}"),
            (found, expected) => assert_eq!(found.err(), expected.err(), "{flags:?}"),
        }
    }
}

#[test]
fn flags_reach_the_settings() {
    let flags = [
        "--session-isolation",
        "--max-sessions",
        "7",
        "--request-timeout",
        "9",
        "--session-idle",
        "2h",
        "--max-body",
        "8M",
        "--max-memory",
        "2G",
        "--sse-endpoint",
        "/events",
        "--allow-host",
        "a,b",
    ];
    let settings = settings(&flags).unwrap();
    assert_eq!(settings.isolation, Isolation::PerSession);
    assert_eq!(settings.limits.sessions, 7);
    assert_eq!(settings.times.request, Duration::from_secs(9));
    assert_eq!(settings.times.session_idle, Duration::from_secs(7200));
    assert_eq!(settings.limits.body_bytes, 8 << 20);
    assert_eq!(settings.limits.memory_bytes, Some(2 << 30));
    assert_eq!(settings.sse_path.as_str(), "/events");
    assert_eq!(settings.allowed_hosts, ["a", "b"]);
}

#[test]
fn a_certificate_needs_its_key() {
    assert!(Cli::try_parse_from(["program", "--tls-cert", "c"]).is_err());
}

#[test]
fn what_is_listened_on_follows_from_the_flags() {
    let url = "http://localhost:8888/mcp/sse";
    let table: [(&[&str], &str); 5] = [
        (&[], "127.0.0.1:3000"),
        (&["--http-host", "localhost", "--http-port", "0"], "127.0.0.1:0"),
        (&["--sse-endpoint", "/sse"], "127.0.0.1:3000"),
        (&["--sse-endpoint", url], "127.0.0.1:8888"),
        (&["--sse-endpoint", url, "--http-port", "9"], "127.0.0.1:9"),
    ];
    for (flags, expected) in table {
        let words = std::iter::once("program").chain(flags.iter().copied());
        let args = Cli::try_parse_from(words).unwrap().bridge;
        assert_eq!(args.address().to_string(), expected, "{flags:?}");
    }
}
