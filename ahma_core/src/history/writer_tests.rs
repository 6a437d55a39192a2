use std::sync::mpsc;

use super::*;
use crate::history::{reader::tests::Made, retention};

#[test]
fn what_is_to_be_written_does_not_wait_until_everything_is_dropped() {
    let mut made = Made::new();
    made.add(5_000);
    made.execute("UPDATE operations SET collected_at = ended_at");
    let (messages, receiver) = mpsc::channel();
    let mut work = WriterLoop::new(Writer {
        directory: made.reader.directory.clone(),
        server: "living".to_owned(),
        scope: "/one".into(),
        limits: KeepLimits {
            age: Duration::MAX,
            bytes: 0,
        },
        messages: receiver,
        trouble: Arc::default(),
    });
    work.keep_house();
    let mut waiting = 5_000;
    while waiting > 0 {
        let (asker, answer) = oneshot::channel();
        messages.send(WriterMessage::Flush(asker)).unwrap();
        work.turn().unwrap();
        assert_eq!(answer.blocking_recv(), Ok(()), "with {waiting} operations");
        let left = made.count();
        assert!(
            left < waiting && waiting - left <= retention::BATCH,
            "{waiting} and then {left}"
        );
        waiting = left;
    }
    assert_eq!(*work.writer.trouble.lock(), None);
}
