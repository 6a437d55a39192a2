use super::*;

fn plain(line: &[u8]) -> String {
    Echo { coloured: false }.render(BLUE, "→ STDIN:", line)
}

#[test]
fn json_is_pretty_and_everything_else_is_left_alone() {
    let table = [
        (&b"{\"a\":[1]}\n"[..], "→ STDIN:\n{\n  \"a\": [\n    1\n  ]\n}\n"),
        (b"plain text\r\n", "→ STDIN:\nplain text\n"),
        (b"{ not json", "→ STDIN:\n{ not json\n"),
        (b"42", "→ STDIN:\n42\n"),
        (b"\xff", "→ STDIN:\n\u{fffd}\n"),
    ];
    for (line, expected) in table {
        assert_eq!(plain(line), expected);
    }
}

#[test]
fn the_prefix_is_coloured_on_a_terminal() {
    let text = Echo { coloured: true }.render(GREEN, "← STDOUT:", b"x");
    assert_eq!(text, "\x1b[32m← STDOUT:\x1b[0m\nx\n");
}

#[test]
fn credentials_are_hidden_at_any_depth() {
    let line = br#"{"params":{"arguments":{"API-Key":"s3cret","list":[{"access_token":["s3cret"]}]},"_meta":{"progressToken":7}}}"#;
    let text = plain(line);
    assert!(!text.contains("s3cret"), "{text}");
    assert!(text.contains("\"progressToken\": 7"), "{text}");
}
