use super::*;
use crate::child::{Answer, CallOutcome, ReplySink as _};
use crate::session::event_stream::Next;

fn answered(streams: &SessionStreams, bytes: usize) -> Arc<EventStream> {
    let stream = streams.open_request(1);
    stream.finish(Answer {
        body: Bytes::from(vec![b' '; bytes]),
        outcome: CallOutcome::Result,
    });
    stream
}

fn is_kept(streams: &SessionStreams, stream: &EventStream) -> bool {
    streams.resume(Some(&format!("{}-0", stream.id()))).is_some()
}

#[test]
fn unread_answers_outlive_those_that_were_read() {
    let streams = SessionStreams::new(0);
    let unread: Vec<_> = (0..10 * MAX_READ).map(|_| answered(&streams, 2)).collect();
    for _ in 0..3 * MAX_READ {
        let read = answered(&streams, 2);
        assert!(read.read_after(None).try_next().is_some());
    }
    let kept = streams.requests.lock().streams.len();
    assert!(kept <= unread.len() + MAX_READ + 1, "{kept}");
    assert!(unread.iter().all(|stream| is_kept(&streams, stream)));
}

/// Messages for a reader that takes the stream over.
fn messages(stream: &Arc<EventStream>) -> Vec<Bytes> {
    let mut reader = stream.read_after(Some(0));
    std::iter::from_fn(|| match reader.try_next() {
        Some(Next::Event(event)) => Some(event.body),
        Some(Next::Missed(_) | Next::End) | None => None,
    })
    .collect()
}

#[test]
fn messages_go_to_a_stream_that_is_read() {
    let streams = SessionStreams::new(0);
    let read = streams.open_request(1);
    let reader = read.read_after(None);
    let left = streams.open_request(1);
    drop(left.read_after(None));
    streams.push(Bytes::from_static(b"to the older, whose connection is there"));
    drop(reader);
    streams.push(Bytes::from_static(b"to the next reader"));
    assert_eq!(messages(&left), Vec::<Bytes>::new());
    assert_eq!(messages(&read), ["to the older, whose connection is there"]);

    let next = streams.open_request(1);
    streams.push(Bytes::from_static(b"to the one that is about to be read"));
    let expected = ["to the next reader", "to the one that is about to be read"];
    assert_eq!(messages(&next), expected);
    assert_eq!(messages(streams.standing()), Vec::<Bytes>::new());
}

#[test]
fn a_message_for_a_stream_that_has_just_ended_goes_elsewhere() {
    let streams = SessionStreams::new(0);
    let (older, newer) = (streams.open_request(1), streams.open_request(1));
    let readers = [older.read_after(None), newer.read_after(None)];
    newer.close();
    streams.push(Bytes::from_static(b"hello"));
    drop(readers);
    assert_eq!(messages(&older), ["hello"]);
}

#[test]
fn unread_answers_are_kept_up_to_a_size_and_the_newest_always() {
    let streams = SessionStreams::new(0);
    let first = answered(&streams, 1);
    let large = answered(&streams, 2 * MAX_UNREAD_BYTES);
    let opened = streams.open_request(1);
    assert!(!is_kept(&streams, &first) && is_kept(&streams, &large));
    answered(&streams, 1);
    let second = streams.open_request(1);
    assert!(!is_kept(&streams, &large));
    assert!([opened, second].iter().all(|open| is_kept(&streams, open)));
    let bytes = MAX_UNREAD_BYTES / 64;
    for _ in 0..100 {
        answered(&streams, bytes);
    }
    let kept = streams.requests.lock().streams.len();
    assert!(kept <= 64 + 3, "{kept}");
}

#[test]
fn answers_that_were_read_are_kept_up_to_a_size_and_the_newest_always() {
    let streams = SessionStreams::new(0);
    let read = |bytes: usize| {
        let stream = answered(&streams, bytes);
        assert!(stream.read_after(None).try_next().is_some());
        stream
    };
    let (small, large) = (read(1), read(2 * MAX_READ_BYTES));
    streams.open_request(1);
    assert!(!is_kept(&streams, &small) && is_kept(&streams, &large));
    let newest = read(1);
    streams.open_request(1);
    assert!(!is_kept(&streams, &large) && is_kept(&streams, &newest));
}
