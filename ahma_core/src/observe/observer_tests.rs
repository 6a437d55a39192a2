use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{FindingLog, Observer, RunContext, StreamEvent, StreamName, StreamRules, compile};
use crate::observe::stream_block::StreamBlock;

const START: Duration = Duration::ZERO;

fn rules(block: Value) -> Arc<StreamRules> {
    let block: StreamBlock = serde_json::from_value(block).unwrap();
    Arc::new(compile(&block).unwrap_or_else(|problems| panic!("{problems:#?}")))
}

/// One rule set per framing, each with progress, findings and a limit on them.
fn rule_sets() -> Vec<Arc<StreamRules>> {
    let limits = json!({ "max_findings": 3, "max_frame_bytes": 60, "max_document_bytes": 80 });
    let stderr =
        json!({ "emit": "finding", "on": "stderr", "match": "e(?P<x>.*)", "finding": { "id": "{x}" } });
    let finding = json!({ "id": "{/a}", "severity": "{/b}" });
    [
        json!({ "limits": limits, "phases": ["a", "b"], "rules": [
            { "emit": "progress", "match": "^(?P<n>\\d+)%", "percent": "{n}" },
            { "emit": "ignore", "match": "2" },
            { "emit": "finding", "match": "(?P<x>a)", "next": "1|<", "finding": { "id": "{x}{.}" } },
            { "emit": "progress", "match": "a", "count": true, "phase": "{.}" },
            stderr ] }),
        json!({ "limits": limits, "rules": [
            { "emit": "finding", "match": "a", "until": "(?P<x>1|<)", "collect": "[^b]", "finding": { "id": "{lines}{x}" } },
            { "emit": "noise", "match": "0" },
            stderr ] }),
        json!({ "limits": limits, "framing": "json-lines", "rules": [
            { "emit": "finding", "where": { "/a": { "exists": true } }, "finding": finding },
            { "emit": "finding", "each": "/l/*", "finding": { "id": "{.}" } },
            { "emit": "progress", "match": "a", "count": true }, stderr ] }),
        json!({ "limits": limits, "framing": "json-document", "rules": [
            { "emit": "finding", "each": "/l", "finding": finding },
            { "emit": "progress", "each": "/l", "count": true },
            { "emit": "phase", "phase": "{/a}" }, stderr ] }),
        json!({ "limits": limits, "framing": "xml", "rules": [
            { "emit": "finding", "element": "a", "where": { "b/@c": { "exists": false } }, "finding": { "id": "{@a}{../@a}{.}" } },
            { "emit": "progress", "element": "b", "count": true, "phase": "{@c}" }, stderr ] }),
        json!({ "limits": limits, "preset": "sarif" }),
        json!({ "limits": limits, "preset": "junit" }),
    ]
    .map(rules)
    .into()
}

/// All events but those that are given at the end of a chunk; counts of omitted findings are put together.
fn events_of(rules: &Arc<StreamRules>, chunks: &[(StreamName, &[u8])]) -> (Vec<StreamEvent>, FindingLog) {
    let mut observer = Observer::new(Arc::clone(rules));
    let mut events: Vec<_> = chunks
        .iter()
        .flat_map(|(source, bytes)| observer.feed(*source, bytes, START))
        .collect();
    events.extend(observer.finish());
    let mut log = FindingLog::new(rules.max_findings());
    events.iter().for_each(|event| log.record(event));
    let is_of_chunk = |event: &StreamEvent| {
        matches!(
            event,
            StreamEvent::FindingsOmitted(_) | StreamEvent::Notice { .. }
        )
    };
    events.retain(|event| !is_of_chunk(event));
    (events, log)
}

/// Cuts chunks into pieces of the given sizes, over and over.
fn cut<'a>(chunks: &[(StreamName, &'a [u8])], sizes: &[usize]) -> Vec<(StreamName, &'a [u8])> {
    let mut sizes = sizes.iter().copied().cycle();
    let mut pieces = Vec::new();
    for (source, mut bytes) in chunks.iter().copied() {
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(sizes.next().unwrap_or(1).min(bytes.len()));
            pieces.push((source, piece));
            bytes = rest;
        }
    }
    pieces
}

