use std::sync::Arc;

use serde_json::{Value, json};

use super::{compile, replay};

fn events_of(block: Value, recording: &str) -> Vec<(usize, Value)> {
    let rules = Arc::new(compile(&serde_json::from_value(block).unwrap()).unwrap());
    let lines = replay(&rules, recording);
    let show = |line: super::ReplayedLine| {
        let number = line.line_no;
        line.events
            .into_iter()
            .map(move |event| (number, serde_json::to_value(event).unwrap()))
    };
    lines.into_iter().flat_map(show).collect()
}

fn percent_rules() -> Value {
    json!({ "rules": [{ "emit": "progress", "match": "^(?P<p>\\d+)%", "percent": "{p}" }] })
}

fn percents_of(recording: &str) -> Vec<(usize, f64)> {
    let percent = |(line, event): (usize, Value)| (line, event["percent"].as_f64().unwrap());
    events_of(percent_rules(), recording)
        .into_iter()
        .map(percent)
        .collect()
}

#[test]
fn plain_text_is_read_line_by_line() {
    assert_eq!(
        percents_of("10%\nnoise\n+20%\r\n30%\n40%"),
        [(1, 10.0), (4, 30.0), (5, 40.0)]
    );
    assert_eq!(percents_of(""), []);
}

#[test]
fn a_capture_brings_its_own_times_and_line_ends() {
    let capture = "# cmd: x   [pipes]\n+0.00 out| 10%\\r20%\\n\n+0.01 out| 3\n+0.02 out| 0%\\r\\n\n+0.03 out| 40%\n+0.20 out|  x\\n\n# exit 0";
    assert_eq!(percents_of(capture), [(2, 10.0), (2, 20.0), (4, 30.0), (5, 40.0)]);
}

#[test]
fn every_run_in_a_capture_starts_from_nothing() {
    assert_eq!(
        percents_of("# cmd: a\n+0.1 out| 50%\n# exit 0\n# cmd: b\n+0.1 tty| 20%\\r\\n\n"),
        [(2, 50.0), (5, 20.0)]
    );
}

#[test]
fn streams_are_told_apart_unless_the_rules_merge_them() {
    let capture = "# cmd: x\n+0.1 out| 1\n+0.1 err| 0%\\n\n";
    assert_eq!(percents_of(capture), [(3, 0.0)]);
    let mut merged = percent_rules();
    merged["streams"] = json!("merged");
    let events = events_of(merged, capture);
    assert_eq!(
        events
            .iter()
            .map(|(_, event)| event["percent"].as_f64())
            .collect::<Vec<_>>(),
        [Some(10.0)]
    );
}

#[test]
fn escapes_inside_json_belong_to_the_json() {
    let block = json!({ "framing": "json-lines", "rules": [{ "emit": "phase", "phase": "{/a}" }] });
    let events = events_of(block, "# cmd: x\n+0.1 out| {\"a\":\"x\\ny\\r\\\"z\"}\\n\n");
    assert_eq!(events, [(2, json!({ "event": "progress", "phase": "x y \"z" }))]);
}
