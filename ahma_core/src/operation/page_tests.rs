use std::time::Duration;

use futures::FutureExt as _;
use proptest::prelude::*;

use super::*;
use crate::operation::{LossCause, log::tests::Sample};

fn read(log: &OutputLog, query: OutputQuery) -> OutputPage {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(log.read(query)).unwrap()
}

fn numbered(count: u64) -> Vec<u8> {
    (1..=count)
        .flat_map(|number| format!("line {number}\n").into_bytes())
        .collect()
}

#[test]
fn ranges() {
    for result_bytes in [1024, 1 << 20] {
        let sample = Sample::of(&numbered(2000), 999, result_bytes);
        let range = |from, max_lines| {
            let page = read(
                &sample.log,
                OutputQuery::Range {
                    from: PageStart::Line(from),
                    max_lines,
                },
            );
            (page.text, page.first_line, page.lines, page.next)
        };
        let next = |line| Some(PageStart::Line(line));
        assert_eq!(range(1, 2), ("line 1\nline 2\n".into(), Some(1), 2, next(3)));
        assert_eq!(range(0, 1), ("line 1\n".into(), Some(1), 1, next(2)));
        assert_eq!(range(1500, 1), ("line 1500\n".into(), Some(1500), 1, next(1501)));
        assert_eq!(range(2000, 5), ("line 2000\n".into(), Some(2000), 1, None));
        assert_eq!(range(2001, 5), (String::new(), None, 0, None));
        assert_eq!(range(u64::MAX, u64::MAX), (String::new(), None, 0, None));
        assert_eq!(range(5, 0), (String::new(), None, 0, next(5)));
    }
}

fn search(pattern: &str) -> OutputQuery {
    OutputQuery::Grep {
        pattern: pattern.into(),
        context: 0,
        from_line: 1,
        max_lines: u64::MAX,
    }
}

/// Longer than anything takes that need not wait for a slow search.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn ranges_wait_for_no_search_and_a_search_ends_with_its_request() {
    let sample = Sample::of(
        &b"many words of a line that is searched slowly\n".repeat(1 << 20),
        1 << 20,
        1024,
    );
    let slow: Vec<_> = (0..MAX_SEARCHES)
        .map(|_| {
            let log = sample.log.clone();
            tokio::spawn(async move { log.read(search(r"(\w+\W*){1,60}zzzz$")).await })
        })
        .collect();
    let all_turns_taken = async {
        while SEARCHES.available_permits() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(READ_TIMEOUT, all_turns_taken)
        .await
        .expect("the searches begin");

    let range = OutputQuery::Range {
        from: PageStart::Line(5),
        max_lines: 1,
    };
    let page = tokio::time::timeout(READ_TIMEOUT, sample.log.read(range)).await;
    assert_eq!(page.expect("in time").unwrap().lines, 1);
    assert!(!slow.iter().any(|search| search.is_finished()));

    slow.iter().for_each(|search| search.abort());
    let found = tokio::time::timeout(READ_TIMEOUT, sample.log.read(search("line"))).await;
    assert_eq!(found.expect("its turn comes").unwrap().matches, Some(1 << 20));
}

#[tokio::test]
async fn a_large_pattern_does_not_hold_the_async_thread_up() {
    let sample = Sample::of(b"short\n", 1, 1024);
    assert!(sample.log.read(search(r"\w{200}")).now_or_never().is_none());
}

#[test]
fn tails() {
    for result_bytes in [1024, 1 << 20] {
        let sample = Sample::of(&numbered(2000), 999, result_bytes);
        let tail = |lines| {
            let page = read(&sample.log, OutputQuery::Tail { lines });
            (page.text, page.first_line, page.lines)
        };
        assert_eq!(tail(2), ("line 1999\nline 2000\n".into(), Some(1999), 2));
        assert_eq!(tail(0), (String::new(), None, 0));
        let (text, first_line, lines) = tail(u64::MAX);
        assert!(text.len() <= result_bytes && text.starts_with(&format!("line {}\n", first_line.unwrap())));
        assert_eq!(first_line.unwrap() + lines, 2001);
    }
    let unfinished = Sample::of(b"one\ntwo", 1, 1024);
    assert_eq!(read(&unfinished.log, OutputQuery::Tail { lines: 1 }).text, "two");
}

#[test]
fn the_tail_shows_the_end_even_past_the_quota() {
    let mut sample = Sample::new(1024, 5000);
    sample.writer.append(&numbered(5000));
    let page = read(&sample.log, OutputQuery::Tail { lines: 2 });
    assert_eq!(
        (page.text.as_str(), page.first_line),
        ("line 4999\nline 5000\n", Some(4999))
    );
    assert!(page.gap.is_some());
}

