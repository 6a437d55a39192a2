use std::sync::Arc;

use tokio::io::AsyncReadExt as _;

use super::*;

/// A reader that is slow to begin: every push finds the pipe full, and every waiter must still be woken.
#[tokio::test]
async fn messages_pushed_while_others_wait_all_arrive_in_order() {
    let (mut reader, writer) = tokio::io::duplex(64);
    let outbox = Arc::new(Outbox::new(writer));
    let mut waiting = tokio::task::JoinSet::new();
    let mut expected = Vec::new();
    for number in 0..200 {
        let message = format!("message {number}\n");
        expected.extend_from_slice(message.as_bytes());
        outbox.push(message.as_bytes());
        let outbox = outbox.clone();
        waiting.spawn(async move { outbox.flushed().await });
        // Lets those that wait register with the writer before the next push.
        tokio::task::yield_now().await;
    }
    let mut seen = vec![0; expected.len()];
    let reading = tokio::time::timeout(test_support::PATIENCE, reader.read_exact(&mut seen)).await;
    reading.expect("nobody was forgotten").expect("readable");
    assert_eq!(seen, expected);
    while let Some(flushed) = waiting.join_next().await {
        flushed.expect("not cancelled").expect("written");
    }
}

#[tokio::test]
async fn a_reader_that_is_gone_is_told_to_everyone() {
    let (reader, writer) = tokio::io::duplex(64);
    drop(reader);
    let outbox = Outbox::new(writer);
    outbox.push(b"x");
    assert!(outbox.flushed().await.is_err());
    assert!(outbox.waiting_bytes().is_err());
}
