use super::{LineTracker, displayed};

#[track_caller]
fn check(chunks: &[&[u8]], expected: Option<&str>) {
    let mut tracker = LineTracker::new();
    chunks.iter().for_each(|chunk| tracker.feed(chunk));
    assert_eq!(tracker.newest().as_deref(), expected);
}

#[test]
fn the_newest_line_is_the_last_that_says_something() {
    check(&[], None);
    check(&[b"\n \n"], None);
    check(&[b"one\ntwo\n\n  \n"], Some("two"));
    check(&[b"one\ntw"], Some("tw"));
    check(&[b"one\ntw", b"o  \n"], Some("two"));
    check(&[b"10%\r", b"\x1b[32m20%\x1b[0m\r"], Some("20%"));
}

#[test]
fn a_flood_costs_only_its_end() {
    let mut flood = b"x\n".repeat(500_000);
    flood.extend_from_slice(b"\x1b[1mlast\x1b[0m");
    check(&[&flood], Some("last"));
    flood.push(b'\n');
    check(&[b"first\nhalf", &flood], Some("last"));
}

#[test]
fn an_endless_line_is_cut() {
    let mut tracker = LineTracker::new();
    for _ in 0..100 {
        tracker.feed(&[b'y'; 100_000]);
    }
    assert_eq!(tracker.newest().unwrap().len(), 1024);
}

#[test]
fn only_the_last_state_of_a_redrawn_line_is_displayed() {
    for (text, expected) in [
        ("plain\n\ttext\n\n", "plain\n\ttext\n\n"),
        ("10%\r20%\r100%\ndone\r\n", "100%\ndone\n"),
        ("a\x1b[2Kb\n\x1b[31mred\x1b[0m tail\r", "b\nred tail"),
        ("\r\n\n", "\n\n"),
    ] {
        assert_eq!(displayed(text), expected);
    }
}
