use super::*;

fn exit(status: ExitStatus) -> ExitReport {
    ExitReport {
        status,
        cpu: Duration::from_millis(5),
        peak_memory_bytes: 4096,
    }
}

fn exit_codes() -> ExitCodes {
    ExitCodes::new([
        (1, ExitMeaning::Success),
        (3, ExitMeaning::Findings),
        (4, ExitMeaning::Failure("no such target".into())),
    ])
}

#[test]
fn exits() {
    let table = [
        (ExitStatus::Code(0), EndState::Completed, None),
        (ExitStatus::Code(1), EndState::Completed, None),
        (ExitStatus::Code(2), EndState::Failed, Some("exit code 2")),
        (ExitStatus::Code(3), EndState::Completed, None),
        (
            ExitStatus::Code(4),
            EndState::Failed,
            Some("exit code 4: no such target"),
        ),
        (
            ExitStatus::Signal(9),
            EndState::Failed,
            Some("killed by signal 9 (SIGKILL)"),
        ),
        (
            ExitStatus::Signal(64),
            EndState::Failed,
            Some("killed by signal 64"),
        ),
    ];
    for (status, state, reason) in table {
        let end = RunEnd::Exited {
            exit: exit(status),
            background: Background::Stopped,
        };
        let expected = CommandResult {
            state,
            exit: Some(status),
            reason: reason.map(str::to_owned),
            background: Background::Stopped,
            cpu: Some(Duration::from_millis(5)),
            peak_memory_bytes: Some(4096),
            has_findings: status == ExitStatus::Code(3),
        };
        assert_eq!(CommandResult::of(end, &exit_codes()), expected);
    }
}

#[test]
fn stops_keep_what_was_reported() {
    let table = [
        (StopReason::Cancelled(None), EndState::Cancelled, "on request"),
        (
            StopReason::Cancelled(Some("enough".into())),
            EndState::Cancelled,
            "enough",
        ),
        (
            StopReason::Interrupted("the server is shutting down".into()),
            EndState::Interrupted,
            "the server is shutting down",
        ),
        (
            StopReason::TimedOut(Duration::from_millis(1500)),
            EndState::TimedOut,
            "the timeout is 1.5 s",
        ),
    ];
    for (why, state, reason) in table {
        let result = CommandResult::of(
            RunEnd::Stopped {
                why,
                exit: Some(exit(ExitStatus::Signal(15))),
            },
            &ExitCodes::default(),
        );
        assert_eq!((result.state, result.reason.as_deref()), (state, Some(reason)));
        assert_eq!(
            (result.exit, result.cpu),
            (Some(ExitStatus::Signal(15)), Some(Duration::from_millis(5)))
        );
    }
}

#[test]
fn a_failed_start_names_every_cause() {
    let refused = std::io::Error::from_raw_os_error(111);
    let result = CommandResult::not_launched(&LaunchError::Jail(refused));
    assert_eq!(
        result.reason.unwrap(),
        "could not be started: the helper process that starts commands cannot be reached: Connection refused (os error 111)"
    );
}
