use serde_json::json;

use super::*;

fn knowing(credentials: &[&str]) -> Redactor {
    let redactor = Redactor::new();
    for credential in credentials {
        redactor.remember(&Secret::new(*credential));
    }
    redactor
}

#[test]
fn credentials_are_found_in_text() {
    let redactor = knowing(&["planted-one", "t"]);
    let ours = format!("echo ahma_{}", "0f".repeat(32));
    let table = [
        ("nothing here", "nothing here"),
        ("curl -H 'X: planted-one'", "curl -H 'X: [redacted]'"),
        ("xplanted-onex", "x[redacted]x"),
        // A short one is no part of another word.
        ("the t of it", "the [redacted] of it"),
        ("-H 'Authorization: Basic abc'", "-H 'Authorization: [redacted]'"),
        ("-H \"authorization:xyz\"", "-H \"authorization:[redacted]\""),
        ("X-API-Key: abc def", "X-API-Key: [redacted] def"),
        ("export X_API_KEY", "export X_API_KEY"),
        ("use bearer abcdefgh-1 now", "use bearer [redacted] now"),
        ("bearer of news", "bearer of news"),
        ("jwt eyJhbGciOiJub25l.eyJ4.c2ln end", "jwt [redacted] end"),
        (ours.as_str(), "echo [redacted]"),
    ];
    for (text, expected) in table {
        assert_eq!(redactor.scrub(text), expected);
    }
}

#[test]
fn credentials_are_found_at_any_depth_in_values_and_keys() {
    let redactor = knowing(&["planted-one"]);
    let mut value = json!({
        "API-Key": "x", "list": [{ "access_token": ["x"] }, "planted-one"], "progressToken": 7,
        "planted-one": { "text": "a planted-one b" },
    });
    redactor.redact(&mut value);
    assert_eq!(
        value,
        json!({
            "API-Key": "[redacted]", "list": [{ "access_token": "[redacted]" }, "[redacted]"], "progressToken": 7,
            "[redacted]": { "text": "a [redacted] b" },
        })
    );
}

#[test]
fn only_so_many_are_remembered() {
    let redactor = Redactor::new();
    for number in 0..=REMEMBERED {
        redactor.remember(&Secret::new(format!("credential-{number:04}")));
    }
    assert_eq!(redactor.scrub("credential-0000"), "credential-0000");
    assert_eq!(redactor.scrub("credential-0001"), "[redacted]");
}