#[track_caller]
fn assert_same_however_cut(rules: &Arc<StreamRules>, chunks: &[(StreamName, &[u8])], sizes: &[usize]) {
    let (whole, whole_log) = events_of(rules, chunks);
    let (pieces, pieces_log) = events_of(rules, &cut(chunks, sizes));
    assert_eq!(whole, pieces);
    assert_eq!(whole_log.counts(), pieces_log.counts());
}

/// Output that is made of what the framings care about, valid or not.
fn output() -> impl Strategy<Value = Vec<(bool, Vec<u8>)>> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            "a", "e!", "12%", "\n", "\r", "\r\n", "\x1b[2K", "\x1b[1m", "\x1b]0;t\x07", "\0", "ä", "日", " ", "\x08",
            "{\"a\":\"x\",\"b\":\"high\"}", "{\"l\":[{\"a\":1},2,\"s\"]}", "{\"a\":", "[", "]", "{", "}", "\"", "\\", ",", "1",
            "<a a=\"1\">", "</a>", "<b c='d'/>", "<b>", "</b>", "<", ">", "<!--", "-->", "<![CDATA[", "]]>", "&lt;", "&", "<?", "?>",
            "{\"runs\":[{\"results\":[{\"ruleId\":\"r\"},3]}]}", "<testcase name=\"n\"><failure message=\"m\"/></testcase>",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..12),
    ];
    let chunk = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    prop::collection::vec((any::<bool>(), chunk), 0..6)
}

proptest! {
    #[test]
    fn any_cut_of_any_output_gives_the_same_events(output in output(), sizes in prop::collection::vec(1usize..9, 1..5)) {
        let source = |is_stderr: bool| if is_stderr { StreamName::Stderr } else { StreamName::Stdout };
        let chunks: Vec<_> = output.iter().map(|(is_stderr, bytes)| (source(*is_stderr), bytes.as_slice())).collect();
        for rules in rule_sets() {
            assert_same_however_cut(&rules, &chunks, &sizes);
        }
    }
}

proptest! {
    /// Each stream has frames of its own: what it says does not depend on what the other prints meanwhile.
    #[test]
    fn any_mixture_of_two_streams_gives_the_findings_of_each(output in output(), order in any::<prop::sample::Index>()) {
        let source = |is_err| if is_err { StreamName::Stderr } else { StreamName::Stdout };
        let rules = rules(json!({ "rules": [
            { "emit": "finding", "on": "stdout", "match": "(?P<x>.*a.*)", "finding": { "id": "out {x}" } },
            { "emit": "finding", "on": "stderr", "match": "(?P<x>.*e.*)", "finding": { "id": "err {x}" } },
            { "emit": "finding", "match": "1", "until": "<|2", "finding": { "id": "block {lines}" } },
        ] }));
        let ids = |chunks: &[(StreamName, &[u8])]| {
            let (events, _) = events_of(&rules, chunks);
            let mut ids: Vec<String> = events.iter().map(|event| serde_json::to_value(event).unwrap()["id"].to_string()).collect();
            ids.sort();
            ids
        };
        let mixed: Vec<_> = output.iter().map(|(is_err, bytes)| (source(*is_err), bytes.as_slice())).collect();
        let (mut first, mut second): (Vec<_>, Vec<_>) = mixed.iter().partition(|(name, _)| *name == StreamName::Stdout);
        let apart: Vec<String> = {
            let mut apart = ids(&first);
            apart.extend(ids(&second));
            apart.sort();
            apart
        };
        prop_assert_eq!(ids(&mixed), &apart[..]);
        // And in another order of the two.
        let place = order.index(second.len() + 1);
        let late = second.split_off(place);
        second.append(&mut first);
        second.extend(late);
        prop_assert_eq!(ids(&second), apart);
    }
}

