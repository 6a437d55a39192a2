use serde_json::{Value, json};

use super::*;
use crate::observe::compile;

#[track_caller]
fn check(block: Value, recording: &str, expected: &[(usize, &str)]) {
    let rules = compile(&serde_json::from_value(block).unwrap()).unwrap();
    let found: Vec<(usize, String)> = unmatched(&rules, recording)
        .into_iter()
        .map(|rule| (rule.index, rule.reason))
        .collect();
    let found: Vec<(usize, &str)> = found
        .iter()
        .map(|(index, reason)| (*index, reason.as_str()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_rule_that_matches_nothing_says_why() {
    let ignore = |pattern: &str| json!({ "emit": "ignore", "match": pattern });
    check(
        json!({ "rules": [
            ignore("^open"),
            ignore("^open port (?P<n>\\d+)"),
            ignore("^closed port (?P<n>\\d+)/udp$"),
            ignore("^nothing"),
            { "emit": "ignore", "on": "stderr", "match": "^warning" },
            { "emit": "ignore", "match": "^first", "next": "^third" },
        ] }),
        "open port 1\nclosed port 22/tcp\nwarning: x\nfirst\nsecond\n",
        &[
            (1, "line 1 matches, but rule 0 takes it first"),
            (
                2,
                "nearest is line 2, which it matches as far as `closed port 22/`, but not `tcp`",
            ),
            (3, "none of 5 lines is like it"),
            (
                4,
                "line 3 matches, but it is on stdout and the rule looks at stderr only (a plain text counts as stdout; `ahma_mcp record` keeps both streams)",
            ),
            (
                5,
                "line 4 matches `match`, but it is followed by `second`, which `next` does not match",
            ),
        ],
    );
    check(
        json!({ "rules": [{ "emit": "ignore", "on": "stderr", "match": "x" }] }),
        "+0.1 out| y\\n\n",
        &[(0, "it was never tried: the recording has no line of stderr")],
    );
}

#[test]
fn values_and_elements_say_what_is_there_instead() {
    let finding = json!({ "id": "x" });
    check(
        json!({ "framing": "json-lines", "rules": [
            { "emit": "finding", "where": { "/level": "error", "/kind": "a" }, "finding": finding },
            { "emit": "finding", "each": "/list", "finding": finding },
            { "emit": "finding", "where": { "/kind": "a" }, "finding": finding } ] }),
        "{\"level\": \"warn\", \"kind\": \"a\"}\n{}\n",
        &[
            (
                0,
                "`where` holds for none of 2 values; in the nearest value, `/level` is `warn`",
            ),
            (1, "`each` leads to no list with items"),
        ],
    );
    check(
        json!({ "framing": "xml", "rules": [
            { "emit": "finding", "element": "prot", "finding": finding },
            { "emit": "finding", "element": "port", "finding": finding } ] }),
        "<?xml version='1.0'?><host><port id='1'/></host>",
        &[(0, "no element `prot`; there are `host`, `port`")],
    );
}
