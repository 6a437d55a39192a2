use super::*;

fn echo(coloured: bool) -> Echo {
    let redactor = Arc::new(Redactor::new());
    Echo { coloured, redactor }
}

fn plain(line: &[u8]) -> String {
    echo(false).render(BLUE, "→ STDIN:", line)
}

#[test]
fn json_is_pretty_everything_else_is_left_alone_and_credentials_are_hidden() {
    let table = [
        (&b"{\"a\":[1]}\n"[..], "→ STDIN:\n{\n  \"a\": [\n    1\n  ]\n}\n"),
        (b"plain text\r\n", "→ STDIN:\nplain text\n"),
        (b"{ not json", "→ STDIN:\n{ not json\n"),
        (b"42", "→ STDIN:\n42\n"),
        (
            b"Authorization: Bearer abc",
            "→ STDIN:\nAuthorization: [redacted]\n",
        ),
        (
            b"[{\"password\":1}]",
            "→ STDIN:\n[\n  {\n    \"password\": \"[redacted]\"\n  }\n]\n",
        ),
        (b"\xff", "→ STDIN:\n\u{fffd}\n"),
    ];
    for (line, expected) in table {
        assert_eq!(plain(line), expected);
    }
}

#[test]
fn the_prefix_is_coloured_on_a_terminal() {
    let text = echo(true).render(GREEN, "← STDOUT:", b"x");
    assert_eq!(text, "\x1b[32m← STDOUT:\x1b[0m\nx\n");
}
