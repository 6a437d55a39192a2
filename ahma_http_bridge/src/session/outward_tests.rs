use super::*;
use crate::child::{Answer, Verdict};
use crate::stream::Next;

fn answered(outward: &Outward, bytes: usize) -> Arc<EventStream> {
    let stream = outward.open_request(1);
    stream.finish(Answer {
        body: Bytes::from(vec![b' '; bytes]),
        verdict: Verdict::Result,
    });
    stream
}

fn is_kept(outward: &Outward, stream: &EventStream) -> bool {
    outward.resume(Some(&format!("{}-0", stream.id()))).is_some()
}

#[test]
fn answers_that_nobody_read_outlive_those_that_were_read() {
    let outward = Outward::new();
    let unread: Vec<_> = (0..10 * MAX_READ).map(|_| answered(&outward, 2)).collect();
    for _ in 0..3 * MAX_READ {
        let read = answered(&outward, 2);
        assert!(read.read_after(None).try_next().is_some());
    }
    let kept = outward.lock().streams.len();
    assert!(kept <= unread.len() + MAX_READ + 1, "{kept}");
    assert!(unread.iter().all(|stream| is_kept(&outward, stream)));
}

/// What a reader that takes the stream over finds in it.
fn messages(stream: &Arc<EventStream>) -> Vec<Bytes> {
    let mut reader = stream.read_after(Some(0));
    std::iter::from_fn(|| match reader.try_next() {
        Some(Next::Event(event)) => Some(event.body),
        Some(Next::Missed(_) | Next::End) | None => None,
    })
    .collect()
}

#[test]
fn messages_go_where_somebody_reads() {
    let outward = Outward::new();
    let read = outward.open_request(1);
    let reader = read.read_after(None);
    let left = outward.open_request(1);
    drop(left.read_after(None));
    outward.push(Bytes::from_static(b"to the older, whose connection is there"));
    drop(reader);
    outward.push(Bytes::from_static(b"to whoever comes next"));
    assert_eq!(messages(&left), Vec::<Bytes>::new());
    assert_eq!(messages(&read), ["to the older, whose connection is there"]);

    let next = outward.open_request(1);
    outward.push(Bytes::from_static(b"to the one that is about to be read"));
    let expected = ["to whoever comes next", "to the one that is about to be read"];
    assert_eq!(messages(&next), expected);
    assert_eq!(messages(outward.standing()), Vec::<Bytes>::new());
}

#[test]
fn a_message_for_a_stream_that_has_just_ended_goes_elsewhere() {
    let outward = Outward::new();
    let (older, newer) = (outward.open_request(1), outward.open_request(1));
    let readers = [older.read_after(None), newer.read_after(None)];
    newer.close();
    outward.push(Bytes::from_static(b"hello"));
    drop(readers);
    assert_eq!(messages(&older), ["hello"]);
}

#[test]
fn unread_answers_are_kept_up_to_a_size_and_the_newest_always() {
    let outward = Outward::new();
    let first = answered(&outward, 1);
    let large = answered(&outward, 2 * MAX_UNREAD_BYTES);
    let opened = outward.open_request(1);
    assert!(!is_kept(&outward, &first) && is_kept(&outward, &large));
    answered(&outward, 1);
    let second = outward.open_request(1);
    assert!(!is_kept(&outward, &large));
    assert!([opened, second].iter().all(|open| is_kept(&outward, open)));
    let bytes = MAX_UNREAD_BYTES / 64;
    for _ in 0..100 {
        answered(&outward, bytes);
    }
    let kept = outward.lock().streams.len();
    assert!(kept <= 64 + 3, "{kept}");
}

#[test]
fn answers_that_were_read_are_kept_up_to_a_size_and_the_newest_always() {
    let outward = Outward::new();
    let read = |bytes: usize| {
        let stream = answered(&outward, bytes);
        assert!(stream.read_after(None).try_next().is_some());
        stream
    };
    let (small, large) = (read(1), read(2 * MAX_READ_BYTES));
    outward.open_request(1);
    assert!(!is_kept(&outward, &small) && is_kept(&outward, &large));
    let newest = read(1);
    outward.open_request(1);
    assert!(!is_kept(&outward, &large) && is_kept(&outward, &newest));
}
