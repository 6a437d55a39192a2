use super::*;
use crate::child::CallOutcome;

fn message(number: usize) -> Bytes {
    Bytes::from(format!("message {number}"))
}

fn answer() -> Answer {
    Answer {
        body: Bytes::from_static(b"answer"),
        outcome: CallOutcome::Result,
    }
}

/// Everything a reader can have now, as text.
fn drain(reader: &mut StreamReader) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(next) = reader.try_next() {
        match next {
            Next::Event(event) => {
                seen.push(format!("{} {}", event.seq, String::from_utf8_lossy(&event.body)));
            }
            Next::Missed(count) => seen.push(format!("missed {count}")),
            Next::End => {
                seen.push("end".to_owned());
                break;
            }
        }
    }
    seen
}

#[test]
fn a_stream_ends_after_its_last_answer() {
    let stream = EventStream::for_answers(1, Keep::ForReplay, 2);
    let mut reader = stream.read_after(None);
    stream.push(message(1)).unwrap();
    stream.finish(answer());
    assert_eq!(drain(&mut reader), ["1 message 1", "2 answer"]);
    stream.finish(answer());
    assert_eq!(drain(&mut reader), ["3 answer", "end"]);
    assert!(stream.is_exhausted());
}

#[test]
fn a_resumed_stream_has_neither_gap_nor_duplicate() {
    let stream = EventStream::standing(0);
    for number in 1..=5 {
        stream.push(message(number)).unwrap();
    }
    let mut first = stream.read_after(None);
    assert_eq!(drain(&mut first).len(), 5);
    // The client saw three of the five before its connection broke.
    let mut second = stream.read_after(Some(3));
    stream.push(message(6)).unwrap();
    assert_eq!(drain(&mut second), ["4 message 4", "5 message 5", "6 message 6"]);
    assert_eq!(drain(&mut first), ["end"], "the older connection is over");
}

#[test]
fn a_reader_without_an_event_id_gets_what_was_not_delivered() {
    let stream = EventStream::standing(0);
    stream.push(message(1)).unwrap();
    assert_eq!(drain(&mut stream.read_after(None)), ["1 message 1"]);
    stream.push(message(2)).unwrap();
    assert_eq!(drain(&mut stream.read_after(None)), ["2 message 2"]);
}

#[test]
fn a_client_that_does_not_read_costs_a_bound_and_is_told() {
    let stream = EventStream::standing(0);
    let mut reader = stream.read_after(None);
    for number in 0..MAX_HELD_EVENTS + 10 {
        stream.push(message(number)).unwrap();
    }
    let seen = drain(&mut reader);
    assert_eq!(seen[0], "missed 10");
    assert_eq!(seen.len(), MAX_HELD_EVENTS + 1);

    drain(&mut reader);
    let big = Bytes::from(vec![b'x'; MAX_HELD_BYTES]);
    stream.push(big.clone()).unwrap();
    stream.push(big).unwrap();
    assert_eq!(stream.state.lock().events.len(), 1);
}

#[test]
fn answers_are_kept_until_they_are_read() {
    let stream = EventStream::standing(0);
    let mut reader = stream.read_after(None);
    let big = |byte: u8| Answer {
        body: Bytes::from(vec![byte; MAX_HELD_BYTES]),
        outcome: CallOutcome::Result,
    };
    stream.finish(big(b'a'));
    for number in 0..5 {
        stream.push(message(number)).unwrap();
        stream.finish(big(b'b'));
    }
    let seen: Vec<_> = drain(&mut reader)
        .into_iter()
        .filter(|text| text.len() > 100)
        .collect();
    assert_eq!(seen.len(), 6, "all six answers");
    stream.push(message(9)).unwrap();
    assert!(
        stream.state.lock().held_bytes <= MAX_HELD_BYTES,
        "what was read is dropped first"
    );

    let unread = EventStream::standing(0);
    for _ in 0..100 {
        unread.finish(big(b'c'));
    }
    assert!(unread.is_closed());
    assert!(unread.state.lock().held_bytes <= MAX_UNREAD_BYTES + MAX_HELD_BYTES);
}

#[test]
fn short_answers_that_are_not_read_end_the_stream_as_well() {
    let stream = EventStream::standing(0);
    for _ in 0..2 * MAX_UNREAD_EVENTS {
        stream.finish(answer());
    }
    assert!(stream.is_closed());
    assert_eq!(stream.state.lock().events.len(), MAX_UNREAD_EVENTS + 1);
}

#[test]
fn notifications_make_room_wherever_they_are_among_answers() {
    let stream = EventStream::standing(0);
    let mut reader = stream.read_after(None);
    for number in 0..MAX_HELD_EVENTS {
        stream.finish(answer());
        stream.push(message(number)).unwrap();
    }
    // The newest message is never the one to go.
    let seen = drain(&mut reader);
    let is_message = |seen: &&String| seen.contains("message");
    let last = format!("{} message {}", 2 * MAX_HELD_EVENTS, MAX_HELD_EVENTS - 1);
    assert_eq!(seen.iter().filter(is_message).collect::<Vec<_>>(), [&last]);
    let answers = seen.iter().filter(|seen| seen.ends_with("answer")).count();
    assert_eq!(answers, MAX_HELD_EVENTS);
    // What was read goes first, then what was not.
    for number in 0..2 * MAX_HELD_EVENTS {
        stream.push(message(number)).unwrap();
    }
    assert_eq!(stream.state.lock().events.len(), MAX_HELD_EVENTS);
    assert_eq!(drain(&mut reader)[0], format!("missed {MAX_HELD_EVENTS}"));
}

#[test]
fn unread_messages_can_be_sent_another_way() {
    let stream = EventStream::standing(0);
    stream.push(message(1)).unwrap();
    drain(&mut stream.read_after(None));
    stream.push(message(2)).unwrap();
    assert_eq!(stream.take_unread(), [message(2)]);
    assert_eq!(drain(&mut stream.read_after(None)), Vec::<String>::new());
}

#[test]
fn a_cancelled_request_ends_its_stream_without_an_answer() {
    let stream = EventStream::for_answers(1, Keep::UntilRead, 1);
    let outcome = CallOutcome::Failed(CallFailure::Cancelled);
    stream.finish(Answer {
        body: Bytes::new(),
        outcome,
    });
    assert_eq!(drain(&mut stream.read_after(None)), ["end"]);
}

#[tokio::test]
async fn a_waiting_reader_wakes_for_a_message_and_for_a_successor() {
    let stream = EventStream::standing(0);
    let mut reader = stream.read_after(None);
    let waiting = tokio::spawn(async move { (reader.next().await, reader.next().await) });
    tokio::task::yield_now().await;
    stream.push(message(1)).unwrap();
    while !stream.is_read_up_to(1) {
        tokio::task::yield_now().await;
    }
    let _successor = stream.read_after(None);
    let (first, second) = waiting.await.unwrap();
    assert!(matches!(first, Next::Event(_)) && matches!(second, Next::End));
}

impl EventStream {
    fn is_read_up_to(&self, seq: u64) -> bool {
        self.state.lock().read_up_to >= seq
    }
}
