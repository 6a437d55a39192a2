use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{event::End, request::SignedRequest};

fn queued(rerun: bool) -> Event {
    Event::Queued {
        request: SignedRequest::default(),
        rerun,
    }
}

fn claim(attempt: u32, nonce: &str) -> Event {
    Event::Claim {
        attempt,
        worker: format!("worker-of-{nonce}"),
        nonce: nonce.to_owned(),
    }
}

fn lost(attempt: u32) -> Event {
    Event::Lost {
        attempt,
        worker: "any".to_owned(),
    }
}

fn dropped(attempt: u32) -> Event {
    Event::Drop {
        attempt,
        state: "cancelled".to_owned(),
        why: "on request".to_owned(),
    }
}

fn end(attempt: u32, nonce: &str) -> Event {
    Event::End(End {
        attempt,
        nonce: nonce.to_owned(),
        state: "completed".to_owned(),
        bytes: 0,
        findings: 0,
        outcome: Value::Null,
    })
}

/// The effects of a log, event by event.
fn effects(log: &[Event]) -> Vec<Effect> {
    let mut folded = Folded::default();
    let mut sequence = 0;
    log.iter()
        .map(|event| {
            sequence += 1;
            folded.take(sequence, event)
        })
        .collect()
}

#[test]
fn the_order_of_the_log_decides() {
    use Effect::{Claimed, Ended, Ignored, Queued, Requeued};
    for (log, expected) in [
        (
            vec![queued(false), claim(1, "a"), end(1, "a")],
            vec![Queued, Claimed, Ended],
        ),
        // The second claim came too late, and so does its report.
        (
            vec![
                queued(false),
                claim(1, "a"),
                claim(1, "b"),
                end(1, "b"),
                end(1, "a"),
            ],
            vec![Queued, Claimed, Ignored, Ignored, Ended],
        ),
        // A worker that was given up cannot report any more.
        (
            vec![queued(false), claim(1, "a"), lost(1), end(1, "a"), claim(1, "b")],
            vec![Queued, Claimed, Ended, Ignored, Ignored],
        ),
        // What may run again does, and only the new attempt counts.
        (
            vec![
                queued(true),
                claim(1, "a"),
                lost(1),
                lost(1),
                claim(1, "c"),
                claim(2, "b"),
                end(1, "a"),
                end(2, "b"),
            ],
            vec![
                Queued, Claimed, Requeued, Ignored, Ignored, Claimed, Ignored, Ended,
            ],
        ),
        // The third loss is the last.
        (
            vec![
                queued(true),
                claim(1, "a"),
                lost(1),
                claim(2, "b"),
                lost(2),
                claim(3, "c"),
                lost(3),
                claim(4, "d"),
            ],
            vec![
                Queued, Claimed, Requeued, Claimed, Requeued, Claimed, Ended, Ignored,
            ],
        ),
        // Cancelled while it waits: no claim counts after that. While it runs, its worker has to stop it.
        (
            vec![queued(false), dropped(1), claim(1, "a")],
            vec![Queued, Ended, Ignored],
        ),
        (
            vec![queued(false), claim(1, "a"), dropped(1)],
            vec![Queued, Claimed, Ignored],
        ),
        // Nothing counts before it was queued, or a second time.
        (
            vec![claim(1, "a"), queued(false), queued(true)],
            vec![Ignored, Queued, Ignored],
        ),
    ] {
        assert_eq!(effects(&log), expected, "{log:?}");
    }
}

/// Any event that three workers, two stewards and a canceller could append, at any time.
fn any_event() -> impl Strategy<Value = Event> {
    let nonce = prop::sample::select(vec!["a", "b", "c"]);
    prop_oneof![
        any::<bool>().prop_map(queued),
        (1..5_u32, nonce.clone()).prop_map(|(attempt, nonce)| claim(attempt, nonce)),
        (1..5_u32).prop_map(lost),
        (1..5_u32).prop_map(dropped),
        (1..5_u32, nonce).prop_map(|(attempt, nonce)| end(attempt, nonce)),
    ]
}

proptest! {
    #[test]
    fn no_attempt_has_two_winners_and_an_end_is_an_end(log in prop::collection::vec(any_event(), 0..60)) {
        let mut folded = Folded::default();
        let mut claimed = Vec::new();
        let mut rerun = None;
        let mut ended = None;
        for (sequence, event) in (1..).zip(&log) {
            let effect = folded.take(sequence, event);
            match (effect, event) {
                (Effect::Queued, Event::Queued { rerun: may, .. }) => {
                    prop_assert_eq!(rerun, None);
                    rerun = Some(*may);
                }
                (Effect::Claimed, Event::Claim { attempt, .. }) => {
                    prop_assert!(!claimed.contains(attempt), "attempt {} was won twice", attempt);
                    claimed.push(*attempt);
                }
                _ => {}
            }
            match &ended {
                Some(stage) => prop_assert_eq!(&folded.stage, stage),
                None if folded.has_ended() => ended = Some(folded.stage.clone()),
                None => {}
            }
        }
        if rerun != Some(true) {
            prop_assert!(claimed.len() <= 1);
        }
        prop_assert!(claimed.len() <= MAX_ATTEMPTS as usize);
    }

    #[test]
    fn observers_that_read_the_same_log_agree(log in prop::collection::vec(any_event(), 0..60), cut in 0..60_usize) {
        let fold = |log: &[Event], mut folded: Folded, from: u64| {
            for (sequence, event) in (from..).zip(log) {
                folded.take(sequence, event);
            }
            folded
        };
        let cut = cut.min(log.len());
        let whole = fold(&log, Folded::default(), 1);
        let half = fold(&log[..cut], Folded::default(), 1);
        prop_assert_eq!(fold(&log[cut..], half, cut as u64 + 1).stage, whole.stage);
    }
}
