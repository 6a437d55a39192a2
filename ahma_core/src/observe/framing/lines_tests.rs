use std::borrow::Cow;

use proptest::prelude::*;

use super::LineReader;

fn lines_of(chunks: &[&[u8]], max_bytes: usize) -> Vec<String> {
    let mut reader = LineReader::new(max_bytes);
    let mut lines = Vec::new();
    for chunk in chunks {
        let mut input = *chunk;
        while let Some(line) = reader.next_line(&mut input) {
            lines.push(line.into_owned());
        }
        assert!(input.is_empty());
    }
    lines.extend(reader.finish().map(Cow::into_owned));
    lines
}

/// The lines must be these however the bytes are cut.
#[track_caller]
fn check(bytes: impl AsRef<[u8]>, expected: &[&str]) {
    let bytes = bytes.as_ref();
    assert_eq!(lines_of(&[bytes], 1000), expected);
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(lines_of(&single, 1000), expected, "byte by byte");
}

#[test]
fn lines_end_at_newlines_and_carriage_returns() {
    check("a\nb\r\nc\rd", &["a", "b", "c", "d"]);
    check("\r\n\n  \n\ta\n\r\r\n", &["\ta"]);
    check("", &[]);
    check("\r10%\r20%\r", &["10%", "20%"]);
}

#[test]
fn escape_sequences_are_dropped() {
    check("\x1b[1m\x1b[32m   Compiling\x1b[0m x\n", &["   Compiling x"]);
    check(
        "\x1b]0;title\x07a\n\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n",
        &["a", "link"],
    );
    check("\x1b(Ba\x1b=b\x1b7c\n", &["abc"]);
    check("\x1bPdcs\x1b\\a\n", &["a"]);
    check(
        "\x1b[01m\x1b[Kfile.c:1:\x1b[m\x1b[K error\n",
        &["file.c:1: error"],
    );
    check("\x1b[?25la\x1b[?25h\n", &["a"]);
}

#[test]
fn erasing_or_leaving_the_line_ends_it() {
    check(
        "10%\x1b[2K20%\x1b[1G30%\x1b[G40%\n",
        &["10%", "20%", "30%", "40%"],
    );
    check("a\x1b[1Ab\x1b[2J\x1b[Hc", &["a", "b", "c"]);
    check("a\x1b[12Gb\x1b[1Kc\n", &["abc"]);
}

#[test]
fn a_broken_sequence_does_not_swallow_what_follows() {
    check("a\x1b[12\nb\n", &["a", "b"]);
    check("\x1b]0;never ended\nb\n", &["b"]);
    check("\x1b[1;\u{e4}b\n", &["äb"]);
    check("\x1b\x1b[1mx\x1b", &["x"]);
    let stray = format!("\x1b]{}tail\nnext\n", "x".repeat(4096));
    assert_eq!(lines_of(&[stray.as_bytes()], 1000), ["tail", "next"]);
}

#[test]
fn control_characters_vanish_and_backspaces_are_obeyed() {
    check("a\0b\x07c\x7f\n", &["abc"]);
    check("50%\x08\x08\x0860%\n", &["60%"]);
    check("\x08\x08ä\x08ö\n", &["ö"]);
}

#[test]
fn invalid_utf8_is_shown_lossily() {
    check(b"a\xff\xfeb\n", &["a\u{fffd}\u{fffd}b"]);
    check(b"\xe4\xb8\n", &["\u{fffd}"]);
    check("日本\n", &["日本"]);
}

#[test]
fn a_line_without_end_takes_bounded_memory_and_the_next_is_whole() {
    let mut reader = LineReader::new(1 << 20);
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        let mut input = chunk.as_slice();
        assert_eq!(reader.next_line(&mut input), None);
        assert!(input.is_empty());
    }
    let mut input: &[u8] = b"\nnext\n";
    assert_eq!(reader.next_line(&mut input).unwrap().len(), 1 << 20);
    assert_eq!(reader.next_line(&mut input).unwrap(), "next");
}

#[test]
fn a_cut_falls_between_characters() {
    assert_eq!(lines_of(&["aäääääää\n".as_bytes()], 4), ["aä"]);
}

#[test]
fn the_unfinished_line_can_be_seen() {
    let mut reader = LineReader::new(1000);
    let mut input: &[u8] = b"done\nhalf\x1b[1";
    assert_eq!(reader.next_line(&mut input).unwrap(), "done");
    assert_eq!(reader.unfinished(), None, "the rest was not eaten yet");
    assert_eq!(reader.next_line(&mut input), None);
    assert_eq!(reader.unfinished().unwrap(), "half");
    assert_eq!(reader.next_line(&mut b"m way \xe4".as_slice()), None);
    assert_eq!(
        reader.unfinished().unwrap(),
        "half way ",
        "a character that may still be completed is left out"
    );
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_lines(
        bytes in prop::collection::vec(prop_oneof![
            4 => prop::sample::select(b"\r\n\x1b[]2K;1G\x07\x08\\ \xe4\xb8\xad".to_vec()),
            1 => any::<u8>(),
        ], 0..200),
        cuts in prop::collection::vec(0usize..200, 0..8),
    ) {
        let mut places: Vec<usize> = cuts.into_iter().filter(|cut| *cut < bytes.len()).collect();
        places.sort_unstable();
        let mut chunks = Vec::new();
        let mut start = 0;
        for place in places {
            chunks.push(&bytes[start..place]);
            start = place;
        }
        chunks.push(&bytes[start..]);
        prop_assert_eq!(lines_of(&chunks, 64), lines_of(&[&bytes], 64));
    }
}
