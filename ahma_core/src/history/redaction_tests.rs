use serde_json::json;

use super::*;

#[test]
fn arguments_keep_their_names_and_lose_their_secrets() {
    let Value::Object(arguments) = json!({
        "env": { "PGPASSWORD": "hunter2", "LANG": "C" },
        "stdin": "hunter2",
        "api_key": "hunter2",
        "nested": { "Auth-Token": "hunter2", "plain": [1, "two"] },
        "content": "x".repeat(MAX_TEXT + 1),
        "command": "y".repeat(MAX_TEXT + 1),
    }) else {
        panic!("an object")
    };
    let text = redacted_arguments(&arguments).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["env"], json!({ "PGPASSWORD": REDACTED, "LANG": REDACTED }));
    assert_eq!(
        read["nested"],
        json!({ "Auth-Token": REDACTED, "plain": [1, "two"] })
    );
    assert_eq!(read["content"].as_str().unwrap().chars().count(), MAX_TEXT + 1);
    assert_eq!(read["command"].as_str().unwrap().chars().count(), MAX_TEXT + 1);
    assert!(!read["command"].as_str().unwrap().ends_with('…'), "{text}");
    assert_eq!(redacted_arguments(&Map::new()), None);
}

#[test]
fn long_arguments_are_cut_between_characters() {
    let many: Map<_, _> = (0..100)
        .map(|number| (format!("ä{number}"), Value::from("ö".repeat(100))))
        .collect();
    let text = redacted_arguments(&many).unwrap();
    assert!(text.len() <= MAX_ARGUMENTS + '…'.len_utf8() && text.ends_with('…'));
}

#[test]
fn forms_of_secrets_are_known() {
    for (given, kept) in [
        (
            "mysql --password hunter2 -u me",
            "mysql --password [redacted] -u me",
        ),
        ("mysql --password=hunter2", "mysql --password=[redacted]"),
        ("GITHUB_TOKEN=abc make", "GITHUB_TOKEN=[redacted] make"),
        (
            "curl -H 'Authorization: Bearer abcdefghij' x",
            "curl -H 'Authorization: [redacted]' x",
        ),
        ("curl -H \"X-Api-Key: abc\"", "curl -H \"X-Api-Key: [redacted]\""),
        ("send bearer abcdefghij now", "send bearer [redacted] now"),
        (
            "git clone https://me:hunter2@example.com/r",
            "git clone https://me:[redacted]@example.com/r",
        ),
        ("echo eyJhbGciOiJI.eyJzdWIi.c2ln", "echo [redacted]"),
        ("echo ghp_0123456789abcdefghij", "echo [redacted]"),
        (
            r#"{"token": "abc", "x": 1}"#,
            r#"{"token": "[redacted]", "x": 1}"#,
        ),
        ("cargo test tokens_are_read", "cargo test tokens_are_read"),
        ("grep -n key src", "grep -n key src"),
    ] {
        assert_eq!(without_secrets(given), kept);
    }
}