/// The gap that the quota cut is named, and lines on both sides of it are found by their numbers.
#[test]
fn pages_lead_over_what_was_not_kept() {
    let output = numbered(5000);
    let mut sample = Sample::new(1024, 5000);
    sample.writer.append(&output);
    let range = |from| read(&sample.log, OutputQuery::Range { from, max_lines: 2 });
    let gap = range(PageStart::Line(1)).gap.unwrap();
    assert_eq!(gap.cause, LossCause::Quota);

    let kept = output[..5000].iter().filter(|byte| **byte == b'\n').count() as u64;
    assert_eq!(gap.first_line, kept + 1);
    let first_after = gap.last_line + 1;
    let after_text = format!("line {first_after}\nline {}\n", first_after + 1);
    let after = range(PageStart::Line(first_after));
    assert_eq!(
        (after.text.as_str(), after.first_line),
        (after_text.as_str(), Some(first_after))
    );
    let from_gap = range(PageStart::Line(gap.first_line + 1));
    assert_eq!(
        (from_gap.text, from_gap.first_line),
        (after_text.clone(), Some(first_after))
    );
    let last = range(PageStart::Line(5000));
    assert_eq!((last.text.as_str(), last.next), ("line 5000\n", None));
    assert_eq!(range(PageStart::Line(5001)).text, "");

    let before = range(PageStart::Line(gap.first_line));
    assert!(
        format!("line {}", gap.first_line).starts_with(&before.text),
        "{before:?}"
    );
    assert_eq!(before.next, Some(PageStart::Line(first_after)));
    let after_offset = 5000 + gap.bytes;
    assert!(output[after_offset as usize..].starts_with(after_text.as_bytes()));
    for offset in [5000, after_offset - 1, after_offset] {
        assert_eq!(range(PageStart::Byte(offset)).text, after_text, "{offset}");
    }
    let inside = range(PageStart::Byte(after_offset + 2));
    assert!(inside.text.starts_with("ne ") && inside.first_line == Some(first_after));
}

#[test]
fn what_memory_holds_behind_the_quota_leaves_no_gap() {
    let output = numbered(650);
    let mut sample = Sample::new(1024, 5000);
    sample.writer.append(&output);
    let (mut from, mut joined) = (PageStart::Line(1), String::new());
    loop {
        let page = read(&sample.log, OutputQuery::Range { from, max_lines: 99 });
        assert_eq!(page.gap, None);
        joined.push_str(&page.text);
        match page.next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!(joined.as_bytes(), output);
    assert!(sample.log.loss().is_some(), "the test must pass the quota");
}

#[test]
fn of_a_line_longer_than_the_quota_the_end_can_be_read() {
    let mut sample = Sample::new(1024, 5000);
    let output = [b"first\n".as_slice(), "é".repeat(9000).as_bytes(), b"END\n"].concat();
    sample.writer.append(&output);
    let range = |from| read(&sample.log, OutputQuery::Range { from, max_lines: 9 });
    let gap = range(PageStart::Line(1)).gap.unwrap();
    assert_eq!((gap.first_line, gap.last_line), (2, 2));
    let before = range(PageStart::Byte(4990));
    assert_eq!(before.next, Some(PageStart::Byte(5000 + gap.bytes)));
    let after = range(before.next.unwrap());
    assert_eq!((after.first_line, after.next), (Some(2), None));
    assert!(
        after.text.starts_with("éé") && after.text.ends_with("END\n"),
        "{}",
        after.text
    );
}

#[test]
fn a_page_can_be_read_while_the_log_grows() {
    let mut sample = Sample::new(1024, u64::MAX);
    sample.writer.append(&numbered(500));
    let first = read(
        &sample.log,
        OutputQuery::Range {
            from: PageStart::Line(499),
            max_lines: 100,
        },
    );
    assert_eq!((first.text.as_str(), first.next), ("line 499\nline 500\n", None));
    sample.writer.append(b"more\n");
    let second = read(
        &sample.log,
        OutputQuery::Range {
            from: PageStart::Line(501),
            max_lines: 100,
        },
    );
    assert_eq!(second.text, "more\n");
}

#[test]
fn a_bad_pattern_is_the_callers_mistake() {
    let sample = Sample::of(b"text", 1, 1024);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let query = OutputQuery::Grep {
        pattern: "(".into(),
        context: 0,
        from_line: 1,
        max_lines: u64::MAX,
    };
    let error = runtime.block_on(sample.log.read(query)).unwrap_err();
    assert!(matches!(error, PageError::Pattern(_)), "{error:?}");
}

/// Lines of any bytes, some of them far longer than a page.
fn any_output() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => "[a-c]{0,30}\n".prop_map(String::into_bytes),
        2 => "\\PC{0,30}".prop_map(String::into_bytes),
        2 => prop::collection::vec(any::<u8>(), 0..50),
        1 => (1..5000usize).prop_map(|length| "é".repeat(length).into_bytes()),
        1 => (1..2000usize).prop_map(|length| vec![0xFF; length]),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Reading page after page gives back everything, each page within bounds and with the right line number.
    #[test]
    fn pages_join_to_the_whole(output in any_output(), chunk in 1usize..3000) {
        let sample = Sample::of(&output, chunk, 1024);
        let mut joined = String::new();
        let mut from = PageStart::Line(1);
        loop {
            let page = read(&sample.log, OutputQuery::Range { from, max_lines: 20 });
            prop_assert!(page.text.len() <= 1024);
            prop_assert!(page.lines <= 20);
            if let Some(line) = page.first_line {
                prop_assert_eq!(line as usize, joined.matches('\n').count() + 1);
            }
            joined.push_str(&page.text);
            match page.next {
                Some(next) => prop_assert_ne!(next, std::mem::replace(&mut from, next), "no progress"),
                None => break,
            }
        }
        prop_assert_eq!(joined, String::from_utf8_lossy(&output));
    }
}
