use std::sync::mpsc;

use super::*;
use crate::history::{reader::tests::Made, retention};

#[test]
fn what_is_to_be_written_does_not_wait_until_everything_is_dropped() {
    let mut made = Made::new();
    made.add(5_000);
    made.execute("UPDATE operations SET collected_at = ended_at");
    let (messages, receiver) = mpsc::channel();
    let mut work = WriterLoop::new(writer_of(&made, 0, receiver));
    work.keep_house();
    let mut waiting = 5_000;
    while waiting > 0 {
        messages
            .send(WriterMessage::Collected(OperationId::recalled("op_other")))
            .unwrap();
        work.take_messages();
        work.batch_due = Some(Instant::now());
        assert_eq!(work.turn(), Flow::GoOn);
        assert!(work.collected.is_empty(), "with {waiting} operations");
        let left = made.count();
        assert!(
            left < waiting && waiting - left <= retention::BATCH,
            "{waiting} and then {left}"
        );
        waiting = left;
    }
    assert_eq!(*work.writer.trouble.lock(), None);
}

#[test]
fn all_that_has_come_is_written_at_once_for_a_call_that_asks() {
    let mut made = Made::new();
    made.add(3);
    let (messages, receiver) = mpsc::channel();
    let mut work = WriterLoop::new(writer_of(&made, u64::MAX, receiver));
    for number in 0..3 {
        let id = OperationId::recalled(&format!("op_{number:010}"));
        messages.send(WriterMessage::Collected(id)).unwrap();
    }
    work.write_now();
    made.execute("DELETE FROM operations WHERE collected_at IS NULL");
    assert_eq!(made.count(), 3);
}

#[test]
fn a_server_that_cannot_write_lives_on() {
    let mut made = Made::new();
    made.add(1);
    let (_messages, receiver) = mpsc::channel();
    let mut work = WriterLoop::new(writer_of(&made, u64::MAX, receiver));
    let directory = made.reader.directory.clone();
    work.open().unwrap();
    assert!(directory.is_alive("living"));

    work.has_failed(&HistoryError::Directory {
        path: "/full".into(),
        source: std::io::ErrorKind::StorageFull.into(),
    });
    assert!(directory.is_alive("living"));
    work.open().unwrap();
    assert!(directory.is_alive("living"));

    drop(work);
    assert!(!directory.is_alive("living"));
}

/// Keeps this many bytes.
fn writer_of(made: &Made, bytes: u64, messages: Receiver<WriterMessage>) -> Writer {
    Writer {
        directory: made.reader.directory.clone(),
        writing: WritingServer {
            server: "living".to_owned(),
            scope: "/one".into(),
        },
        limits: KeepLimits {
            age: Duration::MAX,
            bytes,
        },
        messages,
        trouble: Arc::default(),
    }
}
