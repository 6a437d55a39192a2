use crate::operation::log::tests::Sample;

#[test]
fn a_follower_sees_everything_once() {
    let output = "grün, 漢字, 🦀 and plain\n".repeat(40);
    for chunk in [1, 2, 3, 5, 64] {
        let mut sample = Sample::new(4096, u64::MAX);
        let mut seen = String::new();
        let mut next = 0;
        for bytes in output.as_bytes().chunks(chunk) {
            sample.writer.append(bytes);
            let fresh = sample.log.since(next, 4096, false);
            assert_eq!(fresh.skipped_bytes, 0);
            assert!(!fresh.text.contains('\u{fffd}'), "{:?}", fresh.text);
            seen.push_str(&fresh.text);
            next = fresh.next;
        }
        assert_eq!(seen, output);
        assert_eq!(next, output.len() as u64);
    }
}

#[test]
fn a_follower_that_falls_behind_is_told_how_much_it_missed() {
    let output = "äöü".repeat(2000);
    let sample = Sample::of(output.as_bytes(), 999, 1024);
    let fresh = sample.log.since(3, 101, false);
    assert_eq!(fresh.next, output.len() as u64);
    // One byte less than asked for, because the cut went through a character.
    assert_eq!(fresh.text.len(), 100);
    assert_eq!(fresh.skipped_bytes, output.len() as u64 - 100 - 3);
    assert!(!fresh.text.contains('\u{fffd}'));
}

#[test]
fn half_a_character_is_shown_only_at_the_end_of_all_output() {
    let sample = Sample::of(b"caf\xc3", 10, 1024);
    let going_on = sample.log.since(0, 1024, false);
    assert_eq!((&*going_on.text, going_on.next), ("caf", 3));
    let complete = sample.log.since(3, 1024, true);
    assert_eq!((&*complete.text, complete.next), ("\u{fffd}", 4));
    // Bytes that begin no character wait for nothing.
    let sample = Sample::of(b"x\xff", 10, 1024);
    assert_eq!(sample.log.since(0, 1024, false).next, 2);
}
