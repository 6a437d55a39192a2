use std::future::poll_fn;

use axum::body::Body as AnyBody;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_write_that_gets_nowhere_fails() {
    let (ours, _theirs) = duplex(16);
    let mut ours = StallLimit::new(ours, Duration::from_secs(5));
    ours.write_all(&[0; 16]).await.unwrap();
    let written = tokio::time::timeout(test_support::TEST_TIMEOUT, ours.write_all(&[0; 1])).await;
    let error = written.expect("an end").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_everything() {
    const LIMIT: Duration = Duration::from_secs(5);
    let (ours, mut theirs) = duplex(16);
    let mut ours = StallLimit::new(ours, LIMIT);
    let writing = tokio::spawn(async move { ours.write_all(&[7; 160]).await });
    let mut read = Vec::new();
    // Much longer than the limit in all, but each pause is shorter.
    while read.len() < 160 {
        tokio::time::sleep(LIMIT - Duration::from_secs(1)).await;
        read.push(theirs.read_u8().await.unwrap());
    }
    writing.await.unwrap().unwrap();
    assert_eq!(read, [7; 160]);
}

#[tokio::test]
async fn an_answer_that_is_not_read_does_not_count_as_use() {
    let uses = Arc::new(Uses::default());
    let said = [vec![1; PIECE_BYTES + 1], vec![2; 3]];
    let (tx, rx) = tokio::sync::mpsc::unbounded_channel();
    let stream = futures::stream::unfold(rx, async |mut rx| {
        let data: Vec<u8> = rx.recv().await?;
        Some((Ok::<_, io::Error>(data), rx))
    });
    let mut body = MeasuredBody::new(AnyBody::from_stream(stream), Arc::clone(&uses));
    assert!(!uses.idle_for().is_zero());
    let next = async |body: &mut MeasuredBody<AnyBody>| {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        frame.map(|frame| frame.unwrap().into_data().unwrap().len())
    };
    let mut asking = Box::pin(next(&mut body));
    assert!(futures::poll!(&mut asking).is_pending());
    assert!(
        uses.idle_for().is_zero(),
        "it waits for the answer, not for the client"
    );
    said.iter().for_each(|data| tx.send(data.clone()).unwrap());
    drop(tx);
    assert_eq!(asking.await, Some(PIECE_BYTES));
    assert!(!uses.idle_for().is_zero(), "no reader asks for more");
    assert_eq!(next(&mut body).await, Some(1));
    assert_eq!(next(&mut body).await, Some(3));
    assert_eq!(next(&mut body).await, None);
}
