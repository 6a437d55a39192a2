use serde_json::{Value, json};

use super::*;

fn take(given: Value) -> (LineArguments, Result<(), Vec<String>>) {
    let Value::Object(given) = given else {
        panic!("arguments are an object")
    };
    let mut arguments = NamedArguments::new(given);
    let taken = LineArguments::take(&mut arguments);
    let verdict = arguments.finish();
    (
        taken,
        verdict.map_err(|problems| problems.iter().map(ToString::to_string).collect()),
    )
}

#[test]
fn an_argument_that_says_what_is_the_case_anyway_contradicts_nothing() {
    let all = json!({"from_line": 1, "from_byte": 0, "max_lines": 1000, "grep": "", "context": 0});
    let (taken, verdict) = take(all.clone());
    assert_eq!((taken.given().count(), verdict), (0, Ok(())));
    for (name, value, query) in [
        ("tail", json!(3), OutputQuery::Tail { lines: 3 }),
        (
            "grep",
            json!("x"),
            OutputQuery::Grep {
                pattern: "x".into(),
                context: 0,
                from_line: 1,
                max_lines: 1000,
            },
        ),
        (
            "from_byte",
            json!(7),
            OutputQuery::Range {
                from: PageStart::Byte(7),
                max_lines: 1000,
            },
        ),
    ] {
        let mut given = all.clone();
        given[name] = value;
        let (taken, verdict) = take(given);
        assert_eq!(verdict, Ok(()), "{name}");
        assert_eq!(taken.query(), query);
    }
}

#[test]
fn without_a_choice_it_is_the_end_that_is_shown() {
    assert_eq!(take(json!({})).0.query(), OutputQuery::Tail { lines: 100 });
    assert_eq!(
        take(json!({"from_line": 1})).0.query(),
        OutputQuery::Range {
            from: PageStart::Line(1),
            max_lines: 1000,
        }
    );
}

#[test]
fn a_search_takes_a_limit_and_contradictions_are_named() {
    let (taken, verdict) = take(json!({"grep": "x", "max_lines": 5}));
    assert_eq!(verdict, Ok(()));
    assert!(matches!(taken.query(), OutputQuery::Grep { max_lines: 5, .. }));
    let (_, verdict) = take(json!({"tail": 1, "max_lines": 5, "context": 2}));
    assert_eq!(
        verdict,
        Err(vec![
            "`tail` cannot be combined with `max_lines`".to_owned(),
            "`context` has a meaning only with `grep`".to_owned(),
        ])
    );
}

#[test]
fn what_was_not_kept_is_named() {
    let page = |cause, last_line| OutputPage {
        text: String::new(),
        first_line: Some(3),
        lines: 2,
        next: Some(PageStart::Line(90)),
        next_byte: 9000,
        unfinished_bytes: 0,
        matches: None,
        searched_to: None,
        unsearched_bytes: 0,
        total_lines: 99,
        total_bytes: 9999,
        gap: Some(OutputGap {
            bytes: 700,
            first_line: 5,
            last_line,
            cause,
        }),
    };
    let lines = LinesReport::of(&page(LossCause::Quota, 89));
    assert_eq!(
        lines.place(),
        "lines 3 to 4 of 99; 700 bytes in lines 5 to 89 were over the quota and are not kept; go on with from_line 90"
    );
    assert_eq!((lines.lost_bytes, lines.lost_lines), (Some(700), Some([5, 89])));
    let lines = LinesReport::of(&page(LossCause::Storage("disk full".into()), 5));
    assert!(
        lines
            .place()
            .contains("; 700 bytes of line 5 could not be stored: disk full;"),
        "{}",
        lines.place()
    );
}
