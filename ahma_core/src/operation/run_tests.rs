use std::time::Duration;

use crate::jail::{ExitStatus, ProcessEvent};

use super::*;

fn exit(code: i32) -> ExitReport {
    ExitReport {
        status: ExitStatus::Code(code),
        cpu: Duration::from_millis(1),
        peak_memory_bytes: 2,
    }
}

fn exited(code: i32) -> RunEvent {
    RunEvent::Process(ProcessEvent::Exited(exit(code)))
}

const GONE: RunEvent = RunEvent::Process(ProcessEvent::Gone);

fn lost() -> RunEvent {
    RunEvent::Process(ProcessEvent::Lost {
        reason: "killed".into(),
    })
}

fn cancel() -> RunEvent {
    RunEvent::StopAsked(StopReason::Cancelled(None))
}

fn timeout() -> RunEvent {
    RunEvent::StopAsked(StopReason::TimedOut(Duration::from_secs(9)))
}

/// Feeds events until the run ends; gives the effects on the way and the end.
fn play(events: Vec<RunEvent>) -> (Vec<RunEffect>, Option<RunEnd>) {
    let mut run = Run::Active;
    let mut effects = Vec::new();
    for event in events {
        let (next, effect) = run.on(event);
        run = next;
        if let RunEffect::End(end) = effect {
            assert_eq!(run, Run::Over);
            return (effects, Some(end));
        }
        effects.push(effect);
    }
    (effects, None)
}

#[test]
fn every_way_to_end() {
    use RunEffect::{StartLinger, StopBackground, StopProcess, Wait};
    let clear = |code| RunEnd::Exited {
        exit: exit(code),
        background: Background::Clear,
    };
    let swept = |code| RunEnd::Exited {
        exit: exit(code),
        background: Background::Stopped,
    };
    let cancelled = |exit| RunEnd::Stopped {
        why: StopReason::Cancelled(None),
        exit,
    };
    let timed_out = |exit| RunEnd::Stopped {
        why: StopReason::TimedOut(Duration::from_secs(9)),
        exit,
    };

    let lost_end = |exit| RunEnd::Lost {
        reason: "killed".into(),
        exit,
    };
    let unreported = RunEnd::Lost {
        reason: "its supervisor sent no report".into(),
        exit: None,
    };

    let table = [
        (
            "exits, nothing left",
            vec![exited(0), GONE],
            vec![StartLinger],
            clear(0),
        ),
        (
            "exits with a code",
            vec![exited(7), GONE],
            vec![StartLinger],
            clear(7),
        ),
        (
            "background outlives the linger time",
            vec![exited(0), RunEvent::LingerOver, GONE],
            vec![StartLinger, StopBackground],
            swept(0),
        ),
        (
            "cancel only cuts the lingering short",
            vec![exited(3), cancel(), GONE],
            vec![StartLinger, StopBackground],
            swept(3),
        ),
        (
            "cancel",
            vec![cancel(), exited(143), GONE],
            vec![StopProcess, Wait],
            cancelled(Some(exit(143))),
        ),
        (
            "cancel without a report",
            vec![cancel(), GONE],
            vec![StopProcess],
            cancelled(None),
        ),
        (
            "timeout",
            vec![timeout(), exited(0), GONE],
            vec![StopProcess, Wait],
            timed_out(Some(exit(0))),
        ),
        (
            "the first reason stays",
            vec![timeout(), cancel(), GONE],
            vec![StopProcess, Wait],
            timed_out(None),
        ),
        ("the owner dies", vec![lost()], vec![], lost_end(None)),
        (
            "the owner dies in linger",
            vec![exited(0), lost()],
            vec![StartLinger],
            lost_end(Some(exit(0))),
        ),
        (
            "the owner dies in stop",
            vec![cancel(), lost()],
            vec![StopProcess],
            lost_end(None),
        ),
        ("gone without a report", vec![GONE], vec![], unreported),
        (
            "a stray timer",
            vec![RunEvent::LingerOver, exited(0), GONE],
            vec![Wait, StartLinger],
            clear(0),
        ),
    ];
    for (name, events, effects, end) in table {
        assert_eq!(play(events), (effects, Some(end)), "{name}");
    }
}

#[test]
fn no_run_ends_before_its_supervisor_says_so() {
    let without_end = [exited(0), cancel(), timeout(), RunEvent::LingerOver];
    for first in &without_end {
        for second in &without_end {
            for third in &without_end {
                let events = vec![first.clone(), second.clone(), third.clone()];
                assert_eq!(play(events.clone()).1, None, "{events:?}");
            }
        }
    }
}

#[test]
fn stop_is_asked_of_the_process_at_most_once() {
    let events = vec![
        cancel(),
        timeout(),
        exited(0),
        RunEvent::LingerOver,
        cancel(),
        GONE,
    ];
    let (effects, _) = play(events);
    assert_eq!(
        effects
            .iter()
            .filter(|effect| matches!(effect, RunEffect::StopProcess | RunEffect::StopBackground))
            .count(),
        1
    );
}
