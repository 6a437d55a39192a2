use super::{Finding, FindingBudget, FindingLog, Severity, SeverityCounts, StreamEvent};

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

fn log_of(max_kept: usize, found: &[(Severity, &str)]) -> FindingLog {
    let mut log = FindingLog::new(max_kept);
    for (severity, id) in found {
        log.record(&StreamEvent::Finding(finding(*severity, id)));
    }
    log
}

fn ids<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<&'a str> {
    findings.into_iter().map(|finding| finding.id.as_str()).collect()
}

fn first(findings: usize) -> FindingBudget {
    FindingBudget {
        findings,
        ..FindingBudget::ALL
    }
}

#[test]
fn a_full_log_keeps_the_most_severe_and_counts_the_others() {
    use Severity::{Critical, High, Info, Low};
    let few: &[_] = &[(Low, "a"), (High, "b")];
    let equals: &[_] = &[(Low, "a"), (Low, "b"), (Low, "c")];
    let late: &[_] = &[(Info, "a"), (Info, "b"), (Info, "c"), (Critical, "d")];
    let many: &[_] = &[(Info, "a"), (Low, "b"), (High, "c"), (High, "d"), (High, "e")];
    for (found, kept, only_counted) in [
        (few, ["b", "a"], ""),
        (equals, ["a", "b"], "1 low"),
        (late, ["d", "a"], "2 info"),
        (many, ["c", "d"], "1 high, 1 low, 1 info"),
    ] {
        let log = log_of(2, found);
        assert_eq!(ids(log.kept()), kept);
        assert_eq!(log.only_counted().in_words(), only_counted);
        assert_eq!(log.counts().total(), found.len() as u64);
    }
}

#[test]
fn findings_that_were_never_seen_still_count() {
    let mut log = log_of(2, &[(Severity::High, "a")]);
    log.record(&StreamEvent::FindingsOmitted(SeverityCounts {
        critical: 5,
        ..SeverityCounts::default()
    }));
    assert_eq!(log.counts().in_words(), "5 critical, 1 high");
    assert_eq!(log.only_counted().in_words(), "5 critical");
}

#[test]
fn pages_cover_the_log_once_whatever_bounds_them() {
    let mut log = FindingLog::new(10);
    (0..5).for_each(|number| log.push(finding(Severity::Info, &number.to_string())));
    let bytes = |bytes| FindingBudget {
        bytes,
        ..FindingBudget::ALL
    };
    // A budget that not even one fits into still gets on.
    for (budget, pages) in [
        (first(2), 3),
        (bytes(100), 3),
        (bytes(1), 5),
        (FindingBudget::ALL, 1),
    ] {
        let mut seen = Vec::new();
        let mut count = 0;
        let mut from = Some(0);
        while let Some(start) = from {
            let page = log.page(start, budget);
            assert_eq!((page.from, page.kept, page.counts.info), (start, 5, 5));
            seen.extend(page.findings.iter().map(|finding| finding.id.clone()));
            from = page.next;
            count += 1;
        }
        assert_eq!(seen, ["0", "1", "2", "3", "4"]);
        assert_eq!(count, pages, "{budget:?}");
    }
    assert!(log.page(99, first(2)).findings.is_empty());
}

#[test]
fn news_come_in_the_order_they_were_found_and_go_on_when_some_are_driven_out() {
    use Severity::{Critical, Info, Low};
    let mut log = log_of(3, &[(Low, "a"), (Critical, "b"), (Info, "c")]);
    let news = log.since(0, first(2));
    assert_eq!((ids(&news.findings), news.next), (vec!["a", "b"], 2));
    log.push(finding(Low, "d"));
    log.push(finding(Info, "e"));
    let news = log.since(news.next, FindingBudget::ALL);
    assert_eq!((ids(&news.findings), news.next), (vec!["d"], log.next_number()));
    assert!(log.since(news.next, FindingBudget::ALL).findings.is_empty());
}

#[test]
fn a_shortened_log_keeps_the_worst_and_still_counts_all() {
    use Severity::{Critical, Info, Low};
    let found = [(Info, "a"), (Low, "b"), (Critical, "c"), (Low, "d"), (Info, "e")];
    let mut log = log_of(10, &found);
    let one = log.bytes_beyond(first(4));
    assert!(one > 0);
    assert_eq!(log.bytes_beyond(first(2)), 3 * one);
    assert_eq!(log.bytes_beyond(first(5)), 0);

    assert_eq!(log.shorten(first(5)), 0);
    assert_eq!(log.shorten(first(2)), 3);
    assert_eq!(ids(log.kept()), ["c", "b"]);
    assert_eq!(log.counts().total(), 5);
    let only_counted = SeverityCounts {
        low: 1,
        info: 2,
        ..SeverityCounts::default()
    };
    assert_eq!(log.only_counted(), only_counted);
    assert_eq!(ids(&log.since(0, FindingBudget::ALL).findings), ["b", "c"]);
}