#[test]
fn any_cut_of_the_captures_gives_the_same_events() {
    let rule_sets: Value =
        serde_json::from_str(include_str!("../../tests/fixtures/streams/rule_sets.json")).unwrap();
    let captures = [
        (
            "nmap_xml",
            include_str!("../../tests/fixtures/streams/nmap_progress_oX.txt"),
        ),
        (
            "git_clone",
            include_str!("../../tests/fixtures/streams/git_clone.txt"),
        ),
        (
            "cargo_json",
            include_str!("../../tests/fixtures/streams/cargo_build_json.txt"),
        ),
        (
            "semgrep",
            include_str!("../../tests/fixtures/streams/semgrep_json.txt"),
        ),
        (
            "pytest",
            include_str!("../../tests/fixtures/streams/pytest_v.txt"),
        ),
    ];
    for (name, capture) in captures {
        let rules = rules(rule_sets[name]["stream"].clone());
        let pieces = super::replay::captured_bytes(&rules, capture);
        let chunks: Vec<_> = pieces
            .iter()
            .map(|(source, bytes)| (*source, bytes.as_bytes()))
            .collect();
        assert!(!events_of(&rules, &chunks).0.is_empty(), "{name}");
        for sizes in [&[1][..], &[2], &[3, 1, 7], &[64], &[4096]] {
            assert_same_however_cut(&rules, &chunks, sizes);
        }
    }
}

fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn a_quiet_unfinished_line_counts_after_a_tenth_of_a_second() {
    let rules = rules(json!({ "rules": [
        { "emit": "progress", "match": "(?P<p>\\d+)%", "percent": "{p}" },
        { "emit": "progress", "match": "%", "count": true },
        { "emit": "finding", "match": "bad (?P<x>.*)", "finding": { "id": "{x}" } } ] }));
    let mut observer = Observer::new(rules);
    assert_eq!(observer.next_tick(), None);
    assert_eq!(observer.feed(StreamName::Stdout, b"\r 10% bad th", at(5)), []);
    assert_eq!(observer.next_tick(), Some(at(105)));
    assert_eq!(observer.tick(at(104)), []);
    let events = serde_json::to_value(observer.tick(at(105))).unwrap();
    assert_eq!(
        events,
        json!([{ "event": "progress", "percent": 10.0 }]),
        "not the finding, not the count: the line goes on"
    );
    assert_eq!(observer.next_tick(), None);
    assert_eq!(observer.tick(at(300)), [], "nothing is said twice");
    let events = serde_json::to_value(observer.feed(StreamName::Stdout, b"ing\n", at(400))).unwrap();
    assert_eq!(
        events,
        json!([
            { "event": "progress", "percent": 10.0, "current": 1 },
            { "event": "finding", "severity": "info", "id": "thing", "title": "thing" },
        ])
    );
    assert_eq!(observer.finish(), []);
}

#[test]
fn a_quiet_json_value_counts_whole_and_once() {
    let rules = rules(
        json!({ "framing": "json-lines", "rules": [{ "emit": "finding", "finding": { "id": "{/a}" } }] }),
    );
    let mut observer = Observer::new(rules);
    assert_eq!(observer.feed(StreamName::Stdout, b"{\"a\":", at(0)), []);
    assert_eq!(observer.tick(at(100)), [], "half a value is nothing");
    assert_eq!(observer.feed(StreamName::Stdout, b"1}", at(110)), []);
    assert_eq!(observer.tick(at(210)).len(), 1);
    assert_eq!(
        observer
            .feed(StreamName::Stdout, b" \n{\"a\":1}\n", at(220))
            .len(),
        1,
        "only the second one is new"
    );
    assert_eq!(observer.finish(), []);
}

