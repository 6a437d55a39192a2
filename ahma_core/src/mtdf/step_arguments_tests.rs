use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(arguments: Value, embedding: Embedding, expected: Value) {
    let given = json!({ "path": "my file", "files": ["a", "b c"], "count": 3, "deep": true });
    let (Value::Object(arguments), Value::Object(given)) = (arguments, given) else {
        panic!("both are objects");
    };
    assert_eq!(Value::Object(bind(&arguments, &given, embedding)), expected);
}

#[test]
fn a_reference_alone_keeps_its_type_and_one_in_a_text_becomes_text() {
    check(
        json!({ "n": "{$count}", "all": "{$files}", "deep": "{$deep}", "to": "out/{$path}.txt", "left out": "{$no}" }),
        Embedding::Plain,
        json!({ "n": 3, "all": ["a", "b c"], "deep": true, "to": "out/my file.txt" }),
    );
    check(
        json!({ "list": ["x", "{$files}", "{$no}", "{$count}"], "plain": 7 }),
        Embedding::Plain,
        json!({ "list": ["x", "a", "b c", 3], "plain": 7 }),
    );
}

#[test]
fn a_shell_gets_each_value_as_one_word() {
    check(
        json!({ "command": "ls {$path} {$files} {$no} | awk '{$1=0; print ${x}}'" }),
        Embedding::ShellWord,
        json!({ "command": "ls 'my file' a 'b c'  | awk '{$1=0; print ${x}}'" }),
    );
    check(
        json!({ "command": "{$path}" }),
        Embedding::ShellWord,
        json!({ "command": "'my file'" }),
    );
}

#[test]
fn references_are_found_wherever_text_is() {
    let value = json!(["{$a}", "x{$b-c}y{$d_e}", "{$}", "{$f", 7]);
    assert_eq!(references(&value), ["a", "b-c", "d_e"]);
}
