use quick_xml::{Reader, events::Event};
use serde_json::json;

use super::{junit, sarif};
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

fn findings() -> Vec<Finding> {
    serde_json::from_value(json!([
        { "severity": "critical", "id": "CVE-2026-1", "kind": "sast", "cve": "CVE-2026-1", "cwe": "CWE-79", "title": "<bad> & \"ugly\"",
          "description": "two\nlines\u{1b}[0m", "remediation": "fix it", "location": "src/a b.rs:3:9" },
        { "severity": "medium", "id": "rule", "title": "rule", "description": "rule", "location": "src/b.rs:12" },
        { "severity": "low", "id": "rule", "title": "again", "location": "tests/c.py" },
        { "severity": "info", "id": "tcp/80", "kind": "open-port", "title": "open port", "location": "80/tcp" },
        { "severity": "high", "id": "pyt/a.py::t", "title": "t", "location": "pyt/a.py::t" },
        { "severity": "high", "id": "ip", "title": "no place" },
        { "severity": "high", "id": "uri", "title": "u", "location": "file:///a.c:4" },
    ]))
    .unwrap()
}

#[test]
fn sarif_log() {
    let log = sarif(&page(findings(), 0), "my tool");
    insta::assert_json_snapshot!(log);
    let empty = sarif(&page(Vec::new(), 3), "t");
    assert_eq!(empty["runs"][0]["results"], json!([]));
    assert_eq!(empty["runs"][0]["properties"], json!({ "findings_left_out": 3 }));
}

#[test]
fn a_sarif_log_can_be_read_back() {
    let mut ids = Vec::new();
    let text = sarif(&page(findings(), 0), "my tool").to_string();
    crate::observe::preset::read_sarif(&text, &mut |sighting| {
        if let crate::observe::rules::Sighting::Finding(finding) = sighting {
            ids.push((finding.id, finding.location));
        }
    });
    assert_eq!(ids.len(), findings().len());
    assert_eq!(
        ids[0],
        ("CVE-2026-1".to_owned(), Some("src/a%20b.rs:3:9".to_owned()))
    );
    assert_eq!(ids[3].1.as_deref(), Some("80/tcp"));
}

#[test]
fn junit_report() {
    let report = junit(&page(findings(), 0), "my & tool");
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
    let partial = junit(&page(findings(), 3), "t");
    assert!(
        partial.contains(r#"<property name="findings_left_out" value="3"/>"#),
        "{partial}"
    );
}