#[test]
fn findings_arrive_while_the_document_is_still_open() {
    let rules = rules(json!({ "framing": "xml", "rules": [
        { "emit": "finding", "element": "port", "where": { "state/@state": "open" },
          "finding": { "id": "{@id}", "location": "{../../address/@addr}:{@id}" } } ] }));
    let mut observer = Observer::new(rules);
    let open = br#"<run><host><address addr="::1"/><ports><port id="1"><state state="closed"/></port><port id="2"><state state="open"/>"#;
    assert_eq!(observer.feed(StreamName::Stdout, open, at(0)), []);
    let events = serde_json::to_value(observer.feed(StreamName::Stdout, b"</port>", at(1))).unwrap();
    assert_eq!(
        events,
        json!([{ "event": "finding", "severity": "info", "id": "2", "title": "2", "location": "::1:2" }])
    );
}

#[test]
fn plain_lines_between_json_lines_are_text() {
    let rules = rules(json!({ "framing": "json-lines", "rules": [
        { "emit": "finding", "where": { "/level": ["error", 3, true] }, "finding": { "id": "{/id}" } },
        { "emit": "finding", "on": "stdout", "match": "^test (?P<name>\\S+) \\.\\.\\. FAILED$", "finding": { "id": "{name}" } } ] }));
    let output = b"{\"level\":\"error\",\"id\":1}\ntest a ... FAILED\n{\"level\":3,\"id\":2}\n{broken\n{\"level\":true,\"id\":3}\n{\"level\":\"3 \",\"id\":4}\n";
    let (events, _) = events_of(
        &rules,
        &[
            (StreamName::Stdout, output),
            (StreamName::Stderr, b"test b ... FAILED\n"),
        ],
    );
    let ids: Vec<_> = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["id"].clone())
        .collect();
    assert_eq!(ids, ["1", "a", "2", "3"]);
}

#[test]
fn two_lines_can_make_one_finding() {
    let rules = rules(json!({ "rules": [
        { "emit": "finding", "match": "^error(?:\\[(?P<code>\\w+)\\])?: (?P<what>.+)$", "next": "^ *--> (?P<where>\\S+)$",
          "finding": { "id": { "from": "{code}", "default": "rustc" }, "title": "{what}", "location": "{where}" } } ] }));
    let output = b"error[E1]: one\n\n --> a.rs:1\nerror: no place\nerror: two\n  --> b.rs:2\n --> c.rs:3\n";
    let chunks: [(StreamName, &[u8]); 2] = [
        (StreamName::Stdout, output),
        (StreamName::Stderr, b" --> d.rs:4\n"),
    ];
    let (events, _) = events_of(&rules, &chunks);
    let found: Vec<_> = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap())
        .collect();
    assert_eq!(found.len(), 2);
    assert_eq!(
        (&found[0]["id"], &found[0]["location"]),
        (&json!("E1"), &json!("a.rs:1"))
    );
    assert_eq!(
        (&found[1]["title"], &found[1]["location"]),
        (&json!("two"), &json!("b.rs:2"))
    );
    assert_same_however_cut(&rules, &chunks, &[1]);
}

#[test]
fn a_document_with_more_findings_than_kept_only_counts_the_rest() {
    let rules = rules(
        json!({ "framing": "json-document", "limits": { "max_findings": 10 }, "rules": [
        { "emit": "finding", "each": "/v/*", "finding": { "id": "{/id}", "severity": "{/s}" } },
        { "emit": "progress", "each": "/v/*", "count": true } ] }),
    );
    let items = (0..1000).map(|number| format!("\"k{number}\":{{\"id\":{number},\"s\":\"high\"}}"));
    let document = format!("{{\"v\":{{{}}}}}", items.collect::<Vec<_>>().join(","));
    let mut observer = Observer::new(Arc::clone(&rules));
    let events = observer.feed(StreamName::Stdout, document.as_bytes(), START);
    assert_eq!(
        events.len(),
        12,
        "ten findings, one progress, one count of the rest"
    );
    let mut log = FindingLog::new(rules.max_findings());
    events.iter().for_each(|event| log.record(event));
    assert_eq!((log.kept().count(), log.counts().high), (10, 1000));
}

