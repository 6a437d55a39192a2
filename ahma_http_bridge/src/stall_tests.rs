use std::future::poll_fn;

use axum::body::Body as AnyBody;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

#[tokio::test]
async fn a_write_that_gets_nowhere_fails() {
    let (ours, _theirs) = duplex(16);
    let mut ours = StallLimit::new(ours, Duration::from_millis(20));
    ours.write_all(&[0; 16]).await.unwrap();
    let written = tokio::time::timeout(test_support::PATIENCE, ours.write_all(&[0; 1])).await;
    let error = written.expect("an end").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

#[tokio::test]
async fn a_slow_reader_gets_everything() {
    const PATIENCE: Duration = Duration::from_secs(5);
    let (ours, mut theirs) = duplex(16);
    let mut ours = StallLimit::new(ours, PATIENCE);
    let writing = tokio::spawn(async move { ours.write_all(&[7; 160]).await });
    let start = std::time::Instant::now();
    let mut read = Vec::new();
    // Longer than the whole patience, but each pause is short.
    while start.elapsed() < PATIENCE + Duration::from_secs(1) {
        tokio::time::sleep(Duration::from_millis(600)).await;
        if let Ok(byte) = theirs.read_u8().await {
            read.push(byte);
        }
    }
    theirs.read_to_end(&mut read).await.unwrap();
    writing.await.unwrap().unwrap();
    assert_eq!(read, [7; 160]);
}

#[tokio::test]
async fn an_answer_that_nobody_takes_is_no_use() {
    let uses = Arc::new(Uses::default());
    let said = [vec![1; PIECE_BYTES + 1], vec![2; 3]];
    let (tx, rx) = tokio::sync::mpsc::unbounded_channel();
    let stream = futures::stream::unfold(rx, async |mut rx| {
        let data: Vec<u8> = rx.recv().await?;
        Some((Ok::<_, io::Error>(data), rx))
    });
    let mut body = Taken::new(AnyBody::from_stream(stream), Arc::clone(&uses));
    assert!(!uses.idle_for().is_zero());
    let next = async |body: &mut Taken<AnyBody>| {
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
    assert!(!uses.idle_for().is_zero(), "nobody asks for more");
    assert_eq!(next(&mut body).await, Some(1));
    assert_eq!(next(&mut body).await, Some(3));
    assert_eq!(next(&mut body).await, None);
}
