use super::*;

fn echo(coloured: bool) -> Echo {
    Echo {
        coloured,
        redactor: Arc::new(Redactor::new()),
        printer: Arc::new(Printer::to(std::io::sink())),
    }
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
        (b"[\"\xc2\x9b31m\"]", "→ STDIN:\n[\n  \"\\u009b31m\"\n]\n"),
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

/// A terminal that takes nothing until it is told to, and hands on what it takes.
struct Stuck(mpsc::Receiver<()>, mpsc::Sender<String>);

impl Write for Stuck {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        // Free for good once the test lets go.
        let _ = self.0.recv();
        self.1.send(String::from_utf8_lossy(text).into_owned()).ok();
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_terminal_that_is_not_read_blocks_nothing_and_shows_how_much_it_missed() {
    let (free, stuck) = mpsc::channel();
    let (taken, shown) = mpsc::channel();
    let echo = Echo {
        printer: Arc::new(Printer::to(Stuck(stuck, taken))),
        ..echo(false)
    };
    let long = vec![b'x'; MAX_WAITING_BYTES / 4];
    for _ in 0..10 {
        echo.sent(&long);
    }
    for _ in 0..2 * MAX_WAITING {
        echo.sent(b"short");
    }
    drop(free);
    test_support::wait_for("all that waits to be shown", || {
        (echo.printer.waiting_bytes.load(Ordering::Relaxed) == 0).then_some(())
    });
    echo.sent(b"last");
    let last = shown.iter().find(|text| text.ends_with("last\n")).unwrap();
    assert!(last.contains("messages are not shown here"), "{last}");
}
