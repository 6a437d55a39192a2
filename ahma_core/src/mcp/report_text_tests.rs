use std::time::Duration;

use super::*;
use crate::{
    jail::ExitStatus,
    observe::{Finding, Progress, Severity, SeverityCounts},
    operation::{Background, EndState, Excerpt, OperationId, Outcome, StepReport, StepState},
};

fn outcome(state: EndState, reason: Option<&str>, output: &str) -> Outcome {
    Outcome {
        id: OperationId::recalled("op_x"),
        tool: "git_push".into(),
        command: "git push".into(),
        directory: "/s".into(),
        state,
        exit: Some(ExitStatus::Code(0)),
        reason: reason.map(str::to_owned),
        hint: None,
        duration: Duration::from_millis(1004),
        cpu: None,
        peak_memory_bytes: None,
        output: Excerpt {
            text: output.to_owned(),
            ..Excerpt::default()
        },
        show: Show::Output,
        lost: None,
        reached: Progress::default(),
        findings: Vec::new(),
        finding_counts: SeverityCounts::default(),
        findings_only_counted: SeverityCounts::default(),
        steps: Vec::new(),
        background: Background::Clear,
        notices: Vec::new(),
        sandbox_hint: None,
    }
}

#[test]
fn a_headline_says_everything_once() {
    for (state, reason, expected) in [
        (EndState::Completed, None, "completed after 1 s"),
        (
            EndState::Failed,
            Some("exit code 7"),
            "failed after 1 s: exit code 7",
        ),
        (
            EndState::Cancelled,
            Some("on request"),
            "cancelled after 1 s: on request",
        ),
        (
            EndState::TimedOut,
            Some("the timeout is 1 s"),
            "timed out after 1 s: the timeout is 1 s",
        ),
    ] {
        let report = OperationReport::ended(&outcome(state, reason, ""));
        assert_eq!(report.headline(), format!("op_x (git_push) {expected}"));
    }
    for (status, seconds, expected) in [
        (OperationStatus::Running, 0.0123, "running for 0.012 s"),
        (OperationStatus::Running, 75.4, "running for 75 s"),
        (OperationStatus::Queued, 0.0, "queued"),
    ] {
        let mut report = OperationReport::ended(&outcome(EndState::Completed, None, ""));
        (report.status, report.duration_seconds) = (status, Some(seconds));
        assert!(report.headline().ends_with(expected), "{}", report.headline());
    }
    let mut report = OperationReport::ended(&outcome(EndState::Completed, None, ""));
    report.status = OperationStatus::Running;
    (report.percent, report.phase, report.eta_seconds) = (Some(40.4), Some("linking".into()), Some(75.4));
    assert_eq!(
        report.headline(),
        "op_x (git_push) running for 1 s, 40% (linking), 75 s left"
    );
}

#[test]
fn an_answer_that_comes_later_says_as_much_as_the_call_itself() {
    let mut whole = outcome(EndState::Completed, None, "out\n");
    whole.background = Background::Stopped;
    whole.notices = vec!["a hook was put back".into()];
    whole.sandbox_hint = Some("this may be the sandbox".into());
    whole.hint = Some("run the tests".into());
    let step = |label: &str, state, exit| StepReport {
        label: label.into(),
        description: Some("build it".into()),
        state,
        exit,
        duration: Duration::ZERO,
        first_line: None,
        lines: 0,
    };
    whole.steps = vec![
        step("one", StepState::Skipped("nothing to do".into()), None),
        step(
            "two",
            StepState::Ended(EndState::Completed),
            Some(ExitStatus::Code(1)),
        ),
        step(
            "three",
            StepState::Ended(EndState::Completed),
            Some(ExitStatus::Code(0)),
        ),
    ];
    let report = OperationReport::ended(&whole);
    let body = "step one (build it): skipped: nothing to do\nstep two (build it): completed, exit 1\n\
                step three (build it): completed\nout\n\n[processes left in the background were stopped; \
                to keep one running, start it without & in a call of its own with keep_running]\n\
                notice: a hook was put back\nhint: this may be the sandbox\nhint: run the tests";
    assert_eq!(report.text(), body);
    assert_eq!(report.told(), format!("completed after 1 s · op_x\n{body}"));
    assert_eq!(report.steps[0].description.as_deref(), Some("build it"));
    assert_eq!(
        OperationReport::ended(&outcome(EndState::Completed, None, "")).text(),
        "(no output)"
    );
}

