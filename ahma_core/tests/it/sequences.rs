//! Sequences of real commands as one operation.

use std::time::Duration;

use ahma_core::{
    call::{ExitCodes, ExitMeaning, SequenceStep, SkipCondition},
    jail::ExitStatus,
    operation::{EndState, StepState},
};

use serde_json::json;
use test_support::{Era, Workspace};

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
            .all(|step| step.state == StepState::Ended(EndState::Completed))
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
        [
            StepState::Ended(EndState::Completed),
            StepState::Ended(EndState::Failed),
            StepState::NotRun
        ]
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
            StepState::Ended(EndState::Completed),
            StepState::Skipped(format!("{made} exists")),
            StepState::Ended(EndState::Completed),
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
    assert_eq!(states, [const { StepState::Ended(EndState::Completed) }; 4]);
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_step_begins_after_the_timeout() {
    let test = TestEngine::with(|settings| settings.linger = test_support::TEST_TIMEOUT);
    // The timeout comes while what the first step left behind is waited for.
    let steps = vec![step("one", "sleep 1000 & echo 1"), step("two", "touch two")];
    let operation = test.start_sequence_for(steps, Duration::from_secs(5));
    let outcome = operation.outcome().await;
    let states: Vec<_> = outcome.steps.iter().map(|step| step.state.clone()).collect();
    assert_eq!(states, [StepState::Ended(EndState::Completed), StepState::NotRun]);
    assert_eq!(
        (outcome.state, outcome.reason.as_deref()),
        (EndState::TimedOut, Some("before step 2 of 2: the timeout is 5 s"))
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
        [
            StepState::Ended(EndState::Completed),
            StepState::Ended(EndState::Cancelled),
            StepState::NotRun
        ]
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

#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_that_goes_on_after_failures_has_failed_in_the_end() {
    let test = TestEngine::new();
    let going_on = |step| SequenceStep {
        continue_on_failure: true,
        ..step
    };
    let steps = vec![
        going_on(step("one", "exit 3")),
        going_on(step("two", "echo 2; exit 4")),
        step("three", "echo 3"),
    ];
    let outcome = test.start_sequence(steps, Duration::ZERO).outcome().await;
    let states: Vec<_> = outcome.steps.iter().map(|step| step.state.clone()).collect();
    assert_eq!(
        states,
        [
            StepState::Ended(EndState::Failed),
            StepState::Ended(EndState::Failed),
            StepState::Ended(EndState::Completed)
        ]
    );
    assert_eq!(
        (outcome.state, outcome.exit, outcome.reason.as_deref()),
        (
            EndState::Failed,
            Some(ExitStatus::Code(3)),
            Some("2 of 3 steps failed; the first of them: step 1 of 3, `one`: exit code 3")
        )
    );
    test.shutdown().await;
}

/// Each waits for what the other makes, so neither could run alone.
#[tokio::test(flavor = "multi_thread")]
async fn parallel_steps_run_at_the_same_time_and_their_output_stays_together() {
    let test = TestEngine::new();
    let together = |step| SequenceStep {
        parallel: true,
        ..step
    };
    let meet = |own: &str, other: &str| {
        format!("echo {own}; touch {own}; until [ -e {other} ]; do sleep 0.01; done; echo {own} met {other}")
    };
    let steps = vec![
        step("first", "echo begin"),
        step("a", &meet("a", "b")),
        together(step("b", &format!("{}; exit 5", meet("b", "a")))),
        together(step("c", "exit 6")),
        step("last", "touch last"),
    ];
    let outcome = test.start_sequence(steps, Duration::ZERO).outcome().await;
    let states: Vec<_> = outcome.steps.iter().map(|step| step.state.clone()).collect();
    assert_eq!(
        states,
        [
            StepState::Ended(EndState::Completed),
            StepState::Ended(EndState::Completed),
            StepState::Ended(EndState::Failed),
            StepState::Ended(EndState::Failed),
            StepState::NotRun
        ]
    );
    assert_eq!(outcome.state, EndState::Failed);
    assert_eq!(
        outcome.output.text,
        "==> step 1 of 5: first\nbegin\n==> step 2 of 5: a\na\na met b\n\
         ==> step 3 of 5: b\nb\nb met a\n==> step 4 of 5: c\n"
    );
    let ranges: Vec<_> = (outcome.steps.iter())
        .map(|step| (step.first_line, step.lines))
        .collect();
    assert_eq!(
        ranges,
        [(Some(2), 1), (Some(4), 2), (Some(7), 2), (None, 0), (None, 0)]
    );
    assert!(!test.scope().join("last").exists());
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_steps_end_with_the_operation_and_long_output_is_kept_whole() {
    let test = TestEngine::new();
    let together = |step| SequenceStep {
        parallel: true,
        ..step
    };
    let steps = vec![step("long", "seq 50000"), together(step("other", "echo x"))];
    let outcome = test.start_sequence(steps, Duration::ZERO).outcome().await;
    assert_eq!(outcome.state, EndState::Completed);
    assert_eq!((outcome.output.total_lines, outcome.lost.clone()), (50_003, None));

    let steps = vec![step("a", "sleep 1000"), together(step("b", "sleep 1000"))];
    let operation = test.start_sequence(steps, Duration::ZERO);
    let outcome = operation.cancel(None).await;
    assert_eq!(outcome.state, EndState::Cancelled);
    test.shutdown().await;
}

/// A tool that prints its arguments, and a sequence with arguments of its own that calls it and the shell.
#[test]
fn a_sequence_has_arguments_of_its_own() {
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &crate::session::echo("say"));
    workspace.write_tool(
        "twice.json",
        &json!({
            "name": "twice", "description": "Says it twice.", "command": "sequence", "synchronous": true,
            "options": [
                { "name": "words", "type": "array", "required": true },
                { "name": "times", "type": "integer", "default": 2 },
                { "name": "file", "type": "string", "format": "path" }
            ],
            "sequence": [
                { "tool": "say", "args": { "format": "<%s>", "words": ["first", "{$words}"] } },
                { "tool": "sandboxed_shell", "args": { "command": "printf '%s.' {$times} {$words}; echo {$file}" } }
            ]
        }),
    );
    for era in Era::BOTH {
        let mut server = crate::session::options(&workspace).open(era);
        let result = server.tool("twice", json!({"words": ["it's", "$(id)"], "times": 3}));
        assert_eq!(
            result["structuredContent"]["output"],
            "==> step 1 of 2: say\n<first><it's><$(id)>\n==> step 2 of 2: sandboxed_shell\n3.it's.$(id).\n",
            "{result}"
        );
        let refused = server.tool("twice", json!({"nonsense": 1, "file": "/root/x"}));
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("`words` is required"), "{text}");
        assert!(text.contains("`nonsense` is not an argument"), "{text}");
        assert!(text.contains("`file` `/root/x` is outside"), "{text}");
    }
}