#[test]
fn a_line_of_100_megabytes_is_cut_and_the_next_one_is_read() {
    let rules = rules(
        json!({ "rules": [{ "emit": "finding", "match": "^x*(?P<end>end)?", "finding": { "id": "found {end}" } }] }),
    );
    let mut observer = Observer::new(rules);
    let chunk = vec![b'x'; 1 << 20];
    let early: Vec<_> = (0..100)
        .flat_map(|_| observer.feed(StreamName::Stdout, &chunk, START))
        .collect();
    assert!(
        matches!(early.as_slice(), [StreamEvent::Notice { .. }]),
        "{early:?}"
    );
    let events = serde_json::to_value(observer.feed(StreamName::Stdout, b"end\nend\n", START)).unwrap();
    assert_eq!(events[0]["id"], "found");
    assert_eq!(events[1]["id"], "found end");
}

/// The findings in `output`, and the note about the rest.
fn found_and_noticed(block: Value, output: &[&[u8]]) -> (Vec<String>, Vec<String>) {
    let mut observer = Observer::new(rules(block));
    let mut events: Vec<_> = output
        .iter()
        .flat_map(|chunk| observer.feed(StreamName::Stdout, chunk, START))
        .collect();
    events.extend(observer.finish());
    let (mut found, mut noticed) = (Vec::new(), Vec::new());
    for event in events {
        match event {
            StreamEvent::Finding(finding) => found.push(finding.id),
            StreamEvent::Notice { text } => noticed.push(text),
            StreamEvent::Progress(_) | StreamEvent::FindingsOmitted(_) => {}
        }
    }
    (found, noticed)
}

#[test]
fn what_could_not_be_read_is_said_once() {
    let limits = json!({ "max_frame_bytes": 30, "max_document_bytes": 30 });
    let finding = json!({ "id": "{/a}" });
    let json_lines = json!({ "limits": limits, "framing": "json-lines", "rules": [{ "emit": "finding", "finding": finding }] });
    let document = json!({ "limits": limits, "framing": "json-document", "rules": [{ "emit": "finding", "finding": finding }] });
    let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(40)).repeat(2) + "{\"a\":\"short\"}\n";
    for (block, limit) in [(json_lines, "max_frame_bytes"), (document, "max_document_bytes")] {
        let (found, noticed) = found_and_noticed(block, &[long.as_bytes()]);
        assert_eq!(found, ["short"]);
        assert_eq!(noticed.len(), 1, "{noticed:?}");
        assert!(
            noticed[0].contains("30 bytes") && noticed[0].contains(limit),
            "{noticed:?}"
        );
    }
}

