//! Ends of operations with real processes, by themselves or not; nothing of them is left.

use std::time::Duration;

use ahma_core::{
    call::{Command, Program, Work},
    operation::{Background, EndState},
};

use crate::engine::{TestEngine, eventually, marked_processes, script};

#[tokio::test(flavor = "multi_thread")]
async fn cancel_returns_when_the_processes_are_gone() {
    let test = TestEngine::with(|settings| settings.grace = Duration::from_millis(100));
    let marker = format!("cancel-{}", std::process::id());
    let operation = test.start(&format!(
        "export MARK={marker}\necho partial\n(trap '' TERM; setsid sleep 1000) & setsid -f sleep 1000; sleep 1000"
    ));
    let other = test.start("until [ -e go ]; do sleep 0.01; done; echo untouched");
    eventually("the first output", || {
        (operation.output().size().0 > 0).then_some(())
    })
    .await;

    let outcome = operation.cancel(None).await;
    assert_eq!(marked_processes(&marker), Vec::<i32>::new());
    assert_eq!(
        (outcome.state, outcome.output.text.as_str()),
        (EndState::Cancelled, "partial\n")
    );
    assert_eq!(
        *operation.cancel(Some("again".into())).await,
        *outcome,
        "the outcome never changes"
    );

    std::fs::write(test.scope().join("go"), "").unwrap();
    assert_eq!(other.outcome().await.output.text, "untouched\n");
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_waiter_hears_the_one_outcome() {
    let test = TestEngine::new();
    let operation = test.start("until [ -e go ]; do sleep 0.01; done");
    let waiters: Vec<_> = (0..50)
        .map(|_| {
            let operation = operation.clone();
            tokio::spawn(async move { operation.outcome().await })
        })
        .collect();
    std::fs::write(test.scope().join("go"), "").unwrap();
    let outcome = operation.outcome().await;
    for waiter in waiters {
        assert!(std::sync::Arc::ptr_eq(&waiter.await.unwrap(), &outcome));
    }
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_keeps_what_was_printed() {
    let test = TestEngine::new();
    let marker = format!("timeout-{}", std::process::id());
    let text = format!("export MARK={marker}\necho partial\nsleep 1000 & sleep 1000");
    let outcome = test
        .start_with_timeout(&text, Duration::from_secs(5))
        .outcome()
        .await;
    assert_eq!(marked_processes(&marker), Vec::<i32>::new());
    assert_eq!(
        (
            outcome.state,
            outcome.reason.as_deref(),
            outcome.output.text.as_str()
        ),
        (EndState::TimedOut, Some("the timeout is 5 s"), "partial\n")
    );
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_leaves_behind_may_finish() {
    let test = TestEngine::with(|settings| settings.linger = test_support::TEST_TIMEOUT);
    let outcome = test.start("(sleep 0.3; echo late) & echo now").outcome().await;
    assert_eq!(
        (outcome.state, outcome.background, outcome.output.text.as_str()),
        (EndState::Completed, Background::Clear, "now\nlate\n")
    );
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stays_too_long_is_stopped() {
    let test = TestEngine::with(|settings| settings.linger = Duration::from_millis(50));
    let marker = format!("linger-{}", std::process::id());
    let outcome = test
        .start(&format!("export MARK={marker}; sleep 1000 & echo now"))
        .outcome()
        .await;
    assert_eq!(marked_processes(&marker), Vec::<i32>::new());
    assert_eq!(
        (outcome.state, outcome.background, outcome.output.text.as_str()),
        (EndState::Completed, Background::Stopped, "now\n")
    );
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_supervisor_dies_is_interrupted() {
    let test = TestEngine::unconfined();
    let outcome = test
        .start("echo before; kill -KILL $PPID; sleep 1000")
        .outcome()
        .await;
    assert_eq!(outcome.state, EndState::Interrupted);
    assert!(
        outcome.reason.as_deref().is_some_and(|reason| !reason.is_empty()),
        "{outcome:?}"
    );
    assert_eq!(test.start("echo after").outcome().await.output.text, "after\n");
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_cannot_start_has_failed() {
    let test = TestEngine::new();
    let command = Command {
        program: Program::Argv(vec!["echo".into(), "a\0b".into()]),
        ..script("")
    };
    let outcome = test
        .engine
        .start(test.plan(Work::Command(command)))
        .outcome()
        .await;
    assert_eq!((outcome.state, outcome.exit), (EndState::Failed, None));
    assert!(
        outcome.reason.as_deref().unwrap().contains("NUL byte"),
        "{outcome:?}"
    );
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_interrupts_everything_and_takes_nothing_new() {
    let test = TestEngine::with(|settings| settings.max_operations = 2);
    let marker = format!("shutdown-{}", std::process::id());
    let operations: Vec<_> = (0..5)
        .map(|_| test.start(&format!("export MARK={marker}; echo on; sleep 1000")))
        .collect();
    eventually("output", || (operations[1].output().size().0 > 0).then_some(())).await;
    test.engine.shutdown().await;
    assert_eq!(marked_processes(&marker), Vec::<i32>::new());
    for operation in operations.iter().chain([&test.start("echo too late")]) {
        let outcome = operation.ended().expect("shutdown waits for every outcome");
        assert_eq!(
            (outcome.state, outcome.reason.as_deref()),
            (EndState::Interrupted, Some("the server is shutting down"))
        );
    }
    test.shutdown().await;
}
