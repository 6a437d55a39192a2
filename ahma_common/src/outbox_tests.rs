use std::sync::Arc;

use tokio::io::AsyncReadExt as _;

use super::*;

/// A reader that is slow to begin: every push finds the pipe full, and every waiter must still be woken.
#[tokio::test]
async fn messages_pushed_while_others_wait_all_arrive_in_order() {
    let (mut reader, writer) = tokio::io::duplex(64);
    let outbox = Arc::new(Outbox::new(writer, usize::MAX));
    let mut waiting = tokio::task::JoinSet::new();
    let mut expected = Vec::new();
    for number in 0..200 {
        let message = format!("message {number}\n");
        expected.extend_from_slice(message.as_bytes());
        outbox.send(message.as_bytes()).expect("open");
        let outbox = outbox.clone();
        waiting.spawn(async move { outbox.flushed().await });
        // Lets those that wait register with the writer before the next push.
        tokio::task::yield_now().await;
    }
    let mut seen = vec![0; expected.len()];
    let reading = tokio::time::timeout(test_support::TEST_TIMEOUT, reader.read_exact(&mut seen)).await;
    reading.expect("every reader is woken").expect("readable");
    assert_eq!(seen, expected);
    while let Some(flushed) = waiting.join_next().await {
        flushed.expect("not cancelled").expect("written");
    }
}

#[tokio::test]
async fn every_task_learns_that_the_reader_is_gone() {
    let (reader, writer) = tokio::io::duplex(64);
    drop(reader);
    let outbox = Outbox::new(writer, usize::MAX);
    assert_eq!(outbox.send(b"x"), Err(OutboxError::Closed));
    assert_eq!(outbox.flushed().await, Err(OutboxError::Closed));
    assert_eq!(outbox.queued_bytes(), Err(OutboxError::Closed));
}

#[tokio::test]
async fn a_reader_that_has_stopped_costs_a_bounded_queue_and_loses_nothing_that_was_taken() {
    let (mut reader, writer) = tokio::io::duplex(64);
    let outbox = Arc::new(Outbox::new(writer, 1000));
    let message = [b'x'; 100];
    let mut taken = 0;
    let refusal = loop {
        match outbox.send(&message) {
            Ok(()) => taken += 1,
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refusal, OutboxError::Full);
    assert!(outbox.queued_bytes().unwrap() <= 1000);
    assert_eq!(taken, 10);
    let running = tokio::spawn({
        let outbox = Arc::clone(&outbox);
        async move { outbox.run().await }
    });
    let mut seen = vec![0; taken * message.len()];
    let reading = tokio::time::timeout(test_support::TEST_TIMEOUT, reader.read_exact(&mut seen)).await;
    reading.expect("the queue moves on").expect("readable");
    outbox.send(&message).expect("there is room again");
    outbox.close();
    tokio::time::timeout(test_support::TEST_TIMEOUT, running)
        .await
        .expect("closing ends the task")
        .expect("not cancelled");
}

#[tokio::test]
async fn closing_wakes_the_task_that_waits_for_the_reader() {
    let (_reader, writer) = tokio::io::duplex(1);
    let outbox = Arc::new(Outbox::new(writer, usize::MAX));
    outbox.send(b"more than fits").expect("queued");
    let flushing = tokio::spawn({
        let outbox = Arc::clone(&outbox);
        async move { outbox.flushed().await }
    });
    tokio::task::yield_now().await;
    outbox.close();
    let flushed = tokio::time::timeout(test_support::TEST_TIMEOUT, flushing).await;
    assert_eq!(
        flushed.expect("woken").expect("not cancelled"),
        Err(OutboxError::Closed)
    );
}