#[test]
fn a_report_that_is_cut_off_gives_what_was_whole_in_it() {
    let each = |path: &str| {
        json!({ "framing": "json-document", "rules": [
            { "emit": "finding", "each": path, "finding": { "id": "{/ruleId}" } },
            { "emit": "finding", "where": { "/ruleId": "root" }, "finding": { "id": "root" } } ] })
    };
    let results =
        r#"{"ruleId":"a","locations":[{"x":[1]}]},{"ruleId":"b"},{"ruleId":"half","locations":[{"y":1},{"#;
    let sarif = format!(r#"{{"ruleId":"root","runs":[{{"tool":{{"driver":{{}}}},"results":[{results}"#);
    let map = r#"{"v":{"z":{"ruleId":"a"},"y":{"ruleId":"b"},"a":{"ruleId":"half","l":[{}],"m":"#;
    for (block, output) in [
        (json!({ "preset": "sarif" }), sarif.as_str()),
        (each("/runs/*/results"), &sarif),
        (each("/v/*"), map),
    ] {
        let (mut found, noticed) = found_and_noticed(block, &[output.as_bytes()]);
        found.sort_unstable();
        assert_eq!(found, ["a", "b"], "{output}");
        assert_eq!(noticed.len(), 1, "{noticed:?}");
        assert!(noticed[0].contains("ended before its end"), "{noticed:?}");
    }
    let whole = json!({ "ruleId": "root", "runs": [] }).to_string();
    assert_eq!(
        found_and_noticed(each("/runs"), &[whole.as_bytes()]),
        (vec!["root".to_owned()], Vec::new())
    );
}

#[test]
fn an_element_too_large_to_be_held_does_not_starve_what_is_in_it() {
    let block = json!({ "framing": "xml", "rules": [
        { "emit": "progress", "element": "suite", "phase": "{@name}" },
        { "emit": "finding", "element": "case", "where": { "fail": { "exists": true } }, "finding": { "id": "{@name}" } } ] });
    let padding = format!("<case name=\"fine\"><out>{}</out></case>", "x".repeat(64 << 10));
    let mut output = vec!["<suite name=\"s\">"];
    output.extend([padding.as_str()].repeat(200));
    output.push("<case name=\"late\"><fail/></case></suite>");
    let output: Vec<&[u8]> = output.into_iter().map(str::as_bytes).collect();
    let (found, noticed) = found_and_noticed(block, &output);
    assert_eq!(found, ["late"]);
    assert_eq!(noticed.len(), 1, "{noticed:?}");
}

#[test]
fn a_match_that_says_nothing_is_no_finding() {
    let block = json!({ "rules": [
        { "emit": "finding", "match": "^(?P<id>\\w*);(?P<title>\\w*)$",
          "finding": { "severity": "high", "id": "{id}", "title": "{title}" } } ] });
    let (found, _) = found_and_noticed(block, &[b";\na;\n;b\n"]);
    assert_eq!(found, ["a", "finding"]);
}

#[test]
fn an_item_knows_the_objects_around_it() {
    let eslint = json!([
        { "filePath": "a.js", "messages": [{ "ruleId": "semi", "line": 3 }, { "ruleId": "eqeqeq", "line": 4 }] },
        { "filePath": "b.js", "messages": [{ "ruleId": "semi", "line": 1 }] },
    ]);
    let (found, _) = found_and_noticed(
        json!({ "framing": "json-document", "rules": [{ "emit": "finding", "each": "/*/messages",
            "finding": { "id": "{/ruleId} {../filePath}:{/line}" } }] }),
        &[eslint.to_string().as_bytes()],
    );
    assert_eq!(found, ["semi a.js:3", "eqeqeq a.js:4", "semi b.js:1"]);

    let trivy = json!({ "Name": "image", "Meta": { "os": "x" }, "Results": [
        { "Target": "lib", "Kinds": { "k": { "list": [{ "id": "CVE-1" }] } } } ] });
    let (found, _) = found_and_noticed(
        json!({ "framing": "json-document", "rules": [{ "emit": "finding", "each": "/Results/*/Kinds/*/list",
            "where": { "../../../Target": "lib" },
            "finding": { "id": "{/id} {../../../Target} {../../../../Meta/os}{../../../../../Name}" } }] }),
        &[trivy.to_string().as_bytes()],
    );
    assert_eq!(found, ["CVE-1 lib x"]);
}

#[test]
fn a_block_of_lines_is_one_finding() {
    let rules = rules(json!({ "rules": [
        { "emit": "finding", "match": "^thread '(?P<test>.+)' panicked at (?P<place>\\S+):$", "until": "^note: (?P<note>.+)$",
          "finding": { "id": "{test}", "title": "{lines}", "description": "{note}", "location": "{place}" } },
        { "emit": "finding", "match": "^__ (?P<test>\\w+) __$", "until": "^(?P<place>\\S+:\\d+): \\w+$", "collect": "^E +(.+)$",
          "finding": { "id": "{test}", "title": "{lines}", "location": "{place}" } },
    ] }));
    let output = "thread 'a' panicked at src/a.rs:1:2:\nassertion failed\n  left: 1\n right: 2\nnote: run it\n\
                  __ first __\n  def first():\nE   assert 1 == 2\nt.py:3: AssertionError\n\
                  __ second __\nE   assert x\n__ third __\nE   assert y\n";
    let found: Vec<String> = events_of(&rules, &[(StreamName::Stdout, output.as_bytes())])
        .0
        .into_iter()
        .filter_map(|event| match event {
            StreamEvent::Finding(finding) => Some(format!(
                "{} | {} | {:?} | {:?}",
                finding.id, finding.title, finding.description, finding.location
            )),
            _ => None,
        })
        .collect();
    assert_eq!(
        found,
        [
            r#"a | assertion failed left: 1 right: 2 | Some("run it") | Some("src/a.rs:1:2")"#,
            r#"first | assert 1 == 2 | None | Some("t.py:3")"#,
            r#"second | assert x | None | None"#,
            r#"third | assert y | None | None"#,
        ]
    );
}

#[test]
fn a_run_gives_its_arguments_and_its_directory() {
    let rules = rules(
        json!({ "rules": [{ "emit": "finding", "match": "^(?P<place>\\S+) bad$",
        "finding": { "title": "{$target} is bad", "location": "{place}" } }] }),
    );
    let run = RunContext {
        arguments: [("target".to_owned(), "host".to_owned())].into(),
        directory: Some("/work/here".into()),
    };
    for (place, expected) in [
        ("/work/here/a.c:1", "a.c:1"),
        ("file:///work/here/a.c:1", "a.c:1"),
        ("./a.c:1", "a.c:1"),
        ("/work/hereafter/a.c", "/work/hereafter/a.c"),
        ("10.0.0.1:80", "10.0.0.1:80"),
    ] {
        let mut observer = Observer::for_run(Arc::clone(&rules), run.clone());
        let line = format!("{place} bad\n");
        let events = observer.feed(StreamName::Stdout, line.as_bytes(), Duration::ZERO);
        let [StreamEvent::Finding(finding)] = events.as_slice() else {
            panic!("{events:?}");
        };
        assert_eq!(finding.title, "host is bad");
        assert_eq!(finding.location.as_deref(), Some(expected));
    }
}

#[test]
fn what_is_worth_showing_is_what_no_rule_knows() {
    let block = json!({ "framing": "json-document", "rules": [
        { "emit": "finding", "each": "/bad", "finding": { "title": "{.}" } },
        { "emit": "summary", "where": { "/count": { "exists": true } }, "text": "{/count} found" },
        { "emit": "noise", "on": "stderr", "match": "^loading" },
    ] });
    let digest = |stdout: &str| {
        let mut observer = Observer::new(rules(block.clone()));
        observer.feed(StreamName::Stdout, stdout.as_bytes(), Duration::ZERO);
        observer.feed(
            StreamName::Stderr,
            b"loading rules\ncannot read x\n",
            Duration::ZERO,
        );
        observer.finish();
        observer.into_digest()
    };
    let read = digest(r#"{"bad": ["x"], "count": 1}"#);
    assert_eq!(read.summary().collect::<Vec<_>>(), ["1 found"]);
    assert_eq!(read.explanation(1000), "cannot read x");
    // No document, so what stands in its place is a message.
    assert_eq!(digest("usage: x\n").explanation(1000), "cannot read x\nusage: x");
}

/// Maven, for one, prints each error of the compiler twice.
#[test]
fn a_finding_at_a_place_is_told_once() {
    let rules = rules(json!({ "rules": [
        { "emit": "finding", "match": "^(?P<what>\\w+)(?: at (?P<place>\\S+))?$", "finding": { "title": "{what}", "location": "{place}" } },
    ] }));
    let output = b"bad at a.c:1\nbad at a.c:2\nbad at a.c:1\nbad\nbad\n";
    let (events, _) = events_of(&rules, &[(StreamName::Stdout, output)]);
    let places: Vec<_> = events
        .iter()
        .map(|event| match event {
            StreamEvent::Finding(finding) => finding.location.as_deref(),
            _ => panic!("{event:?}"),
        })
        .collect();
    assert_eq!(places, [Some("a.c:1"), Some("a.c:2"), None, None]);
}
