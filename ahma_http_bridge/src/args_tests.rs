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
    let table: [(&[&str], Result<&str, ArgsError>); 8] = [
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
        "--allow-host",
        "a,b",
    ];
    let settings = settings(&flags).unwrap();
    assert_eq!(settings.isolation, Isolation::PerSession);
    assert_eq!(settings.limits.sessions, 7);
    assert_eq!(settings.times.request, Duration::from_secs(9));
    assert_eq!(settings.allowed_hosts, ["a", "b"]);
}

#[test]
fn a_certificate_needs_its_key() {
    assert!(Cli::try_parse_from(["program", "--tls-cert", "c"]).is_err());
}
