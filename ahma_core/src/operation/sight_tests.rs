use super::*;
use crate::observe::Finding;

fn progress(percent: f64) -> StreamEvent {
    StreamEvent::Progress(Progress {
        percent: Some(percent),
        ..Progress::default()
    })
}

fn percents(sight: &mut Sight, given: &[f64]) -> Vec<f64> {
    given
        .iter()
        .map(|&percent| {
            sight.take(progress(percent));
            sight.progress.percent.unwrap()
        })
        .collect()
}

#[test]
fn percent_only_rises() {
    assert_eq!(
        percents(&mut Sight::new(2), &[10.0, 5.0, 60.0, 250.0, 1.0]),
        [10.0, 10.0, 60.0, 100.0, 100.0]
    );
}

#[test]
fn percent_of_a_sequence_counts_steps() {
    let mut sight = Sight::new(2);
    let step = |number| StepPosition {
        number,
        of: 4,
        label: "step".into(),
    };
    sight.enter_step(step(1));
    assert_eq!(percents(&mut sight, &[50.0, 100.0]), [12.5, 25.0]);
    sight.enter_step(step(3));
    assert_eq!(sight.progress.percent, Some(50.0));
    assert_eq!(percents(&mut sight, &[10.0, 100.0]), [52.5, 75.0]);
}

#[test]
fn a_report_without_percent_keeps_the_last_one() {
    let mut sight = Sight::new(2);
    sight.take(progress(40.0));
    let phase = Progress {
        phase: Some("linking".into()),
        ..Progress::default()
    };
    sight.take(StreamEvent::Progress(phase));
    assert_eq!(
        (sight.progress.percent, sight.progress.phase.as_deref()),
        (Some(40.0), Some("linking"))
    );
}

#[test]
fn findings_are_bounded_and_their_counts_are_not() {
    let mut sight = Sight::new(2);
    for number in 0..5 {
        let finding = Finding {
            severity: crate::observe::Severity::High,
            id: format!("F{number}"),
            kind: None,
            cve: None,
            cwe: None,
            title: "title".into(),
            description: None,
            remediation: None,
            location: None,
        };
        sight.take(StreamEvent::Finding(finding));
    }
    assert_eq!(sight.counts().high, 5);
    let page = sight.findings().page(1, FindingBudget::ALL);
    assert_eq!(
        (
            page.from,
            page.findings[0].id.as_str(),
            page.next,
            page.kept,
            page.counts.total()
        ),
        (1, "F1", None, 2, 5)
    );
}
