use super::*;

fn round_trip(bytes: &[u8], content: &str) {
    let text = FileText::decode(bytes.to_vec()).unwrap();
    assert_eq!(String::from_utf8_lossy(&text.content), content);
    assert_eq!(text.encode(text.content.clone()), bytes);
}

#[test]
fn every_encoding_is_written_back_as_it_was_read() {
    round_trip(b"", "");
    round_trip(b"a\r\nb\n", "a\r\nb\n");
    round_trip(b"\xef\xbb\xbfa", "a");
    round_trip(b"\xff\xfea\0\xac\x20\n\0", "a\u{20ac}\n");
    round_trip(b"\xfe\xff\0a\x20\xac\0\n", "a\u{20ac}\n");
    round_trip(b"\xff\xfe\x3d\xd8\x00\xde", "\u{1f600}");
    // Latin-1 has no mark and is not UTF-8: its bytes stay.
    let latin = FileText::decode(b"caf\xe9\n".to_vec()).unwrap();
    assert_eq!(latin.encode(latin.content.clone()), b"caf\xe9\n");
}

#[test]
fn what_is_no_text_is_refused() {
    assert_eq!(FileText::decode(b"\x7fELF\0\0".to_vec()), Err(NotText::Binary));
    assert_eq!(
        FileText::decode(b"\xff\xfea\0b".to_vec()),
        Err(NotText::BrokenUtf16)
    );
    assert_eq!(
        FileText::decode(b"\xff\xfe\x00\xd8".to_vec()),
        Err(NotText::BrokenUtf16)
    );
}

#[test]
fn the_line_ending_is_that_of_most_lines() {
    for (content, ending) in [
        ("", "\n"),
        ("a", "\n"),
        ("a\n", "\n"),
        ("a\r\n", "\r\n"),
        ("a\r\nb\r\nc\n", "\r\n"),
        ("a\r\nb\n", "\n"),
    ] {
        assert_eq!(line_ending(content.as_bytes()), ending, "{content:?}");
    }
}

#[test]
fn a_final_newline_starts_no_line() {
    assert_eq!(lines(b""), Vec::<&[u8]>::new());
    assert_eq!(lines(b"a"), [b"a"]);
    assert_eq!(lines(b"a\r\n\nb\n"), [&b"a"[..], b"", b"b"]);
}
