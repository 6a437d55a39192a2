//! Logging in, with a real authorization server and a user who follows the link.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use serde_json::json;
use test_support::{Era, HttpServer, ServerOptions, Workspace, wait_for};

use super::{mounting, text_of, wait_for_complaint, wait_for_state, wait_for_tool};
use crate::session::options;

/// The program beside this file.
fn protected(workspace: &Workspace) -> HttpServer {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/remote/protected.py");
    HttpServer::start(&ServerOptions::new("/usr/bin/env", workspace).args(["python3", program]))
}

/// Follows a link as a browser does, and gives the page at its end.
#[track_caller]
fn browse(link: &str) -> String {
    let script = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())";
    let output = Command::new("python3")
        .args(["-c", script, link])
        .output()
        .expect("python3");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn link_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("open ")?;
    let (link, _) = rest.split_once(char::is_whitespace)?;
    link.starts_with("http").then(|| link.to_owned())
}

fn tokens(workspace: &Workspace) -> std::path::PathBuf {
    workspace.home().join("tokens.json")
}

#[test]
fn a_login_is_asked_for_once_and_can_be_forgotten() {
    let workspace = Workspace::new();
    let far = protected(&workspace);
    let url = format!("http://{}/mcp", far.address());
    let start = || {
        mounting(&workspace, &json!({"jira": {"url": url}}))
            .env("AHMA_HTTP_CLIENT_TOKEN_PATH", tokens(&workspace))
            .open(Era::Legacy)
    };
    let mut server = start();
    let status = wait_for("the link", || {
        let status = wait_for_state(&mut server, "jira", "login_required");
        status["login_link"].is_string().then_some(status)
    });
    let link = wait_for("the link on stderr", || link_in(&server.complaints()));
    assert_eq!(status["login_link"], json!(link));
    server.call("logging/setLevel", json!({"level": "warning"}));
    let logged = server.notification("notifications/message");
    assert_eq!(
        logged["params"]["data"],
        json!(format!("remote server `jira` requires a login: open {link}"))
    );
    let refused = server.tool("jira_whoami", json!({}));
    assert_eq!(refused["isError"], true);
    assert!(text_of(&refused).contains(&link), "{refused}");

    assert!(browse(&link).contains("You are logged in"));
    wait_for_tool(&mut server, "jira_whoami");
    assert_eq!(text_of(&server.tool("jira_whoami", json!({}))), "a known user");
    let mode = std::fs::metadata(tokens(&workspace))
        .expect("written")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(server);

    let mut server = start();
    wait_for_tool(&mut server, "jira_whoami");
    assert_eq!(server.complaints(), "", "the second start needs no login");
    drop(server);

    let logout = options(&workspace)
        .args(["logout", &url])
        .env("AHMA_HTTP_CLIENT_TOKEN_PATH", tokens(&workspace))
        .command()
        .output()
        .expect("it starts");
    assert_eq!(logout.status.code(), Some(0));
    let mut server = start();
    wait_for_state(&mut server, "jira", "login_required");
}

#[test]
fn a_login_for_a_found_file_counts_for_that_file_alone() {
    let home = Workspace::new();
    let far = protected(&home);
    let entry = json!({"servers": {"jira": {"url": format!("http://{}/mcp", far.address())}}});
    let project = |workspace: &Workspace| {
        std::fs::write(workspace.scope().join("mcp.json"), entry.to_string()).expect("writable");
        options(workspace).env("AHMA_HTTP_CLIENT_TOKEN_PATH", tokens(&home))
    };
    let (mine, foreign) = (Workspace::new(), Workspace::new());
    let mut server = project(&mine).open(Era::Legacy);
    let status = wait_for_state(&mut server, "jira", "login_required");
    assert!(
        status.get("login_link").is_none(),
        "no request was open for that page: {status}"
    );
    wait_for_complaint(&server, "login jira --token-file");

    let mut login = project(&mine)
        .args(["login", "jira", "--no-browser"])
        .command()
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(login.stderr.take().expect("piped")).lines();
    for line in lines.map_while(Result::ok) {
        if let Some(link) = link_in(&format!("{line}\n")) {
            browse(&link);
        }
    }
    assert!(login.wait().expect("our child").success());
    // The running server notices.
    wait_for_tool(&mut server, "jira_whoami");

    let mut server = project(&foreign).open(Era::Legacy);
    wait_for_state(&mut server, "jira", "login_required");
}

/// Text browsers talk to whatever terminal they are given, and stay until the user leaves.
#[test]
fn a_text_browser_touches_no_stream_of_ours_and_is_not_waited_for() {
    let workspace = Workspace::new();
    let far = protected(&workspace);
    let url = format!("http://{}/mcp", far.address());
    let lynx = workspace.home().join("lynx");
    let follow = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()";
    let script = format!(
        "#!/bin/sh\necho noise; echo noise >&2\nread -r stolen\npython3 -c '{follow}' \"$1\"\nwhile [ -e \"$0\" ]; do sleep 0.1; done\n"
    );
    std::fs::write(&lynx, script).expect("writable");
    std::fs::set_permissions(&lynx, std::fs::Permissions::from_mode(0o755)).expect("ours");
    let mut front = options(&workspace)
        .args(["--server-url", &url])
        .env("AHMA_HTTP_CLIENT_TOKEN_PATH", tokens(&workspace))
        .env("BROWSER", &lynx)
        .open(Era::Legacy);
    assert_eq!(text_of(&front.tool("whoami", json!({}))), "a known user");
    assert!(!front.complaints().contains("noise"), "{}", front.complaints());
}

#[test]
fn login_says_what_is_wrong() {
    let workspace = Workspace::new();
    std::fs::write(
        workspace.scope().join("mcp.json"),
        json!({"servers": {"good": {"url": "https://x.example"}, "bad": {"url": 7}}}).to_string(),
    )
    .expect("writable");
    for (arguments, words) in [
        (&["login", "unknown"][..], "its servers are: good"),
        (&["login", "bad"], "servers.bad.url: must be a string"),
        (&["login", "http://intranet.example/mcp"], "use the https address"),
        (
            &["login", "x", "--mcp-config", "none.json"],
            "none.json is not a file",
        ),
    ] {
        let output = options(&workspace)
            .args(arguments)
            .command()
            .output()
            .expect("it starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(
            stderr.contains(words) && stderr.contains("hint:"),
            "{arguments:?}: {stderr}"
        );
    }
}
