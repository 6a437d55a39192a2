use super::*;
use crate::observe::Finding;

fn at_percent(percent: f64) -> StreamEvent {
    StreamEvent::Progress(Progress {
        percent: Some(percent),
        ..Progress::default()
    })
}

fn percents(progress: &mut ProgressState, given: &[f64]) -> Vec<f64> {
    given
        .iter()
        .map(|&percent| {
            progress.take(at_percent(percent));
            progress.progress.percent.unwrap()
        })
        .collect()
}

#[test]
fn percent_only_rises() {
    assert_eq!(
        percents(&mut ProgressState::new(2), &[10.0, 5.0, 60.0, 250.0, 1.0]),
        [10.0, 10.0, 60.0, 100.0, 100.0]
    );
}

#[test]
fn percent_of_a_sequence_counts_steps() {
    let mut progress = ProgressState::new(2);
    let step = |number| StepPosition {
        number,
        of: 4,
        label: "step".into(),
    };
    progress.enter_step(step(1));
    assert_eq!(percents(&mut progress, &[50.0, 100.0]), [12.5, 25.0]);
    progress.enter_step(step(3));
    assert_eq!(progress.progress.percent, Some(50.0));
    assert_eq!(percents(&mut progress, &[10.0, 100.0]), [52.5, 75.0]);
}

#[test]
fn a_report_without_percent_keeps_the_last_one() {
    let mut progress = ProgressState::new(2);
    progress.take(at_percent(40.0));
    let phase = Progress {
        phase: Some("linking".into()),
        ..Progress::default()
    };
    progress.take(StreamEvent::Progress(phase));
    assert_eq!(
        (progress.progress.percent, progress.progress.phase.as_deref()),
        (Some(40.0), Some("linking"))
    );
}

#[test]
fn findings_are_bounded_and_their_counts_are_not() {
    let mut progress = ProgressState::new(2);
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
        progress.take(StreamEvent::Finding(finding));
    }
    assert_eq!(progress.counts().high, 5);
    let page = progress.findings().page(1, FindingBudget::ALL);
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
