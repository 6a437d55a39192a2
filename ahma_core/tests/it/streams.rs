//! Real captures of real tools, read by real rule sets.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::PathBuf, sync::Arc};

use ahma_core::{
    mtdf::stream::StreamBlock,
    observe::{self, FindingLog, StdioNeed, StreamRules},
};
use serde::Deserialize;

#[derive(Deserialize)]
struct RuleSet {
    sample: String,
    stream: StreamBlock,
}

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/streams")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rule_sets() -> BTreeMap<String, RuleSet> {
    serde_json::from_str(&fixture("rule_sets.json")).unwrap()
}

fn compile(block: &StreamBlock) -> Arc<StreamRules> {
    Arc::new(observe::compile(block).unwrap_or_else(|problems| panic!("{problems:#?}")))
}

/// Every line that gave events, with them.
fn events_by_line(rules: &Arc<StreamRules>, recording: &str) -> String {
    let mut shown = String::new();
    for line in observe::replay(rules, recording) {
        for event in line.events {
            writeln!(
                shown,
                "{:>3} {}",
                line.line_no,
                serde_json::to_string(&event).unwrap()
            )
            .unwrap();
        }
    }
    shown
}

#[test]
fn every_capture_gives_its_events() {
    for (name, set) in rule_sets() {
        let rules = compile(&set.stream);
        insta::assert_snapshot!(name, events_by_line(&rules, &fixture(&set.sample)));
    }
}

#[test]
fn captures_of_one_program_on_pipes_and_terminals_give_the_same_ticks() {
    let block = serde_json::from_str(
        r#"{ "rules": [{ "emit": "progress", "match": "^tick (?P<n>\\d)$", "current": "{n}", "total": "2" }] }"#,
    );
    let rules = compile(&block.unwrap());
    let recording = fixture("buffering_pipes_vs_pty.txt");
    let runs: Vec<&str> = recording.split("# cmd:").skip(1).collect();
    assert_eq!(runs.len(), 6);
    for run in runs {
        let events = observe::replay(&rules, &format!("# cmd:{run}"))
            .into_iter()
            .flat_map(|line| line.events);
        let percents: Vec<_> = events
            .map(|event| serde_json::to_value(event).unwrap()["percent"].as_f64())
            .collect();
        assert_eq!(percents, [Some(0.0), Some(50.0), Some(100.0)], "{run}");
    }
}

#[test]
fn streams_are_kept_apart_only_where_rules_need_it() {
    for (name, set) in rule_sets() {
        let expected = match name.as_str() {
            "nmap_text" | "pytest" => StdioNeed::Merged,
            _ => StdioNeed::Separate,
        };
        assert_eq!(compile(&set.stream).stdio(), expected, "{name}");
    }
}

#[test]
fn a_made_up_format_needs_nothing_but_its_rules() {
    let rules = compile(&serde_json::from_str(&fixture("made_up_rules.json")).unwrap());
    let recording = fixture("made_up.txt");
    insta::assert_snapshot!("made_up", events_by_line(&rules, &recording));

    let mut log = FindingLog::new(rules.max_findings());
    observe::replay(&rules, &recording)
        .iter()
        .flat_map(|line| &line.events)
        .for_each(|event| log.record(event));
    assert_eq!(log.kept().len(), 2);
    assert_eq!(log.omitted(), 1);
    assert_eq!(serde_json::to_value(log.counts()).unwrap()["critical"], 2);
}
