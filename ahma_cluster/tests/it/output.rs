//! Output reaches every reader, byte for byte and once.

use ahma_cluster::{Goal, Link, OutputPublisher, Piece, ReadEnd, read_output};
use bytes::Bytes;
use tokio::sync::watch;

use crate::pool::TestPool;

const PLACE: (&str, &str, u32) = ("anna", "op_1", 1);

/// Everything until the goal.
async fn read(link: &Link, goal: watch::Receiver<Goal>) -> (ReadEnd, Vec<u8>, Vec<String>) {
    let (mut output, mut findings) = (Vec::new(), Vec::new());
    let end = read_output(link, PLACE, goal, |piece| match piece {
        Piece::Output(bytes) => output.extend_from_slice(&bytes),
        Piece::Finding(json) => findings.push(String::from_utf8(json.to_vec()).unwrap()),
        Piece::Progress(_) | Piece::CaughtUp => {}
    });
    let end = end.await.unwrap();
    (end, output, findings)
}

/// So long that it takes many frames, and every part of it is different.
fn long_output() -> Vec<u8> {
    (0..400_000_u32)
        .flat_map(|number| format!("{number}\n").into_bytes())
        .collect()
}

#[tokio::test]
async fn readers_at_any_time_get_the_same_while_nats_is_killed() {
    let Some(mut pool) = TestPool::start().await else {
        return;
    };
    let output = long_output();
    let (goal, wanted) = watch::channel(Goal::Open);
    let live_link = pool.link("live").await;
    let (live_wanted, publish_link) = (wanted.clone(), pool.link("worker").await);
    let live = tokio::spawn(async move { read(&live_link, live_wanted).await });
    let mut publisher = OutputPublisher::new(publish_link, PLACE.0, PLACE.1, PLACE.2);
    for (index, chunk) in output.chunks(10_000).enumerate() {
        if index == 60 {
            pool.nats.kill();
            pool.nats.restart();
        }
        publisher.output(Bytes::copy_from_slice(chunk)).await;
        if index % 50 == 0 {
            publisher.finding(Bytes::from(format!("\"{index}\""))).await;
        }
    }
    let (bytes, findings) = publisher.sent();
    assert_eq!(bytes, output.len() as u64);
    publisher.finish().await.unwrap();
    goal.send_replace(Goal::Ended { bytes, findings });

    let expected: Vec<String> = (0..findings).map(|index| format!("\"{}\"", index * 50)).collect();
    let (end, seen, found) = live.await.unwrap();
    assert_eq!((end, found), (ReadEnd::Whole, expected.clone()));
    assert!(
        seen == output,
        "the live reader has {} of {bytes} bytes",
        seen.len()
    );
    let (end, seen, found) = read(&pool.link("late").await, wanted).await;
    assert_eq!((end, found), (ReadEnd::Whole, expected));
    assert!(
        seen == output,
        "the late reader has {} of {bytes} bytes",
        seen.len()
    );
}

#[tokio::test]
async fn what_a_lost_worker_printed_until_then_is_all() {
    let Some(pool) = TestPool::start().await else {
        return;
    };
    let link = pool.link("worker").await;
    let mut publisher = OutputPublisher::new(link.clone(), PLACE.0, PLACE.1, PLACE.2);
    publisher.output(Bytes::from_static(b"before\n")).await;
    publisher.finish().await.unwrap();
    let cut = time::OffsetDateTime::now_utc();
    let mut fenced = OutputPublisher::new(link.clone(), PLACE.0, PLACE.1, PLACE.2);
    fenced.output(Bytes::from_static(b"before\nafter\n")).await;
    fenced.finish().await.unwrap();
    let (_goal, wanted) = watch::channel(Goal::Cut { at: cut });
    let (end, seen, _) = read(&link, wanted).await;
    assert_eq!((end, seen), (ReadEnd::Cut, b"before\n".to_vec()));
}
