use std::fs;

use tempfile::TempDir;

use super::*;
use crate::operation::{OutputQuery, PageStart};

/// A log with something in it; the directory lives as long as this does.
pub(in crate::operation) struct Sample {
    pub(in crate::operation) log: OutputLog,
    pub(in crate::operation) writer: LogWriter,
    _state_dir: TempDir,
}

impl Sample {
    pub(in crate::operation) fn new(result_bytes: usize, quota_bytes: u64) -> Self {
        let state_dir = tempfile::tempdir().unwrap();
        let log = OutputLog::new(OperationId::random(), result_bytes);
        let writer = LogWriter::new(log.clone(), quota_bytes, Spool::new(state_dir.path().to_owned()));
        Self {
            log,
            writer,
            _state_dir: state_dir,
        }
    }

    /// A log of all of `output`, written in chunks of `chunk` bytes.
    pub(in crate::operation) fn of(output: &[u8], chunk: usize, result_bytes: usize) -> Self {
        let mut sample = Self::new(result_bytes, u64::MAX);
        for chunk in output.chunks(chunk.max(1)) {
            sample.writer.append(chunk);
        }
        sample
    }

    pub(in crate::operation) fn spooled(&self) -> Option<Vec<u8>> {
        let view = self.log.view();
        match &view.store {
            LogStore::File(file) => Some(fs::read(file.path()).unwrap()),
            LogStore::Memory(_) => None,
        }
    }
}

#[test]
fn a_short_output_stays_in_memory_and_a_long_one_is_spooled_whole() {
    let output: Vec<u8> = (0..5000u32)
        .flat_map(|number| format!("{number}\n").into_bytes())
        .collect();
    for chunk in [1, 7, 1000, 1024, 1025, 64 << 10] {
        assert_eq!(Sample::of(&output[..1024], chunk, 1024).spooled(), None);
        assert_eq!(
            Sample::of(&output[..1025], chunk, 1024).spooled().as_deref(),
            Some(&output[..1025])
        );
        let sample = Sample::of(&output, chunk, 1024);
        assert_eq!(sample.spooled().as_ref(), Some(&output));
        assert_eq!(sample.log.size(), (5000, output.len() as u64));
        assert_eq!(sample.log.loss(), None);
    }
}

#[test]
fn an_unfinished_line_counts() {
    for (output, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)] {
        assert_eq!(
            Sample::of(output.as_bytes(), 1, 1024).log.size(),
            (lines, output.len() as u64),
            "{output:?}"
        );
    }
}

#[test]
fn past_the_quota_bytes_are_counted_and_the_end_is_still_shown() {
    let mut sample = Sample::new(1024, 10_000);
    let line = [b"x".repeat(99), b"\n".to_vec()].concat();
    for _ in 0..1000 {
        sample.writer.append(&line);
    }
    sample.writer.append(b"error: the reason is here\n");

    let total = 1000 * 100 + 26;
    assert_eq!(sample.log.size(), (1001, total));
    assert_eq!(
        sample.log.loss(),
        Some(Loss {
            bytes: total - 10_000,
            cause: LossCause::Quota
        })
    );
    assert_eq!(sample.spooled().unwrap().len(), 10_000);
    let excerpt = sample.log.excerpt(ExcerptFocus::Ends);
    assert!(
        excerpt.text.ends_with("error: the reason is here\n"),
        "{}",
        excerpt.text
    );
    assert_eq!(excerpt.total_bytes, total);
}

#[test]
fn without_a_place_to_spool_the_ends_are_kept() {
    let temp = tempfile::tempdir().unwrap();
    let blocked = temp.path().join("file");
    fs::write(&blocked, "").unwrap();
    let log = OutputLog::new(OperationId::random(), 1024);
    let mut writer = LogWriter::new(log.clone(), u64::MAX, Spool::new(blocked.join("state")));
    for number in 0..1000 {
        writer.append(format!("{number}\n").as_bytes());
    }
    let (lines, bytes) = log.size();
    assert_eq!((lines, bytes), (1000, 3890));
    let loss = log.loss().unwrap();
    assert_eq!(loss.bytes, 3890 - log.view().kept_bytes);
    assert!(matches!(loss.cause, LossCause::Storage(_)), "{loss:?}");
    let text = log.excerpt(ExcerptFocus::Ends).text;
    assert!(
        text.starts_with("0\n1\n") && text.ends_with("998\n999\n"),
        "{text}"
    );
}

#[test]
fn the_newest_line_is_short_and_not_empty() {
    let long = "y".repeat(5000);
    let table = [
        ("", None),
        ("\n \n\r\n", None),
        ("one\ntwo\n\n", Some("two")),
        ("one\ntwo", Some("two")),
        ("50%\r75%\r", Some("75%")),
        (long.as_str(), Some(&long[..200])),
    ];
    for (output, newest) in table {
        assert_eq!(
            Sample::of(output.as_bytes(), 3, 1024)
                .log
                .newest_line()
                .as_deref(),
            newest,
            "{output:?}"
        );
    }
}

#[test]
fn a_line_of_a_hundred_megabytes() {
    let mut sample = Sample::new(16 << 10, 256 << 20);
    let chunk = vec![b'z'; 64 << 10];
    sample.writer.append(b"before\n");
    for _ in 0..1600 {
        sample.writer.append(&chunk);
    }
    sample.writer.append(b"END\nafter\n");

    let line_bytes = 1600 * (64 << 10) + 3;
    assert_eq!(sample.log.size(), (3, 7 + line_bytes + 1 + 6));
    let excerpt = sample.log.excerpt(ExcerptFocus::Ends);
    assert!(excerpt.text.len() <= 16 << 10);
    assert!(excerpt.text.starts_with("before\nzzz") && excerpt.text.ends_with("zzEND\nafter\n"));

    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let read = |query| runtime.block_on(sample.log.read(query)).unwrap();
    let inside = read(OutputQuery::Range {
        from: PageStart::Line(2),
        max_lines: 1,
    });
    assert_eq!(
        (inside.first_line, inside.lines, inside.text.len()),
        (Some(2), 1, 16 << 10)
    );
    assert_eq!(inside.next, Some(PageStart::Byte(7 + (16 << 10))));
    let last = read(OutputQuery::Range {
        from: PageStart::Line(3),
        max_lines: 9,
    });
    assert_eq!((last.text.as_str(), last.next), ("after\n", None));
    let found = read(OutputQuery::Grep {
        pattern: "^zz".into(),
        context: 0,
        from_line: 1,
        max_lines: u64::MAX,
    });
    assert_eq!((found.matches, found.first_line), (Some(1), Some(2)));
    assert_eq!(found.unsearched_bytes, line_bytes - (1 << 20));
    let goes_on = format!("bytes left out of this line: from_byte {} ...]\n", 7 + (2 << 10));
    assert!(found.text.ends_with(&goes_on) && found.text.len() < 4 << 10);
}
