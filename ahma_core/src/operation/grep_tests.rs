use std::{io::Write, process::Command};

use proptest::prelude::*;

use super::*;
use crate::operation::{OutputLog, OutputQuery, PageError, log::tests::Sample};

/// Output of this system's `grep` for `output`.
fn real_grep(output: &[u8], pattern: &str, context: usize) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(output).unwrap();
    let mut grep = Command::new("grep");
    grep.env("LC_ALL", "C.UTF-8")
        .args(["-n", "-a", "-E", "-e", pattern]);
    if context > 0 {
        grep.args(["-C", &context.to_string()]);
    }
    let done = grep.arg("--").arg(file.path()).output().unwrap();
    assert!(done.status.code().is_some_and(|code| code < 2), "{done:?}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn our_grep(log: &OutputLog, pattern: &str, context: usize, from_line: u64) -> OutputPage {
    limited_grep(log, pattern, (context, from_line, u64::MAX))
}

fn limited_grep(
    log: &OutputLog,
    pattern: &str,
    (context, from_line, max_lines): (usize, u64, u64),
) -> OutputPage {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let query = OutputQuery::Grep {
        pattern: pattern.into(),
        context,
        from_line,
        max_lines,
    };
    runtime.block_on(log.read(query)).unwrap()
}

const PATTERNS: [&str; 12] = [
    "a", "^b", "c$", "^$", "a.*c", "[0-9]+", "(ab|bc)", "x?", "[^a-c]", "é", "a{2,}", "^.{3}$",
];

fn without_controls(byte: u8) -> u8 {
    match byte {
        0x08 | b'\r' | 0x1b => b'x',
        other => other,
    }
}

