use std::{pin::pin, sync::mpsc};

use futures::{FutureExt as _, poll};
use serde_json::{Value, json};

use super::*;
use crate::observe::{compile, stream_block::StreamBlock};

fn observation(block: Value) -> Observation {
    let block: StreamBlock = serde_json::from_value(block).unwrap();
    Observation::new(Some(&Arc::new(compile(&block).unwrap())), RunContext::default())
}

/// A report with one finding, this long at least.
fn report(length: usize) -> Vec<u8> {
    let text = "x".repeat(length);
    json!({ "runs": [{ "results": [{ "ruleId": "rule", "message": { "text": text } }] }] })
        .to_string()
        .into_bytes()
}

/// Runs `test` on one thread, with one other for what takes long.
fn on_two_threads(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().max_blocking_threads(1).build().unwrap();
    runtime.block_on(test);
}

/// Checks that `reading` is work for the other thread: that it does not get on while that is busy.
async fn elsewhere(reading: impl Future<Output = Vec<StreamEvent>>) -> Vec<StreamEvent> {
    let (free, until_free) = mpsc::channel();
    spawn_blocking(move || until_free.recv());
    let mut reading = pin!(reading);
    assert!(poll!(&mut reading).is_pending(), "read by the thread that serves");
    free.send(()).unwrap();
    reading.await
}

fn here(reading: impl Future<Output = Vec<StreamEvent>>) -> Vec<StreamEvent> {
    reading.now_or_never().expect("read at once")
}

#[test]
fn a_long_report_is_not_read_by_the_thread_that_serves() {
    on_two_threads(async {
        let mut observation = observation(json!({ "preset": "sarif" }));
        let short = report(1000);
        assert_eq!(here(observation.feed(StreamName::Stdout, &short)).len(), 1);

        let long = report(2 * LONG_BYTES);
        let (start, rest) = long.split_at(LONG_BYTES);
        assert_eq!(here(observation.feed(StreamName::Stdout, start)), []);
        let events = elsewhere(observation.feed(StreamName::Stdout, rest)).await;
        assert!(matches!(events.as_slice(), [StreamEvent::Finding(_)]));
        assert_eq!(here(observation.feed(StreamName::Stdout, &short)).len(), 1);
        assert_eq!(here(observation.finish()), []);
    });
}

#[test]
fn what_is_left_of_a_long_output_is_not_either() {
    on_two_threads(async {
        let mut report_of_dead = observation(json!({ "preset": "sarif" }));
        let mut cut_off = report(2 * LONG_BYTES);
        cut_off.truncate(cut_off.len() - 1);
        assert_eq!(
            elsewhere(report_of_dead.feed(StreamName::Stdout, &cut_off)).await,
            []
        );
        let events = elsewhere(report_of_dead.finish()).await;
        assert!(matches!(events.last(), Some(StreamEvent::Finding(_))));

        let rule = json!({ "emit": "phase", "match": "^(?P<first>.)", "phase": "{first}" });
        let mut unfinished_line = observation(json!({ "rules": [rule] }));
        let line = vec![b'x'; 2 * LONG_BYTES];
        assert_eq!(
            elsewhere(unfinished_line.feed(StreamName::Stdout, &line)).await,
            []
        );
        // The clock goes on by itself when there is nothing else to do.
        tokio::time::pause();
        unfinished_line.quiet().await;
        assert_eq!(elsewhere(unfinished_line.tick()).await.len(), 1);
    });
}
