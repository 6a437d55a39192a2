//! Operations with real processes: outcomes, queue, progress, history.

use std::{collections::HashSet, time::Duration};

use ahma_core::{
    call::{ArgumentFile, Command, ExitCodes, ExitMeaning, Program, Work},
    jail::ExitStatus,
    observe::{self, FindingBudget, Severity},
    operation::{Background, EndState, OperationState},
};

use serde_json::json;

use crate::{
    engine::{TestEngine, eventually, script},
    streams::compile,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_to_its_outcome() {
    let test = TestEngine::new();
    let table = [
        (
            "echo out; echo err >&2; echo out",
            EndState::Completed,
            0,
            None,
            "out\nerr\nout\n",
        ),
        ("exit 7", EndState::Failed, 7, Some("exit code 7"), ""),
        ("printf 'no newline'", EndState::Completed, 0, None, "no newline"),
        ("pwd; cd /; pwd", EndState::Completed, 0, None, "SCOPE\n/\n"),
    ];
    for (text, state, code, reason, output) in table {
        let operation = test.start(text);
        let outcome = operation.outcome().await;
        let output = output.replace("SCOPE", test.scope().to_str().unwrap());
        assert_eq!(
            (
                outcome.state,
                outcome.exit,
                outcome.reason.as_deref(),
                outcome.output.text.as_str()
            ),
            (state, Some(ExitStatus::Code(code)), reason, output.as_str()),
            "{text}"
        );
        assert_eq!(outcome.background, Background::Clear);
        assert_eq!(operation.snapshot().state, OperationState::from(state));
        assert!(outcome.peak_memory_bytes.is_some_and(|bytes| bytes > 0) && outcome.cpu.is_some());
    }
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tool_file_says_which_codes_are_success() {
    let test = TestEngine::new();
    let command = |code: i32| Command {
        exit_codes: ExitCodes::new([(1, ExitMeaning::Success)]),
        success_hint: Some("look again".into()),
        failure_hint: Some("give up".into()),
        ..script(&format!("exit {code}"))
    };
    for (code, state, hint) in [
        (1, EndState::Completed, Some("look again")),
        (2, EndState::Failed, Some("give up")),
    ] {
        let outcome = test
            .engine
            .start(test.plan(Work::Command(command(code))))
            .outcome()
            .await;
        assert_eq!((outcome.state, outcome.hint.as_deref()), (state, hint));
    }
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_at_once_lose_nothing() {
    let test = TestEngine::with(|settings| settings.max_operations = 8);
    let operations: Vec<_> = (0..1000)
        .map(|number| test.start(&format!("echo number {number}")))
        .collect();
    let ids: HashSet<_> = operations
        .iter()
        .map(|operation| operation.id().to_string())
        .collect();
    assert_eq!(ids.len(), 1000);
    for (number, operation) in operations.iter().enumerate() {
        let outcome = operation.outcome().await;
        assert_eq!(
            (outcome.state, outcome.output.text.as_str()),
            (EndState::Completed, format!("number {number}\n").as_str())
        );
    }
    // No client has seen them yet, so all of them are remembered, past the usual bound.
    drop(operations);
    for id in &ids {
        assert!(
            test.engine
                .get(id)
                .is_some_and(|operation| operation.ended().is_some()),
            "{id}"
        );
    }
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_run_at_once_than_allowed() {
    let test = TestEngine::with(|settings| settings.max_operations = 3);
    let counted = "file=$(mktemp running.XXXXXX); sleep 0.05; set -- running.*; echo $#; rm $file";
    let operations: Vec<_> = (0..12).map(|_| test.start(counted)).collect();
    for operation in operations {
        let outcome = operation.outcome().await;
        let running: usize = outcome.output.text.trim().parse().unwrap();
        assert!((1..=3).contains(&running), "{running} run at once");
    }
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_is_fair_and_its_places_are_visible() {
    let test = TestEngine::with(|settings| settings.max_operations = 1);
    let first = test.start("until [ -e go ]; do sleep 0.01; done");
    let waiting = ["a", "b", "c"].map(|name| test.start(&format!("echo {name} >> order")));
    let positions: Vec<_> = waiting
        .iter()
        .map(|operation| operation.snapshot().queue_position)
        .collect();
    assert_eq!(positions, [Some(1), Some(2), Some(3)]);
    assert_eq!(waiting[0].snapshot().state, OperationState::Queued);

    let second = &waiting[1];
    let cancelled = second.cancel(Some("changed my mind".into())).await;
    assert_eq!(
        (cancelled.state, cancelled.reason.as_deref(), cancelled.duration),
        (EndState::Cancelled, Some("changed my mind"), Duration::ZERO)
    );
    assert_eq!(waiting[2].snapshot().queue_position, Some(2));

    std::fs::write(test.scope().join("go"), "").unwrap();
    assert_eq!(first.outcome().await.state, EndState::Completed);
    for operation in &waiting {
        operation.outcome().await;
    }
    assert_eq!(
        std::fs::read_to_string(test.scope().join("order")).unwrap(),
        "a\nc\n"
    );
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_and_says_so() {
    let test = TestEngine::with(|settings| {
        settings.max_operations = 1;
        settings.max_queued = 1;
    });
    let (running, waiting) = (test.start("sleep 1000"), test.start("true"));
    let refused = test.start("true").outcome().await;
    assert_eq!(refused.state, EndState::Failed);
    assert_eq!(
        refused.reason.as_deref(),
        Some("the queue is full: 1 operations are waiting; try again when some have ended")
    );
    running.cancel(None).await;
    assert_eq!(waiting.outcome().await.state, EndState::Completed);
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_argument_is_there_while_the_command_runs() {
    let test = TestEngine::new();
    let command = Command {
        program: Program::Argv(vec!["cat".into(), "placeholder".into()]),
        files: vec![ArgumentFile {
            index: 1,
            contents: "a 'long' message\n".into(),
        }],
        ..script("")
    };
    let outcome = test
        .engine
        .start(test.plan(Work::Command(command)))
        .outcome()
        .await;
    assert_eq!(
        (outcome.state, outcome.output.text.as_str()),
        (EndState::Completed, "a 'long' message\n")
    );
    let left: Vec<_> = std::fs::read_dir(test.temp())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("argument-"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_turn_output_into_progress_and_findings() {
    let test = TestEngine::new();
    let block = serde_json::from_str(
        r#"{"rules": [
            {"emit": "progress", "match": "^(?<done>\\d+)%$", "percent": "{done}"},
            {"emit": "finding", "match": "^(?<level>\\w+): (?<text>.*)$",
             "finding": {"severity": "{level}", "id": "{text}", "title": "{text}"}}
        ]}"#,
    )
    .unwrap();
    let rules = observe::compile(&block).unwrap();
    let command = Command {
        stream: Some(rules.into()),
        ..script(
            "echo 10%; echo high: leak; printf 60%%; until [ -e go ]; do sleep 0.01; done; echo; echo low: typo",
        )
    };
    let operation = test.engine.start(test.plan(Work::Command(command)));
    let mut changes = operation.watch();
    // The last line is unfinished; it counts, and is shown, once it has been quiet.
    let sixty = async {
        loop {
            let snapshot = operation.snapshot();
            if snapshot.progress.percent == Some(60.0) && snapshot.newest_line.as_deref() == Some("60%") {
                break;
            }
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(test_support::TEST_TIMEOUT, sixty)
        .await
        .unwrap();
    let snapshot = operation.snapshot();
    assert_eq!(
        (snapshot.state, snapshot.finding_counts.high),
        (OperationState::Running, 1)
    );

    std::fs::write(test.scope().join("go"), "").unwrap();
    let outcome = operation.outcome().await;
    let found: Vec<_> = outcome
        .findings
        .iter()
        .map(|found| (found.severity, found.id.as_str()))
        .collect();
    assert_eq!(found, [(Severity::High, "leak"), (Severity::Low, "typo")]);
    assert_eq!(
        operation.findings(1, FindingBudget::ALL).findings,
        outcome.findings[1..]
    );
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_name_every_operation_that_moves() {
    let test = TestEngine::new();
    let mut changes = test.engine.changes();
    let operation = test.start("true");
    operation.outcome().await;
    // Once as it begins to run, once as it ends.
    for _ in 0..2 {
        assert_eq!(&changes.recv().await.unwrap().id, operation.id());
    }
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_of_ended_operations_are_bounded_and_what_goes_is_counted() {
    let test = TestEngine::with(|settings| settings.remembered_finding_bytes = 1024);
    let rule = json!({ "emit": "finding", "match": "^(?P<id>.+)$", "finding": { "id": "{id}" } });
    let rules = compile(&serde_json::from_value(json!({ "rules": [rule] })).unwrap());
    let find = || {
        let command = Command {
            stream: Some(rules.clone()),
            ..script("seq 200")
        };
        test.engine.start(test.plan(Work::Command(command)))
    };
    let (first, second) = (find(), find());
    let (outcome, _) = (first.outcome().await, second.outcome().await);
    // Whichever came first loses what its result does not carry.
    let loser = eventually("findings to be forgotten", || {
        [&first, &second]
            .into_iter()
            .find(|operation| operation.forgotten_findings() > 0)
    })
    .await;
    let page = loser.findings(0, FindingBudget::ALL);
    assert_eq!(page.findings, outcome.findings);
    assert_eq!(page.counts.info, 200);
    let kept = page.kept as u64;
    assert_eq!(page.only_counted.info, 200 - kept);
    assert_eq!(loser.forgotten_findings() as u64, 200 - kept);
    let winner = if loser.id() == first.id() { &second } else { &first };
    assert_eq!(winner.findings(0, FindingBudget::ALL).kept, 200);
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_bounded_and_its_files_go_with_it() {
    let test = TestEngine::with(|settings| {
        settings.max_remembered = 3;
        settings.result_bytes = 1024;
    });
    let mut ids = Vec::new();
    for _ in 0..10 {
        let operation = test.start("seq 1000");
        operation.mark_seen();
        operation.outcome().await;
        ids.push(operation.id().to_string());
        // Before the next one: they are forgotten in the order in which they came to be remembered.
        eventually("it to be remembered, and the oldest forgotten", || {
            (test.engine.operations().len() <= 3).then_some(())
        })
        .await;
    }
    let remembered: Vec<_> = test
        .engine
        .operations()
        .iter()
        .map(|operation| operation.id().to_string())
        .collect();
    assert_eq!(remembered, ids[7..]);
    assert!(test.engine.get(&ids[0]).is_none());
    let remembered: HashSet<_> = remembered.into_iter().collect();
    eventually("the files of the others to go", || {
        let left: HashSet<_> = test.spool_files().into_iter().collect();
        (left == remembered).then_some(())
    })
    .await;
    test.shutdown().await;
}