fn any_output() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        6 => "[abc]{0,8}".prop_map(String::into_bytes),
        2 => "[abc0-9é ]{0,20}".prop_map(String::into_bytes),
        // Bytes from 0xF4 on are left out: the C library takes some sequences past the last code point for characters.
        // What a terminal acts on is left out, too: it is folded before the search.
        1 => prop::collection::vec((0..0xF4u8).prop_map(without_controls), 0..12),
        1 => Just(b"a\0b".to_vec()),
    ];
    (prop::collection::vec(line, 0..60), any::<bool>()).prop_map(|(lines, ended)| {
        let mut output = lines.join(&b'\n');
        if ended {
            output.push(b'\n');
        }
        output
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_same_as_real_grep(output in any_output(), pattern in prop::sample::select(&PATTERNS), context in 0usize..4) {
        let sample = Sample::of(&output, 64, 1 << 20);
        let page = our_grep(&sample.log, pattern, context, 1);
        let expected = real_grep(&output, pattern, context);
        prop_assert_eq!(&page.text, &expected);
        prop_assert_eq!(page.matches.unwrap() as usize, real_grep(&output, pattern, 0).lines().count());
        prop_assert_eq!(page.next, None);
    }
}

/// Pages of a search in a spooled file, read one after the other, are what `grep` says of that file.
#[test]
fn pages_of_a_search_join_to_real_grep() {
    let output: Vec<u8> = (0..40_000u32)
        .flat_map(|number| format!("entry {number} of {}\n", number % 97).into_bytes())
        .collect();
    let sample = Sample::of(&output, 64 << 10, 4096);
    let spooled = sample.spooled().unwrap();
    assert_eq!(spooled, output);
    for context in [0, 2] {
        let expected = real_grep(&spooled, "of 13$", context);
        let expected: Vec<_> = expected.lines().filter(|line| *line != "--").collect();
        let mut found = Vec::new();
        let mut from_line = 1;
        let mut pages = 0;
        loop {
            let page = our_grep(&sample.log, "of 13$", context, from_line);
            assert!(page.text.len() <= 4096);
            pages += 1;
            found.extend(page.text.lines().filter(|line| *line != "--").map(str::to_owned));
            match page.next {
                Some(PageStart::Line(line)) => from_line = line,
                Some(PageStart::Byte(_)) => panic!("a search goes on at a line"),
                None => break,
            }
        }
        assert!(pages > 2, "the test must cross a page border");
        assert_eq!(found, expected);
    }
}

#[test]
fn a_search_that_takes_too_long_goes_on_where_it_was_broken_off() {
    let output: Vec<u8> = (0..2_000u32)
        .flat_map(|number| format!("entry {number} of {}\n", number % 97).into_bytes())
        .collect();
    let sample = Sample::of(&output, 64 << 10, 64 << 10);
    let requester = std::sync::Arc::new(());
    let mut hunt = Search {
        pattern: Regex::new("of 13$").unwrap(),
        context: 2,
        from_line: 1,
        max_lines: u64::MAX,
        page_bytes: 64 << 10,
        requester: std::sync::Arc::downgrade(&requester),
        deadline: Instant::now(),
    };
    let (mut found, mut matches, mut pages) = (Vec::new(), 0, 0);
    loop {
        let page = search(&sample.log.view(), &hunt).unwrap();
        found.extend(page.text.lines().filter(|line| *line != "--").map(str::to_owned));
        (matches, pages) = (matches + page.matches.unwrap(), pages + 1);
        match (page.next, page.searched_to) {
            (Some(PageStart::Line(line)), Some(last)) => {
                assert!(hunt.from_line < line && line <= last + 1, "{line} after {last}");
                hunt.from_line = line;
            }
            (None, None) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(pages > 2);
    assert_eq!(matches as usize, real_grep(&output, "of 13$", 0).lines().count());
    let expected = real_grep(&output, "of 13$", 2);
    let expected: Vec<_> = expected.lines().filter(|line| *line != "--").collect();
    assert_eq!(found, expected);
}

#[test]
fn a_pattern_of_any_size_is_not_taken() {
    let sample = Sample::of(b"a\n", 64, 4096);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let query = OutputQuery::Grep {
        pattern: r"\w{2000}".into(),
        context: 0,
        from_line: 1,
        max_lines: 1,
    };
    let error = runtime.block_on(sample.log.read(query)).unwrap_err();
    assert!(matches!(error, PageError::Pattern(_)), "{error:?}");
}

#[test]
fn the_end_of_a_very_long_line_is_not_held_and_that_is_said() {
    let long = [b"here ".as_slice(), &vec![b'x'; 3 << 20], b" beyond"].concat();
    let rest_bytes = (long.len() - SEARCHED_LINE_BYTES) as u64;
    for end in ["", "\n", "\nnext beyond\n"] {
        let output = [b"first\n".as_slice(), &long, end.as_bytes()].concat();
        for pieces in [1 << 10, 64 << 20] {
            let sample = Sample::of(&output, pieces, 4096);
            let here = our_grep(&sample.log, "here", 0, 1);
            assert!(here.text.starts_with("2:here xxx"), "{}", here.text);
            assert_eq!((here.matches, here.unsearched_bytes), (Some(1), rest_bytes));
            let beyond = our_grep(&sample.log, "beyond$", 0, 1);
            let expected = if end.len() > 1 { "3:next beyond\n" } else { "" };
            assert_eq!(beyond.text, expected);
            assert_eq!(our_grep(&sample.log, "x", 0, 3).unsearched_bytes, 0);
        }
    }
}

#[test]
fn a_search_shows_no_more_lines_than_asked_for() {
    let sample = Sample::of(b"a\nb\na\nb\na\nb\n", 64, 1024);
    let page = limited_grep(&sample.log, "a", (0, 1, 2));
    assert_eq!((page.text.as_str(), page.matches), ("1:a\n3:a\n", Some(3)));
    assert_eq!(page.next, Some(PageStart::Line(5)));
    let page = limited_grep(&sample.log, "a", (0, 5, 2));
    assert_eq!((page.text.as_str(), page.next), ("5:a\n", None));
}

#[test]
fn a_search_looks_behind_what_was_not_kept() {
    let mut sample = Sample::new(1024, 5000);
    let output: String = (1..=5000).map(|number| format!("line {number}\n")).collect();
    sample.writer.append(output.as_bytes());
    let page = our_grep(&sample.log, "^line (7|5000)$", 1, 1);
    assert_eq!(
        page.text,
        "6-line 6\n7:line 7\n8-line 8\n--\n4999-line 4999\n5000:line 5000\n"
    );
    assert_eq!(page.matches, Some(2));
    let gap = page.gap.unwrap();
    let all = our_grep(&sample.log, "line", 0, 1).matches.unwrap();
    // The line that the quota cut through is there in part.
    assert_eq!(all, gap.first_line + 5000 - gap.last_line);
    assert_eq!(
        our_grep(&sample.log, "5000", 0, gap.first_line + 9).text,
        "5000:line 5000\n"
    );
}

#[test]
fn of_a_long_line_the_part_with_the_match_is_shown_and_where_the_rest_is() {
    let line = format!("{}needle{}", "é".repeat(4000), "y".repeat(4000));
    let output = format!("first\n{line}\nlast\n");
    let sample = Sample::of(output.as_bytes(), 4096, 16 << 10);
    let page = our_grep(&sample.log, "needle", 0, 1);
    assert!(page.text.starts_with("2:[... "), "{}", page.text);
    assert!(page.text.contains("éneedley"), "{}", page.text);
    let offsets: Vec<usize> = page
        .text
        .split("from_byte ")
        .skip(1)
        .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
        .collect();
    let (before, rest) = page.text.split_once(" ...] ").unwrap();
    let (shown, _) = rest.split_once(" [... ").unwrap();
    let shown_at = output.find(shown).unwrap();
    assert_eq!(offsets, [6, shown_at + shown.len()]);
    assert!(before.contains(&format!(" {} bytes", shown_at - 6)), "{before}");
    // Context has no match to show, and a match at the beginning is shown from there.
    let page = our_grep(&sample.log, "last", 1, 1);
    assert!(page.text.starts_with("2-ééé"), "{}", page.text);
    let page = our_grep(&sample.log, "^é", 0, 1);
    assert!(page.text.starts_with("2:ééé"), "{}", page.text);
}
