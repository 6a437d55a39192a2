use std::time::{Duration, SystemTime};

use serde_json::json;

use super::{Index, Logged, RECENT_END_BYTES};
use crate::{
    event::{End, Event},
    request::SignedRequest,
};

/// An index that takes events of anna's operations, each a second after the one before.
#[derive(Default)]
struct Log {
    index: Index,
    sequence: u64,
}

impl Log {
    fn take(&mut self, operation: &str, event: Event) {
        self.take_sized(operation, event, 100);
    }

    fn take_sized(&mut self, operation: &str, event: Event, bytes: usize) {
        self.sequence += 1;
        let logged = Logged {
            sequence: self.sequence,
            time: at(self.sequence),
            bytes,
        };
        self.index.take(("anna", operation), event, logged);
    }

    fn open(&self) -> Vec<&str> {
        self.index.open().map(|entry| entry.operation.as_str()).collect()
    }
}

fn at(sequence: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(sequence)
}

fn queued() -> Event {
    Event::Queued {
        request: SignedRequest::default(),
        rerun: true,
    }
}

fn claim(attempt: u32) -> Event {
    Event::Claim {
        attempt,
        worker: "w".to_owned(),
        nonce: format!("n{attempt}"),
    }
}

fn lost(attempt: u32) -> Event {
    Event::Lost {
        attempt,
        worker: "w".to_owned(),
    }
}

fn end(attempt: u32) -> Event {
    Event::End(End {
        attempt,
        nonce: format!("n{attempt}"),
        state: "completed".to_owned(),
        bytes: 7,
        findings: 1,
        outcome: json!({ "attempt": attempt }),
    })
}

#[test]
fn an_operation_is_open_from_its_first_event_to_its_end() {
    let mut log = Log::default();
    for operation in ["a", "b", "c"] {
        log.take(operation, queued());
    }
    assert_eq!(log.open(), ["a", "b", "c"]);
    assert_eq!(log.index.place_in_queue("c"), Some(3));

    log.take("a", claim(1));
    assert_eq!(log.index.entry("a").unwrap().claimed_at, Some(at(4)));
    assert_eq!(
        (log.index.place_in_queue("a"), log.index.place_in_queue("c")),
        (None, Some(2))
    );

    log.take("a", lost(1));
    assert_eq!(log.index.entry("a").unwrap().claimed_at, None);
    assert_eq!(
        (log.index.place_in_queue("a"), log.index.place_in_queue("c")),
        (Some(1), Some(3))
    );

    log.take("a", claim(2));
    // Late, and without effect.
    log.take("a", end(1));
    assert_eq!(log.index.recent_end("a"), None);
    assert_eq!(log.open(), ["a", "b", "c"]);

    log.take("a", end(2));
    assert_eq!(log.open(), ["b", "c"]);
    assert_eq!(
        log.index.recent_end("a").unwrap().outcome,
        json!({ "attempt": 2 })
    );
    assert_eq!(log.index.verdicts(), 1);

    let known = |log: &Log| ["a", "b", "c"].map(|operation| log.index.entry(operation).is_some());
    log.index.forget_before(at(3), SystemTime::UNIX_EPOCH);
    assert_eq!(known(&log), [false, true, true]);
    log.index.forget_before(at(3), at(3));
    assert_eq!((known(&log), log.open()), ([false, false, true], vec!["c"]));
}

#[test]
fn what_is_left_of_a_log_whose_beginning_is_not_kept_is_no_operation() {
    let mut log = Log::default();
    for event in [claim(1), end(1), Event::Collected] {
        log.take("old", event);
    }
    let task = Event::Task {
        id: "task".to_owned(),
        life_ms: 1,
    };
    log.take("old", task);
    assert_eq!(log.open(), Vec::<&str>::new());
    assert!(log.index.entry("old").is_none());
    assert_eq!(log.index.task("task"), None);
}

#[test]
fn the_oldest_output_of_an_owner_with_too_much_is_over_its_quota() {
    let mut log = Log::default();
    for operation in ["a", "b", "c"] {
        log.take(operation, queued());
        log.take(operation, claim(1));
        log.take(operation, end(1));
    }
    let over = |log: &Log, limit| -> Vec<String> {
        let entries = log.index.over_quota(limit, SystemTime::UNIX_EPOCH);
        entries.into_iter().map(|entry| entry.operation).collect()
    };
    assert_eq!(over(&log, 21), Vec::<String>::new());
    assert_eq!(over(&log, 14), ["a"]);
    // The newest stays, however long it is.
    assert_eq!(over(&log, 1), ["b", "a"]);
    for _ in 0..2 {
        log.take("a", Event::OutputDropped);
    }
    assert_eq!(over(&log, 14), Vec::<String>::new());
    assert_eq!(over(&log, 13), ["b"]);
    log.index.forget_before(at(5), at(5));
    assert_eq!(over(&log, 7), Vec::<String>::new());
}

#[test]
fn only_those_who_watch_an_operation_hear_of_it() {
    let mut log = Log::default();
    let (mut of_a, of_b) = (log.index.watch("a"), log.index.watch("b"));
    log.take("a", queued());
    assert!(of_a.has_changed().unwrap() && !of_b.has_changed().unwrap());
    of_a.mark_unchanged();
    log.take("a", Event::Collected);
    assert!(of_a.has_changed().unwrap());
}

#[test]
fn ends_are_kept_while_there_is_room() {
    let mut log = Log::default();
    for operation in ["a", "b", "c"] {
        log.take(operation, queued());
        log.take(operation, claim(1));
        log.take_sized(operation, end(1), RECENT_END_BYTES / 2);
    }
    let kept = ["a", "b", "c"].map(|operation| log.index.recent_end(operation).is_some());
    assert_eq!(kept, [false, true, true]);
    log.take("d", queued());
    log.take("d", claim(1));
    log.take_sized("d", end(1), 2 * RECENT_END_BYTES);
    let kept = ["b", "c", "d"].map(|operation| log.index.recent_end(operation).is_some());
    assert_eq!(kept, [false, false, true]);
}
