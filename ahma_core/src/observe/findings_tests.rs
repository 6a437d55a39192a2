use super::{Finding, FindingLog, Severity, SeverityCounts, StreamEvent};

fn finding(severity: Severity, id: &str) -> Finding {
    Finding {
        severity,
        id: id.to_owned(),
        kind: None,
        cve: None,
        cwe: None,
        title: id.to_owned(),
        description: None,
        remediation: None,
        location: None,
    }
}

#[test]
fn a_full_log_goes_on_counting() {
    let mut log = FindingLog::new(2);
    for (severity, id) in [(Severity::High, "a"), (Severity::Low, "b"), (Severity::High, "c")] {
        log.record(&StreamEvent::Finding(finding(severity, id)));
    }
    log.record(&StreamEvent::FindingsOmitted(SeverityCounts {
        critical: 5,
        ..SeverityCounts::default()
    }));
    assert_eq!(
        log.kept()
            .iter()
            .map(|finding| finding.id.as_str())
            .collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert_eq!(
        log.counts(),
        SeverityCounts {
            critical: 5,
            high: 2,
            low: 1,
            ..SeverityCounts::default()
        }
    );
    assert_eq!(log.omitted(), 6);
}

#[test]
fn pages_cover_the_log_once() {
    let mut log = FindingLog::new(10);
    (0..5).for_each(|number| log.push(finding(Severity::Info, &number.to_string())));
    let mut seen = Vec::new();
    let mut from = Some(0);
    while let Some(start) = from {
        let page = log.page(start, 2);
        assert_eq!((page.from, page.kept, page.total), (start, 5, 5));
        seen.extend(page.findings.iter().map(|finding| finding.id.clone()));
        from = page.next;
    }
    assert_eq!(seen, ["0", "1", "2", "3", "4"]);
    assert!(log.page(99, 2).findings.is_empty());
    assert_eq!(log.page(0, usize::MAX).findings.len(), 5);
}