fn finding(severity: Severity, title: &str) -> Finding {
    Finding {
        severity,
        id: "id".to_owned(),
        kind: None,
        cve: None,
        cwe: None,
        title: title.to_owned(),
        description: None,
        remediation: None,
        location: Some("a.c:1".to_owned()),
    }
}

#[test]
fn findings_are_counted_the_worst_named_and_the_others_easy_to_find() {
    let counts = |high, info| SeverityCounts {
        high,
        info,
        ..SeverityCounts::default()
    };
    let how = |more: u64, from: &str| {
        format!(r#"{more} more: output {{"operation_id": "op_x", "what": "findings"{from}}}"#)
    };
    let second = r#", "from_finding": 1"#;
    let (high, info) = (
        finding(Severity::High, "leak"),
        finding(Severity::Info, "by the way"),
    );
    let table = [
        (vec![], counts(0, 0), counts(0, 0), String::new()),
        (
            vec![high.clone()],
            counts(1, 0),
            counts(0, 0),
            "findings: 1 high\n- high id: leak (a.c:1)".to_owned(),
        ),
        (
            vec![info.clone()],
            counts(0, 1),
            counts(0, 0),
            format!("findings: 1 info\n{}", how(1, "")),
        ),
        (
            vec![high, info],
            counts(1, 9),
            counts(0, 7),
            format!(
                "findings: 1 high, 9 info (only counted: 7 info)\n- high id: leak (a.c:1)\n{}",
                how(9, second)
            ),
        ),
        (
            vec![finding(Severity::High, "leak"); 4],
            counts(4, 0),
            counts(0, 0),
            format!(
                "findings: 4 high\n{}{}",
                "- high id: leak (a.c:1)\n".repeat(3),
                how(1, r#", "from_finding": 3"#)
            ),
        ),
    ];
    for (findings, finding_counts, findings_only_counted, text) in table {
        let report = OperationReport::ended(&Outcome {
            findings,
            finding_counts,
            findings_only_counted,
            ..outcome(EndState::Failed, None, "")
        });
        assert_eq!(
            report.told().trim_end(),
            format!("exit 0 after 1 s · op_x\n{text}").trim_end()
        );
    }
}

#[test]
fn findings_that_stand_for_the_output_come_first_and_fit() {
    let many = Outcome {
        show: Show::Findings,
        findings: vec![finding(Severity::High, &"long ".repeat(30)); 30],
        finding_counts: SeverityCounts {
            high: 30,
            ..SeverityCounts::default()
        },
        ..outcome(EndState::Failed, None, "why it failed")
    };
    let text = OperationReport::ended(&many).text();
    assert!(text.len() <= 2048, "{}", text.len());
    let shown = text.matches("- high id: long").count();
    let more = format!(
        r#"{} more: output {{"operation_id": "op_x", "what": "findings", "from_finding": {shown}}}"#,
        30 - shown
    );
    assert!(text.ends_with(&format!("{more}\nwhy it failed")), "{text}");

    let summary = Outcome {
        show: Show::Summary,
        ..many.clone()
    };
    let done = Outcome {
        state: EndState::Completed,
        ..summary
    };
    let expected = "findings: 30 high\n30 more: output {\"operation_id\": \"op_x\", \"what\": \"findings\"}\nwhy it failed";
    assert_eq!(OperationReport::ended(&done).text(), expected);
    let silent = Outcome {
        findings: Vec::new(),
        finding_counts: SeverityCounts::default(),
        output: Excerpt {
            total_lines: 7,
            ..Excerpt::default()
        },
        ..done
    };
    assert_eq!(
        OperationReport::ended(&silent).text(),
        "completed after 1 s · op_x"
    );
}

#[test]
fn what_was_cut_says_how_far_it_got() {
    let cut = Outcome {
        reached: Progress {
            percent: Some(45.0),
            phase: Some("service scan".into()),
            ..Progress::default()
        },
        findings: vec![finding(Severity::High, "leak")],
        finding_counts: SeverityCounts {
            high: 1,
            ..SeverityCounts::default()
        },
        ..outcome(EndState::TimedOut, Some("the timeout is 1 s"), "")
    };
    assert_eq!(
        OperationReport::ended(&cut).text(),
        "timed out after 1 s, 45% (service scan) · op_x\nfindings until then: 1 high\n- high id: leak (a.c:1)"
    );
}

#[test]
fn a_report_that_is_shortened_says_how_many_findings_it_lost() {
    let whole = Outcome {
        findings: vec![finding(Severity::High, &"long ".repeat(100)); 20],
        finding_counts: SeverityCounts {
            high: 30,
            ..SeverityCounts::default()
        },
        ..outcome(EndState::Completed, None, "")
    };
    let mut report = OperationReport::ended(&whole);
    assert_eq!(report.findings_left_out, 10);
    report.shorten(&OutputLog::new(whole.id, 4096), 4096);
    assert!(
        report.findings.len() < 20 && report.size() < 4096,
        "{}",
        report.size()
    );
    assert_eq!(report.findings.len() as u64 + report.findings_left_out, 30);
}

#[test]
fn a_row_says_what_runs_and_what_it_printed_last() {
    let mut report = OperationReport::ended(&outcome(EndState::Completed, None, ""));
    report.newest_line = Some("Compiling".into());
    assert_eq!(report.row_text(), "op_x (git_push: git push) completed after 1 s");
    report.status = OperationStatus::Running;
    assert_eq!(
        report.row_text(),
        "op_x (git_push: git push) running for 1 s\n  newest line: Compiling"
    );
    report.status = OperationStatus::Queued;
    report.newest_line = None;
    (report.queue_position, report.reason) = (Some(2), Some("all 4 slots are busy".into()));
    assert_eq!(
        report.row_text(),
        "op_x (git_push: git push) queued: all 4 slots are busy, number 2 in the queue"
    );
}

#[test]
fn the_first_line_says_what_happened_and_to_which_operation() {
    let line = |state, exit, reason: Option<&str>| {
        let ended = Outcome {
            exit,
            duration: Duration::from_secs(11),
            ..outcome(state, reason, "")
        };
        OperationReport::ended(&ended).first_line()
    };
    for (state, exit, reason, expected) in [
        (
            EndState::Failed,
            Some(ExitStatus::Code(101)),
            Some("exit code 101"),
            "exit 101 after 11 s",
        ),
        (
            EndState::Failed,
            Some(ExitStatus::Signal(9)),
            Some("killed by signal 9 (SIGKILL)"),
            "killed by signal 9 (SIGKILL) after 11 s",
        ),
        (
            EndState::Failed,
            None,
            Some("could not be started: gone"),
            "failed after 11 s: could not be started: gone",
        ),
        (
            EndState::Cancelled,
            None,
            Some("on request"),
            "cancelled after 11 s: on request",
        ),
        (
            EndState::TimedOut,
            None,
            Some("the timeout is 11 s"),
            "timed out after 11 s",
        ),
        (EndState::Completed, None, None, "completed after 11 s"),
    ] {
        assert_eq!(line(state, exit, reason), format!("{expected} · op_x"));
    }
    let mut report = OperationReport::ended(&outcome(EndState::Completed, None, ""));
    (report.status, report.percent) = (OperationStatus::Running, Some(40.0));
    assert_eq!(report.first_line(), "still running after 1 s, 40% · op_x");
}
