//! Sequences of real commands as one operation.

use std::time::Duration;

use ahma_core::{
    call::{ExitCodes, ExitMeaning, SequenceStep, SkipCondition},
    jail::ExitStatus,
    operation::{EndState, StepState},
};

use crate::engine::{TestEngine, eventually, step};

#[tokio::test(flavor = "multi_thread")]
async fn steps_run_in_order_in_one_directory_into_one_log() {
    let test = TestEngine::new();
    let steps = vec![
        step("make", "echo made > thing; printf 'no newline'"),
        step("show", "cat thing; echo again"),
        step("quiet", "true"),
    ];
    let outcome = test.start_sequence(steps, Duration::ZERO).outcome().await;
    assert_eq!(
        (outcome.state, outcome.exit, &outcome.reason),
        (EndState::Completed, Some(ExitStatus::Code(0)), &None)
    );
    assert_eq!(
        outcome.output.text,
        "==> step 1 of 3: make\nno newline\n==> step 2 of 3: show\nmade\nagain\n==> step 3 of 3: quiet\n"
    );
    let ranges: Vec<_> = outcome
        .steps
        .iter()
        .map(|step| (step.first_line, step.lines))
        .collect();
    assert_eq!(ranges, [(Some(2), 1), (Some(4), 2), (None, 0)]);
    assert!(
        outcome
            .steps
            .iter()
            .all(|step| step.state == StepState::Completed)
    );
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_failure_ends_the_sequence() {
    let test = TestEngine::new();
    let steps = vec![
        step("one", "echo 1"),
        step("two", "echo 2; exit 3"),
        step("three", "touch three"),
    ];
    let outcome = test.start_sequence(steps, Duration::ZERO).outcome().await;
    assert_eq!(
        (outcome.state, outcome.exit, outcome.reason.as_deref()),
        (
            EndState::Failed,
            Some(ExitStatus::Code(3)),
            Some("step 2 of 3, `two`: exit code 3")
        )
    );
    let states: Vec<_> = outcome.steps.iter().map(|step| step.state.clone()).collect();
    assert_eq!(
        states,
        [StepState::Completed, StepState::Failed, StepState::NotRun]
    );
    assert!(!test.scope().join("three").exists());
    test.shutdown().await;
}

/// As a search that finds nothing: the tool file accepts its code, and what completed has not failed.
#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_a_step_may_have_is_not_that_of_the_sequence() {
    for (meaning, expected) in [(ExitMeaning::Success, 0), (ExitMeaning::Findings, 1)] {
        let test = TestEngine::new();
        let mut last = step("two", "exit 1");
        last.command.exit_codes = ExitCodes::new([(1, meaning)]);
        let steps = vec![step("one", "echo 1"), last];
        let outcome = test.start_sequence(steps, Duration::ZERO).outcome().await;
        assert_eq!(
            (outcome.state, outcome.exit),
            (EndState::Completed, Some(ExitStatus::Code(expected)))
        );
        assert_eq!(outcome.steps[1].exit, Some(ExitStatus::Code(1)));
        test.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_are_asked_when_their_step_comes() {
    let test = TestEngine::new();
    let made = test.scope().join("made");
    let with = |skip, step: SequenceStep| SequenceStep {
        skip: Some(skip),
        ..step
    };
    let steps = vec![
        with(
            SkipCondition::FileExists(made.clone()),
            step("first", "touch made"),
        ),
        with(SkipCondition::FileExists(made.clone()), step("second", "echo no")),
        with(SkipCondition::FileMissing(made.clone()), step("third", "rm made")),
        with(
            SkipCondition::FileMissing(made.clone()),
            step("fourth", "echo no"),
        ),
    ];
    let outcome = test.start_sequence(steps, Duration::ZERO).outcome().await;
    let states: Vec<_> = outcome.steps.iter().map(|step| step.state.clone()).collect();
    let made = made.display();
    assert_eq!(
        states,
        [
            StepState::Completed,
            StepState::Skipped(format!("{made} exists")),
            StepState::Completed,
            StepState::Skipped(format!("{made} is missing")),
        ]
    );
    assert_eq!(outcome.state, EndState::Completed);
    assert_eq!(
        outcome.output.text,
        "==> step 1 of 4: first\n==> step 3 of 4: third\n"
    );
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_tell_nothing_of_what_is_outside_the_scope() {
    let test = TestEngine::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "").unwrap();
    for (link, target) in [("there", "secret"), ("not_there", "nothing")] {
        std::os::unix::fs::symlink(outside.path().join(target), test.scope().join(link)).unwrap();
    }
    let conditions = ["there", "not_there"].map(|link| test.scope().join(link));
    let steps = conditions
        .into_iter()
        .flat_map(|link| {
            [
                SkipCondition::FileExists(link.clone()),
                SkipCondition::FileMissing(link),
            ]
        })
        .map(|skip| SequenceStep {
            skip: Some(skip),
            ..step("any", "true")
        })
        .collect();
    let outcome = test.start_sequence(steps, Duration::ZERO).outcome().await;
    let states: Vec<_> = outcome.steps.iter().map(|step| step.state.clone()).collect();
    assert_eq!(states, [const { StepState::Completed }; 4]);
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_step_begins_after_the_timeout() {
    let test = TestEngine::new();
    // The timeout comes while what the first step left behind is waited for.
    let steps = vec![step("one", "sleep 1000 & echo 1"), step("two", "touch two")];
    let operation = test.start_sequence_for(steps, Duration::from_secs(1));
    let outcome = operation.outcome().await;
    let states: Vec<_> = outcome.steps.iter().map(|step| step.state.clone()).collect();
    assert_eq!(states, [StepState::Completed, StepState::NotRun]);
    assert_eq!(
        (outcome.state, outcome.reason.as_deref()),
        (EndState::TimedOut, Some("before step 2 of 2: the timeout is 1 s"))
    );
    assert!(!test.scope().join("two").exists());
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_is_cancelled_as_one() {
    let test = TestEngine::new();
    let steps = vec![
        step("one", "echo 1"),
        step("two", "echo 2; sleep 1000"),
        step("three", "echo 3"),
    ];
    let operation = test.start_sequence(steps, Duration::ZERO);
    let position = eventually("the second step", || {
        let snapshot = operation.snapshot();
        snapshot
            .step
            .filter(|step| step.number == 2 && snapshot.newest_line.as_deref() == Some("2"))
    })
    .await;
    assert_eq!((position.of, position.label.as_str()), (3, "two"));
    let outcome = operation.cancel(Some("enough".into())).await;
    assert_eq!(
        (outcome.state, outcome.reason.as_deref()),
        (EndState::Cancelled, Some("step 2 of 3, `two`: enough"))
    );
    let states: Vec<_> = outcome.steps.iter().map(|step| step.state.clone()).collect();
    assert_eq!(
        states,
        [StepState::Completed, StepState::Cancelled, StepState::NotRun]
    );
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_waits_for_a_step_that_is_left_out() {
    let test = TestEngine::new();
    let left_out = |label| SequenceStep {
        skip: Some(SkipCondition::FileMissing(test.scope().join("nothing"))),
        ..step(label, "echo no")
    };
    let steps = vec![step("one", "echo 1"), left_out("two"), left_out("three")];
    let operation = test.start_sequence(steps, Duration::from_secs(3600));
    let outcome = eventually("the end of the sequence", || operation.ended()).await;
    assert_eq!(outcome.state, EndState::Completed);
    assert_eq!(outcome.output.text, "==> step 1 of 3: one\n1\n");
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_delay_between_steps_can_be_cut_short() {
    let test = TestEngine::new();
    let steps = vec![step("one", "echo 1"), step("two", "echo 2")];
    let operation = test.start_sequence(steps, Duration::from_secs(3600));
    eventually("the end of the first step", || {
        (operation.output().size().0 == 2).then_some(())
    })
    .await;
    let outcome = operation.cancel(None).await;
    assert_eq!(outcome.state, EndState::Cancelled);
    assert_eq!(outcome.steps[1].state, StepState::NotRun);
    test.shutdown().await;
}
