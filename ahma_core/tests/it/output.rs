//! Output of commands: all of it, in order, whatever it is and however much.

use ahma_core::operation::{EndState, Loss, LossCause, OutputQuery, PageStart};

use crate::engine::TestEngine;

#[tokio::test(flavor = "multi_thread")]
async fn streams_keep_the_order_of_writing() {
    let test = TestEngine::new();
    let outcome = test
        .start("for i in $(seq 500); do echo $i; echo $i >&2; done")
        .outcome()
        .await;
    let expected: String = (1..=500).map(|number| format!("{number}\n{number}\n")).collect();
    assert_eq!(outcome.output.text, expected);
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_text_end_nothing() {
    let test = TestEngine::new();
    let outcome = test.start(r"printf 'nul \0 bad \377 cut \303'").outcome().await;
    assert_eq!(
        (
            outcome.state,
            outcome.output.text.as_str(),
            outcome.output.total_bytes
        ),
        (EndState::Completed, "nul \0 bad \u{FFFD} cut \u{FFFD}", 17)
    );
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_output_is_all_there_and_the_result_is_short() {
    let test = TestEngine::new();
    let operation = test.start("seq 1000000");
    let outcome = operation.outcome().await;
    assert!(outcome.output.text.len() <= 16 << 10);
    assert_eq!(
        (
            outcome.output.total_lines,
            outcome.output.total_bytes,
            &outcome.lost
        ),
        (1_000_000, 6_888_896, &None)
    );

    let left_out = outcome.output.left_out.clone().unwrap();
    let query = OutputQuery::Range {
        from: PageStart::Line(left_out.from_line),
        max_lines: 3,
    };
    let page = operation.output().read(query).await.unwrap();
    let expected: String = (left_out.from_line..left_out.from_line + 3)
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(page.text, expected);

    let grep = OutputQuery::Grep {
        pattern: "^99999[0-9]$".into(),
        context: 1,
        from_line: 1,
        max_lines: u64::MAX,
    };
    let found = operation.output().read(grep).await.unwrap();
    assert_eq!(found.matches, Some(10));
    assert!(
        found.text.starts_with("999989-999989\n999990:999990\n") && found.text.ends_with("1000000-1000000\n")
    );
    test.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn past_the_quota_output_is_counted_exactly() {
    let test = TestEngine::with(|settings| settings.quota_bytes = 1 << 20);
    let operation = test.start("yes | head -c 5242880; echo the end");
    let outcome = operation.outcome().await;
    assert_eq!(outcome.state, EndState::Completed);
    assert_eq!(outcome.output.total_bytes, (5 << 20) + 8);
    assert_eq!(
        outcome.lost,
        Some(Loss {
            bytes: (4 << 20) + 8,
            cause: LossCause::Quota
        })
    );
    assert!(
        outcome.output.text.ends_with("y\nthe end\n"),
        "the end is kept all the same"
    );

    // And it is read and searched like the rest.
    let grep = OutputQuery::Grep {
        pattern: "end".into(),
        context: 1,
        from_line: 1,
        max_lines: u64::MAX,
    };
    let last = (5 << 19) + 1;
    let found = operation.output().read(grep).await.unwrap();
    assert_eq!(found.text, format!("{}-y\n{last}:the end\n", last - 1));
    let gap = found.gap.unwrap();
    assert_eq!(gap.first_line, (1 << 19) + 1);
    let range = OutputQuery::Range {
        from: PageStart::Line(last),
        max_lines: 9,
    };
    let page = operation.output().read(range).await.unwrap();
    assert_eq!((page.text.as_str(), page.first_line), ("the end\n", Some(last)));
    test.shutdown().await;
}
