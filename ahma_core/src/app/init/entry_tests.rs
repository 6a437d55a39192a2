use super::*;

const PROJECT: &str = "/srv/project";

fn edit(client: Client, text: &str) -> Result<Option<String>, String> {
    edit_with(client, text, &[])
}

fn edit_with(client: Client, text: &str, flags: &[&str]) -> Result<Option<String>, String> {
    let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
    let entry = client.entry("ahma_mcp", Path::new(PROJECT), flags);
    super::edit(text, client, Path::new(PROJECT), &entry)
}

#[test]
fn every_client_finds_the_entry_and_a_second_run_changes_nothing() {
    for client in Client::all() {
        let text = edit(client, "").expect("empty is fine").expect("it is new");
        let found = find(client, &text).expect("well-formed").expect("it is there");
        assert_eq!(found["command"], "ahma_mcp", "{client:?}: {text}");
        assert_eq!(edit(client, &text), Ok(None), "{client:?}: {text}");
    }
}

#[test]
fn other_entries_and_comments_stay() {
    let json =
        "{\n  // mine\n  \"servers\": {\n    \"other\": { \"command\": \"x\" }, // and this\n  },\n}\n";
    let edited = edit(Client::VsCode, json)
        .expect("it is JSON with comments")
        .expect("changed");
    for kept in [
        "// mine",
        "\"other\": { \"command\": \"x\" }",
        "// and this",
        "\"Ahama\"",
    ] {
        assert!(edited.contains(kept), "{kept} is gone:\n{edited}");
    }
    let toml = "# mine\nmodel = \"m\"\n\n[mcp_servers.other] # and this\ncommand = \"x\"\n";
    let edited = edit(Client::Codex, toml).expect("it is TOML").expect("changed");
    assert!(edited.starts_with(toml), "{edited}");
    assert!(
        edited.contains("[mcp_servers.Ahama]\ncommand = \"ahma_mcp\""),
        "{edited}"
    );
}

#[test]
fn an_entry_that_starts_our_program_is_the_users_own() {
    let text = r#"{"servers": {"Ahama": {"command": "${userHome}/ahma_mcp", "args": ["--network", "off"]}}}"#;
    assert_eq!(edit(Client::VsCode, text), Ok(None));
    let text = r#"{"servers": {"Ahama": {"command": "something-else"}}}"#;
    assert!(edit(Client::VsCode, text).expect("well-formed").is_some());
    // One file for all projects: the entry of another project does not do.
    let text =
        r#"{"mcpServers": {"Ahama": {"command": "ahma_mcp", "args": ["--sandbox-scope", "/srv/other"]}}}"#;
    let edited = edit(Client::Windsurf, text)
        .expect("well-formed")
        .expect("changed");
    assert!(
        edited.contains(PROJECT) && !edited.contains("/srv/other"),
        "{edited}"
    );
}

#[test]
fn what_cannot_be_read_is_not_touched() {
    for (client, text) in [
        (Client::VsCode, "{ broken"),
        (Client::VsCode, "[]"),
        (Client::Cursor, r#"{"mcpServers": 3}"#),
        (Client::Codex, "= broken"),
        (Client::Codex, "mcp_servers = 3"),
    ] {
        assert!(edit(client, text).is_err(), "{client:?}: {text}");
    }
}

#[test]
fn what_is_added_by_hand_is_in_the_language_of_the_file() {
    for (client, words) in [
        (Client::Codex, "[mcp_servers.Ahama]\ncommand = \"ahma_mcp\""),
        (Client::Claude, "\"mcpServers\": {"),
    ] {
        let entry = client.entry("ahma_mcp", Path::new(PROJECT), Vec::new());
        let text = by_hand(client, Path::new(PROJECT), &entry);
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_byte_order_mark_stays_and_is_in_nobodys_way() {
    for client in Client::all() {
        let edited = edit(client, "\u{feff}")
            .expect("empty is fine")
            .expect("it is new");
        assert!(edited.starts_with('\u{feff}'), "{client:?}: {edited}");
        assert!(
            find(client, &edited).expect("well-formed").is_some(),
            "{client:?}"
        );
    }
}

#[test]
fn where_the_program_is_gone_only_its_path_is_replaced() {
    const GONE: &str = "/no/such/place/ahma_mcp";
    for client in Client::all() {
        let mut stale = client.entry(GONE, Path::new(PROJECT), Vec::new());
        stale["note"] = "mine".into();
        let text = super::edit("", client, Path::new(PROJECT), &stale);
        let text = text.expect("empty is fine").expect("it is new");
        let edited = edit(client, &text).expect("well-formed").expect("changed");
        assert_eq!(edited, text.replace(GONE, "ahma_mcp"), "{client:?}");
    }
}

#[test]
fn a_cursor_entry_without_a_scope_gets_one_and_keeps_the_rest() {
    let text = r#"{"mcpServers": {"Ahama": {"command": "ahma_mcp", "args": ["--network", "off"]}}}"#;
    let edited = edit(Client::Cursor, text).expect("well-formed").expect("changed");
    let entry = find(Client::Cursor, &edited)
        .expect("well-formed")
        .expect("there");
    assert_eq!(
        entry["args"],
        serde_json::json!(["--network", "off", "--sandbox-scope", "${workspaceFolder}"])
    );
    for enough in [
        r#""args": ["--sandbox-scope=/srv/other"]"#,
        r#""env": {"AHMA_SANDBOX_SCOPE": "/srv/other"}"#,
    ] {
        let text = format!(r#"{{"mcpServers": {{"Ahama": {{"command": "ahma_mcp", {enough}}}}}}}"#);
        assert_eq!(edit(Client::Cursor, &text), Ok(None), "{enough}");
    }
}

#[test]
fn flags_that_were_given_are_added_to_what_an_entry_says() {
    let flags = ["--network", "off", "--sync"];
    for client in Client::all() {
        let plain = edit(client, "").expect("empty is fine").expect("it is new");
        let text = edit_with(client, &plain, &flags).expect("well-formed");
        let text = text.expect("changed");
        let entry = find(client, &text).expect("well-formed").expect("there");
        let args: Vec<&str> = strings(&entry["args"]).collect();
        assert!(args.ends_with(&flags), "{client:?}: {args:?}");
        assert_eq!(edit_with(client, &text, &flags), Ok(None), "{client:?}");
        assert_eq!(edit(client, &text), Ok(None), "{client:?}");
    }
}
