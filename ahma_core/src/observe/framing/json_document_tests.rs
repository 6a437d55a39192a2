use super::DocumentReader;

fn documents_of(chunks: &[&[u8]], max_bytes: usize) -> Vec<String> {
    let mut reader = DocumentReader::new(max_bytes);
    let mut documents = Vec::new();
    for chunk in chunks {
        let mut input = *chunk;
        while let Some(document) = reader.next_document(&mut input) {
            documents.push(document);
        }
        assert!(input.is_empty());
    }
    documents.extend(reader.finish());
    documents
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(documents_of(&[text.as_bytes()], 1000), expected);
    let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
    assert_eq!(documents_of(&single, 1000), expected, "byte by byte");
}

#[test]
fn documents_are_found_among_noise() {
    check(r#"{"a":1}"#, &[r#"{"a":1}"#]);
    check(
        "[INFO] scan {x}\n[1/3] step\nresult: {\"a\": [1, {\"b\": null}]}\ndone\n",
        &[r#"{"a": [1, {"b": null}]}"#],
    );
    check("{\"a\":1}\n{\"b\":2}[3]", &[r#"{"a":1}"#, r#"{"b":2}"#, "[3]"]);
    check("\x1b[32mgreen\x1b[0m {\"a\":true}", &[r#"{"a":true}"#]);
    check("no json here ]}", &[]);
}

#[test]
fn brackets_in_strings_do_not_count() {
    check(r#"{"a":"}]\"{\\"}"#, &[r#"{"a":"}]\"{\\"}"#]);
    check("{\"broken\n{\"a\":1}", &[r#"{"a":1}"#]);
}

#[test]
fn a_start_without_end_does_not_hide_the_document() {
    check("[ true\n{\"a\":1}", &[r#"{"a":1}"#]);
    check("[[[{\"a\":1}{\"b\":2}", &[r#"{"a":1}"#, r#"{"b":2}"#]);
    check(
        "{\"r\":[{\"a\":1},{\"b\":[2]},{\"c\"",
        &[r#"{"a":1}"#, r#"{"b":[2]}"#],
    );
}

/// A report of 4 MiB whose writer was killed; looking at each of its parts must not mean looking at all of it.
#[test]
fn many_documents_in_one_without_end_are_found_in_one_pass() {
    let part = r#"{"id":"x","path":"y","line":1},"#;
    let count = (4 << 20) / part.len();
    let text = format!("{{\"results\":[{}", part.repeat(count));
    assert_eq!(documents_of(&[text.as_bytes()], 64 << 20).len(), count);
}

#[test]
fn a_document_that_is_too_long_is_passed_over() {
    let long = format!("[{}1]", "1,".repeat(1000));
    let text = format!("{long}\n{{\"a\":1}}");
    assert_eq!(documents_of(&[text.as_bytes()], 1000), [r#"{"a":1}"#]);
    let single: Vec<&[u8]> = text.as_bytes().chunks(7).collect();
    assert_eq!(documents_of(&single, 1000), [r#"{"a":1}"#]);
    let long_string = format!("{{\"a\":\"{}\"}} [2]", "x".repeat(1000));
    assert_eq!(documents_of(&[long_string.as_bytes()], 1000), ["[2]"]);
}

#[test]
fn hostile_nesting_ends() {
    assert_eq!(
        documents_of(&["[".repeat(1 << 20).as_bytes()], 1 << 20),
        Vec::<String>::new()
    );
}
