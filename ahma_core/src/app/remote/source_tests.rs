use std::fs;

use clap::Parser;

use super::*;

/// The flags alone.
#[derive(Debug, Parser)]
struct Flags {
    #[command(flatten)]
    remote: RemoteArgs,
}

fn resolve(scope: &Path, flags: &[&str]) -> Result<RemoteSettings, Failure> {
    let flags = std::iter::once("ahma_mcp").chain(flags.iter().copied());
    let flags = Flags::try_parse_from(flags).expect("known flags");
    RemoteSettings::resolve(&flags.remote, scope, scope)
}

/// The chosen file below the scope, its trust, and what happens when a server requires a login.
fn chosen(scope: &Path, flags: &[&str]) -> Option<(String, ConfigTrust, LoginMode)> {
    let settings = resolve(scope, flags).expect("usable");
    let file = settings.file?;
    let path = file.path.strip_prefix(scope).expect("in the scope");
    Some((
        path.to_str().expect("plain").to_owned(),
        file.trust,
        settings.client.login,
    ))
}

#[test]
fn a_named_file_is_trusted_and_a_found_one_is_not() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let scope = root.path().canonicalize().expect("it exists").join("scope");
    fs::create_dir_all(scope.join(".vscode")).expect("writable");
    assert_eq!(chosen(&scope, &[]), None);
    assert!(resolve(&scope, &["--mcp-config", "missing.json"]).is_err());

    let found = |path: &str| Some((path.to_owned(), ConfigTrust::Found, LoginMode::Never));
    // The client that reads this file has its servers already.
    fs::write(scope.join(".vscode/mcp.json"), "{}").expect("writable");
    assert_eq!(chosen(&scope, &[]), None);
    let of_the_client = ["--mcp-config", ".vscode/mcp.json", "--no-browser"];
    let named_of_the_client = (".vscode/mcp.json".to_owned(), ConfigTrust::Named, LoginMode::Link);
    assert_eq!(chosen(&scope, &of_the_client), Some(named_of_the_client));
    fs::write(scope.join("mcp.json"), "{}").expect("writable");
    assert_eq!(chosen(&scope, &[]), found("mcp.json"));
    assert_eq!(chosen(&scope, &["--no-mcp-config"]), None);

    let named = |login| Some(("mcp.json".to_owned(), ConfigTrust::Named, login));
    let flags = ["--mcp-config", "mcp.json", "--no-browser"];
    assert_eq!(chosen(&scope, &flags[..2]), named(LoginMode::Browser));
    assert_eq!(chosen(&scope, &flags), named(LoginMode::Link));
    let in_bridge = ["--mcp-config", "mcp.json", "--bridge-address", "127.0.0.1:1"];
    assert_eq!(chosen(&scope, &in_bridge), named(LoginMode::Never));
    let nested = ["--mcp-config", "mcp.json", "--no-mcp-config"];
    assert_eq!(chosen(&scope, &nested), None, "a mounted server mounts nothing");
}

#[test]
fn the_advice_to_log_in_leads_to_the_same_file_and_logins() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let scope = root.path().canonicalize().expect("it exists");
    let shown = scope.display();
    fs::write(scope.join("mcp.json"), "{}").expect("writable");
    let advice = |flags: &[&str]| {
        let settings = resolve(&scope, flags).expect("usable");
        settings.client.login_command.to("jira")
    };
    assert_eq!(
        advice(&[]),
        format!("ahma_mcp --sandbox-scope {shown} login jira")
    );
    assert_eq!(
        advice(&["--mcp-config", "mcp.json", "--token-file", "/my tokens.json"]),
        format!("ahma_mcp login jira --token-file '/my tokens.json' --mcp-config {shown}/mcp.json")
    );
}

#[test]
fn a_found_file_that_leads_out_of_the_scope_is_not_read() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let scope = root.path().canonicalize().expect("it exists").join("scope");
    fs::create_dir(&scope).expect("writable");
    fs::write(root.path().join("secret.json"), "{}").expect("writable");
    std::os::unix::fs::symlink("../secret.json", scope.join("mcp.json")).expect("writable");
    assert_eq!(chosen(&scope, &[]), None);
}
