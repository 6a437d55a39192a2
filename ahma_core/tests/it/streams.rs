//! Real captures of real tools, read by real rule sets.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::PathBuf, sync::Arc};

use ahma_core::observe::{self, FindingLog, StreamRules, stream_block::StreamBlock};
use serde::Deserialize;
use serde_json::Value;
use test_support::pack_file;

#[derive(Deserialize)]
struct RuleSet {
    sample: String,
    stream: StreamBlock,
}

pub(crate) fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/streams")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rule_sets() -> BTreeMap<String, RuleSet> {
    serde_json::from_str(&fixture("rule_sets.json")).unwrap()
}

pub(crate) fn block(stream: Value) -> StreamBlock {
    serde_json::from_value(stream).unwrap()
}

pub(crate) fn compile(block: &StreamBlock) -> Arc<StreamRules> {
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
fn a_made_up_format_needs_nothing_but_its_rules() {
    let rules = compile(&serde_json::from_str(&fixture("made_up_rules.json")).unwrap());
    let recording = fixture("made_up.txt");
    insta::assert_snapshot!("made_up", events_by_line(&rules, &recording));

    let mut log = FindingLog::new(rules.max_findings());
    observe::replay(&rules, &recording)
        .iter()
        .flat_map(|line| &line.events)
        .for_each(|event| log.record(event));
    assert_eq!(log.kept().count(), 2);
    assert_eq!(log.only_counted().total(), 1);
    assert_eq!(serde_json::to_value(log.counts()).unwrap()["critical"], 2);
}

/// The `stream` block of a shipped tool file, by the path of subcommands to it.
pub(crate) fn shipped(file: &str, subcommands: &[&str]) -> Value {
    let document: Value = serde_json::from_str(&fs::read_to_string(pack_file(file)).unwrap()).unwrap();
    let level = subcommands.iter().fold(&document, |level, name| {
        let children = level["subcommand"].as_array().unwrap();
        children.iter().find(|child| child["name"] == *name).unwrap()
    });
    level["stream"].clone()
}

/// Shipped tool files, where in them the rules are, and a capture of their tool.
pub(crate) const SHIPPED: [(&str, &[&str], &str); 19] = [
    ("cargo.json", &["build"], "cargo_build_text.txt"),
    ("cargo.json", &["build"], "cargo_progress_forced.txt"),
    ("cargo.json", &["clippy"], "cargo_clippy_text.txt"),
    ("cargo.json", &["test"], "cargo_test.txt"),
    ("cargo.json", &["nextest", "run"], "cargo_nextest.txt"),
    ("curl_download.json", &[], "curl_bar.txt"),
    ("git.json", &["clone"], "git_clone.txt"),
    ("git.json", &["pull"], "git_pull.txt"),
    ("nmap.json", &[], "nmap_progress.txt"),
    ("nmap.json", &[], "nmap_service.txt"),
    ("nmap_xml.json", &[], "nmap_progress_oX.txt"),
    ("npm.json", &["install"], "npm_install.txt"),
    ("npm.json", &["audit", "default"], "npm_audit.json"),
    ("pip.json", &["install"], "pip_install.txt"),
    ("pytest.json", &[], "pytest_plain.txt"),
    ("pytest.json", &[], "pytest_v.txt"),
    ("rg.json", &[], "ripgrep_json.txt"),
    ("sarif_report.json", &[], "semgrep_sarif.txt"),
    ("semgrep.json", &[], "semgrep_json.txt"),
];

#[test]
fn shipped_tool_files_read_their_tools() {
    for (file, subcommands, sample) in SHIPPED {
        let rules = compile(&block(shipped(file, subcommands)));
        let name = format!(
            "shipped_{}_{}",
            file.trim_end_matches(".json"),
            sample.split('.').next().unwrap()
        );
        insta::assert_snapshot!(name, events_by_line(&rules, &fixture(sample)));
    }
}
