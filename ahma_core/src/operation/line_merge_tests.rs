use proptest::prelude::*;

use super::*;
use crate::observe::displayed;

use StreamName::{Stderr, Stdout};

fn merge() -> LineMerge {
    LineMerge::of(Stdio::Separate)
}

fn write_to(log: &mut Vec<u8>) -> impl FnMut(&[u8]) {
    |bytes| log.extend_from_slice(bytes)
}

/// Pieces of both streams, all in the same moment, and the log that they make.
#[track_caller]
fn check(pieces: &[(StreamName, &str)], expected: &str) {
    let (mut merge, mut log, now) = (merge(), Vec::new(), Instant::now());
    for (source, text) in pieces {
        merge.feed(*source, text.as_bytes(), now, &mut write_to(&mut log));
    }
    merge.finish(&mut write_to(&mut log));
    assert_eq!(String::from_utf8(log).unwrap(), expected);
}

#[test]
fn lines_of_two_streams_stay_whole() {
    check(
        &[(Stdout, "a\nb"), (Stderr, "x\n"), (Stdout, "c\n")],
        "a\nx\nbc\n",
    );
    check(&[(Stdout, "a"), (Stderr, "x"), (Stdout, "b\n")], "ab\nx");
    check(&[(Stdout, "a"), (Stderr, "x")], "a\nx");
    check(&[(Stdout, "a\r"), (Stderr, "x\n"), (Stdout, "\n")], "x\na\r\n");
}

#[test]
fn a_line_that_is_redrawn_does_not_stand_in_front_of_a_line_of_the_other_stream() {
    let pieces = [
        (Stderr, "\r 10%"),
        (Stdout, "found 1\n"),
        (Stderr, "\r 20%"),
        (Stdout, "found 2\n"),
        (Stderr, "\r100%\n"),
    ];
    let merged = "\rfound 1\n 10%\rfound 2\n 20%\r100%\n";
    check(&pieces, merged);
    assert_eq!(displayed(merged), "found 1\nfound 2\n100%\n");
}

#[test]
fn an_unfinished_line_is_shown_in_the_end() {
    let (mut merge, mut log, start) = (merge(), Vec::new(), Instant::now());
    let later = start + PATIENCE;
    merge.feed(Stderr, b"working", start, &mut write_to(&mut log));
    merge.tick(start, &mut write_to(&mut log));
    assert_eq!(log, b"");
    merge.tick(later, &mut write_to(&mut log));
    merge.feed(Stderr, b"...", later, &mut write_to(&mut log));
    assert_eq!(log, b"working...");
    merge.feed(Stdout, b"a\n", later, &mut write_to(&mut log));
    merge.feed(Stderr, b" done\n", later, &mut write_to(&mut log));
    assert_eq!(log, b"working...\na\n done\n");
}

#[test]
fn a_line_without_end_is_not_held() {
    let (mut merge, mut log, now) = (merge(), Vec::new(), Instant::now());
    let piece = [b'x'; 1000];
    for _ in 0..1000 {
        merge.feed(Stdout, &piece, now, &mut write_to(&mut log));
        assert!(merge.stdout.bytes.len() <= MAX_HELD);
    }
    merge.finish(&mut write_to(&mut log));
    assert_eq!(log, [b'x'; 1_000_000]);
}

#[tokio::test]
async fn one_stream_is_passed_on_as_it_is() {
    let mut merge = LineMerge::of(Stdio::Merged);
    let mut log = Vec::new();
    merge.feed(Stdout, b"half", Instant::now(), &mut write_to(&mut log));
    assert_eq!(log, b"half");
}

/// Lines of one stream, with redraws, escapes and all sorts of ends.
fn lines(name: &'static str) -> impl Strategy<Value = Vec<String>> {
    let end = prop::sample::select(vec!["\n", "\r\n", "\r", "\x1b[1m\n", "\x1b[2K"]);
    let line = ("[a-z]{1,4}", end).prop_map(move |(text, end)| format!("{name}{text}{end}"));
    prop::collection::vec(line, 0..8)
}

proptest! {
    /// However two streams are cut and mixed, each is in the log as it was printed, and no line holds parts of both
    /// unless the first of them was redrawn.
    #[test]
    fn any_cut_and_mixture_keeps_lines_whole(
        out in lines("out-"),
        err in lines("err-"),
        turns in prop::collection::vec((any::<bool>(), 1usize..7), 0..40),
    ) {
        let (out, err) = (out.concat(), err.concat());
        let mut rest = [out.as_bytes(), err.as_bytes()];
        let (mut merge, mut log, now) = (merge(), Vec::new(), Instant::now());
        let all = [(false, usize::MAX), (true, usize::MAX)];
        for (is_err, bytes) in turns.iter().chain(&all) {
            let own = &mut rest[usize::from(*is_err)];
            let (piece, after) = own.split_at((*bytes).min(own.len()));
            *own = after;
            let source = if *is_err { Stderr } else { Stdout };
            merge.feed(source, piece, now, &mut write_to(&mut log));
        }
        merge.finish(&mut write_to(&mut log));
        let log = String::from_utf8(log).unwrap();
        let shown = displayed(&log);
        for line in shown.lines() {
            prop_assert!(line.matches('-').count() <= 1, "{log:?}");
        }
        // A line that was ended is there to read, whatever the other stream did.
        for whole in displayed(&out).lines().chain(displayed(&err).lines()).filter(|line| !line.is_empty()) {
            let ended = format!("{whole}\n");
            if out.contains(&ended) || err.contains(&ended) {
                prop_assert!(shown.contains(&ended), "{ended:?} in {log:?}");
            }
        }
    }
}
