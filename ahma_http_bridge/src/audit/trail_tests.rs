use std::sync::{Arc, Mutex};

use super::super::verify_audit;
use super::*;

/// A file on a disk with little room.
struct Cramped {
    file: File,
    room: Arc<Mutex<Room>>,
}

#[derive(Clone, Copy)]
struct Room {
    bytes: usize,
    can_shrink: bool,
}

impl Write for Cramped {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut room = self.room.lock().unwrap();
        let count = text.len().min(room.bytes);
        if count == 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        room.bytes -= count;
        self.file.write(&text[..count])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Medium for Cramped {
    fn take_back(&mut self, bytes: u64) -> io::Result<()> {
        if !self.room.lock().unwrap().can_shrink {
            return Err(ErrorKind::StorageFull.into());
        }
        self.file.take_back(bytes)
    }
}

fn numbered_line(number: usize) -> Map<String, Value> {
    line("event", json!({ "number": number }))
}

/// Content of a file's lines: the event or the number, and how many are missing before it.
fn told(path: &Path) -> Vec<(Value, Value)> {
    let text = std::fs::read_to_string(path).unwrap();
    let told = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let subject = line.get("number").unwrap_or(&line["event"]);
        (subject.clone(), line["dropped_before"].clone())
    };
    text.lines().map(told).collect()
}

#[test]
fn lines_that_a_full_disk_refused_are_counted_and_break_nothing() {
    let table = [
        // Nothing of a line gets through, or a part of it, which can be taken back at once or only later.
        (0, true),
        (10, true),
        (10, false),
    ];
    for (bytes, can_shrink) in table {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.jsonl");
        let mut trail = Trail::open(&path).unwrap();
        let plenty = Room {
            bytes: 1 << 20,
            can_shrink: true,
        };
        let room = Arc::new(Mutex::new(plenty));
        trail.file = Box::new(Cramped {
            file: append_to(&path).unwrap(),
            room: Arc::clone(&room),
        });
        trail.write(numbered_line(0), 0).unwrap();
        *room.lock().unwrap() = Room { bytes, can_shrink };
        for number in 1..3 {
            assert!(trail.write(numbered_line(number), 0).is_err());
            assert!(trail.is_failing());
        }
        *room.lock().unwrap() = plenty;
        // Two more were dropped before they got here.
        trail.write(numbered_line(3), 2).unwrap();
        trail.write(numbered_line(4), 0).unwrap();
        assert_eq!(
            told(&path),
            [
                (json!(0), Value::Null),
                (json!(3), json!(4)),
                (json!(4), Value::Null)
            ]
        );
        assert_eq!(verify_audit(&path).unwrap(), 3);
    }
}

#[test]
fn a_line_that_a_crash_left_unfinished_is_noted_by_the_next_start() {
    // In the middle of a character too, which no reader of text would accept.
    for unfinished in [
        &b"{\"event\":\"ca"[..],
        "{\"text\":\"ü".as_bytes().split_at(10).0,
        b"\0\0\0",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.jsonl");
        let mut trail = Trail::open(&path).unwrap();
        trail.write(numbered_line(0), 0).unwrap();
        trail.file.write_all(unfinished).unwrap();
        drop(trail);
        let error = verify_audit(&path).unwrap_err().to_string();
        assert!(error.starts_with("line 2 is unfinished"), "{error}");

        let mut trail = Trail::open(&path).unwrap();
        trail.write(numbered_line(1), 0).unwrap();
        assert_eq!(
            told(&path),
            [
                (json!(0), Value::Null),
                (json!("unfinished_line"), json!(1)),
                (json!(1), Value::Null)
            ]
        );
        let text = std::fs::read_to_string(&path).unwrap();
        let note: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        assert_eq!(note["text"], *String::from_utf8_lossy(unfinished));
        assert_eq!(note["bytes"], unfinished.len());
        assert_eq!(verify_audit(&path).unwrap(), 3);
    }
}

#[test]
fn a_line_that_lacks_only_its_break_is_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.jsonl");
    Trail::open(&path).unwrap().write(numbered_line(0), 0).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.trim_end()).unwrap();
    assert_eq!(verify_audit(&path).unwrap(), 1);
    Trail::open(&path).unwrap().write(numbered_line(1), 0).unwrap();
    assert_eq!(told(&path), [(json!(0), Value::Null), (json!(1), Value::Null)]);
    assert_eq!(verify_audit(&path).unwrap(), 2);
}

#[test]
fn a_file_is_set_aside_and_the_oldest_one_goes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.jsonl");
    let mut trail = Trail::open(&path).unwrap();
    let kept = KEPT_FILES as usize;
    for number in 0..kept + 2 {
        trail.rotate_at = 0;
        trail.write(numbered_line(number), 0).unwrap();
    }
    assert_eq!(told(&path), [(json!(kept + 1), Value::Null)]);
    for number in 1..=KEPT_FILES {
        let aside = numbered(&path, number);
        assert_eq!(told(&aside), [(json!(kept + 1 - number as usize), Value::Null)]);
        assert_eq!(verify_audit(&aside).unwrap(), 1);
    }
}

#[test]
fn a_file_that_cannot_be_set_aside_takes_the_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.jsonl");
    let name = |number: u32| numbered(&path, number);
    for number in 1..KEPT_FILES {
        std::fs::write(name(number), number.to_string()).unwrap();
    }
    // No file can take the name of a directory.
    std::fs::create_dir(name(KEPT_FILES)).unwrap();
    std::fs::write(&path, "").unwrap();
    let mut trail = Trail::open(&path).unwrap();
    for number in 0..3 {
        trail.rotate_at = 0;
        trail.write(numbered_line(number), 0).unwrap();
    }
    assert_eq!(told(&path).len(), 3);
    for number in 1..KEPT_FILES {
        assert_eq!(std::fs::read_to_string(name(number)).unwrap(), number.to_string());
    }
}
