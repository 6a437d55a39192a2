use quick_xml::{Reader, events::Event};
use serde_json::json;

use super::{Invocation, junit, sarif};
use crate::observe::{Finding, FindingPage, SeverityCounts};

/// A page of all findings, and of so many that are not on it.
fn page(findings: Vec<Finding>, left_out: u64) -> FindingPage {
    let mut counts = SeverityCounts::default();
    findings.iter().for_each(|finding| counts.add(finding.severity));
    counts.info += left_out;
    FindingPage {
        from: 0,
        next: None,
        kept: findings.len(),
        counts,
        only_counted: SeverityCounts::default(),
        findings,
    }
}

/// A run that went well.
fn complete() -> Invocation {
    Invocation {
        command: "scan --all".to_owned(),
        directory: "/home/me/a project".to_owned(),
        started_at: Some("2026-01-02T03:04:05Z".to_owned()),
        ended_at: Some("2026-01-02T03:05:05Z".to_owned()),
        exit_code: Some(0),
        status: "completed".to_owned(),
        succeeded: true,
        ..Invocation::default()
    }
}

#[test]
fn a_run_that_was_cut_off_never_passes_for_a_clean_one() {
    let cut = Invocation {
        status: "timed_out".to_owned(),
        exit_code: None,
        signal: Some(15),
        succeeded: false,
        reason: Some("the timeout is 60 s".to_owned()),
        percent: Some(40.0),
        phase: Some("NSE".to_owned()),
        ..complete()
    };
    let log = sarif(&page(Vec::new(), 0), "t", &cut);
    insta::assert_json_snapshot!(log["runs"][0]["invocations"]);
    let report = junit(&page(Vec::new(), 0), "t", &cut);
    insta::assert_snapshot!(report);
}

fn findings() -> Vec<Finding> {
    serde_json::from_value(json!([
        { "severity": "critical", "id": "CVE-2026-1", "kind": "sast", "cve": "CVE-2026-1", "cwe": "CWE-79", "title": "<bad> & \"ugly\"",
          "description": "two\nlines\u{1b}[0m", "remediation": "fix it", "location": "src/a b.rs:3:9" },
        { "severity": "medium", "id": "rule", "title": "rule", "description": "rule", "location": "src/b.rs:12" },
        { "severity": "low", "id": "rule", "title": "again", "location": "tests/c.py" },
        { "severity": "info", "id": "tcp/80", "kind": "open-port", "title": "open port", "location": "80/tcp" },
        { "severity": "high", "id": "pyt/a.py::t", "title": "t", "location": "pyt/a.py::t" },
        { "severity": "high", "id": "ip", "title": "no place" },
        { "severity": "high", "id": "uri", "title": "u", "location": "https://a.example/a.c:4" },
    ]))
    .unwrap()
}

#[test]
fn sarif_log() {
    let log = sarif(&page(findings(), 0), "my tool", &complete());
    insta::assert_json_snapshot!(log);
    let empty = sarif(&page(Vec::new(), 3), "t", &complete());
    assert_eq!(empty["runs"][0]["results"], json!([]));
    assert_eq!(empty["runs"][0]["properties"], json!({ "findings_left_out": 3 }));
}

#[test]
fn a_sarif_log_that_is_read_back_says_the_same() {
    let mut read = Vec::new();
    let text = sarif(&page(findings(), 0), "my tool", &complete()).to_string();
    crate::observe::preset::read_sarif(&text, &mut |sighting| {
        if let crate::observe::rules::Sighting::Finding(finding) = sighting {
            read.push(finding);
        }
    });
    let mut expected = findings();
    for finding in &mut expected {
        // What a reader takes for granted, and what a log says only once.
        finding.kind.get_or_insert_with(|| "sast".to_owned());
        finding.description = finding.description.take().filter(|text| *text != finding.title);
    }
    assert_eq!(read, expected);
}

#[test]
fn only_a_place_in_a_file_has_a_line() {
    for (location, line) in [
        ("src/a.rs:3", Some(3)),
        ("a.rs:3:9", Some(3)),
        ("Makefile:7", Some(7)),
        ("C:\\src\\a.c:7", Some(7)),
        ("file:///a.c:4", Some(4)),
        ("10.0.0.1:80", None),
        ("localhost:8080", None),
        ("db.example.com:5432", None),
        ("http://localhost:8080", None),
        ("[FE80::1]:443", None),
        ("::1:443", None),
        ("00:1a:2b:3c:4d:05", None),
    ] {
        let finding = Finding {
            location: Some(location.to_owned()),
            ..findings().remove(0)
        };
        let log = sarif(&page(vec![finding], 0), "t", &complete());
        let place = &log["runs"][0]["results"][0]["locations"][0];
        assert_eq!(
            place["physicalLocation"]["region"]["startLine"].as_u64(),
            line,
            "{location}: {place}"
        );
        if line.is_none() {
            assert_eq!(place["logicalLocations"][0]["fullyQualifiedName"], location);
        }
    }
}

#[test]
fn junit_report() {
    let report = junit(&page(findings(), 0), "my & tool", &complete());
    insta::assert_snapshot!(report);
    let mut reader = Reader::from_str(&report);
    let mut cases = 0;
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) if start.name().as_ref() == "testcase" => cases += 1,
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(cases, findings().len());
    let partial = junit(&page(findings(), 3), "t", &complete());
    assert!(
        partial.contains(r#"<property name="findings_left_out" value="3"/>"#),
        "{partial}"
    );
}
