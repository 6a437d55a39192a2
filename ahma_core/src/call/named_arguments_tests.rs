use serde_json::json;

use super::*;

#[derive(Debug, PartialEq, Clone, Copy)]
enum Until {
    All,
    Any,
}

type Read = (Option<Vec<String>>, Option<u64>, Option<Until>);

fn texts(verdict: Result<(), Vec<ArgumentProblem>>) -> Result<(), Vec<String>> {
    verdict.map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn read(given: Value) -> (Read, Result<(), Vec<String>>) {
    let Value::Object(given) = given else {
        panic!("arguments are an object")
    };
    let mut arguments = NamedArguments::new(given);
    let ids = arguments.texts("operation_ids", 2);
    let timeout = arguments.integer("timeout_seconds", 0..=50);
    let until = arguments.choice("until", &[("all", Until::All), ("any", Until::Any)]);
    ((ids, timeout, until), texts(arguments.finish()))
}

#[test]
fn good_arguments_are_read() {
    let ((ids, timeout, until), verdict) =
        read(json!({"operation_ids": ["op_1", "op_2"], "timeout_seconds": 50, "until": "any"}));
    assert_eq!(ids, Some(vec!["op_1".to_owned(), "op_2".to_owned()]));
    assert_eq!((timeout, until, verdict), (Some(50), Some(Until::Any), Ok(())));
    assert_eq!(
        read(json!({"operation_ids": "op_1", "until": null})).0.0,
        Some(vec!["op_1".to_owned()])
    );
    assert_eq!(read(json!({"timeoutSeconds": "5"})).0.1, Some(5));
    assert_eq!(read(json!({})), ((None, None, None), Ok(())));
    assert_eq!(read(json!({"operation_ids": []})), read(json!({})));
}

#[test]
fn every_mistake_is_named() {
    let problems = read(json!({
        "operation_ids": ["op_1", true],
        "timeout_seconds": 51,
        "until": "some",
        "timout": 3,
        "x": 1,
    }))
    .1
    .expect_err("nothing is right");
    assert_eq!(
        problems,
        [
            r#"`operation_ids` must be an array of at most 2 strings, not ["op_1",true]"#,
            "`timeout_seconds` must be an integer from 0 to 50, not 51",
            r#"`until` must be one of `all`, `any`, not "some""#,
            "`timout` is not an argument of this tool; did you mean `timeout_seconds`?",
            "`x` is not an argument of this tool",
        ]
    );
}

#[test]
fn a_list_that_is_too_long_is_refused() {
    let problems = read(json!({"operation_ids": ["op_1", "op_2", "op_3"]})).1;
    let expected = r#"`operation_ids` must be an array of at most 2 strings, not ["op_1","op_2","op_3"]"#;
    assert_eq!(problems, Err(vec![expected.to_owned()]));
}

#[test]
fn a_missing_required_argument_is_named_once() {
    let mut arguments = NamedArguments::new(Map::new());
    assert_eq!(arguments.required_text("command"), "");
    assert_eq!(
        texts(arguments.finish()),
        Err(vec!["`command` is required".to_owned()])
    );
}
