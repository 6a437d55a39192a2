use super::*;

#[test]
fn arguments_are_redacted_and_cut() {
    assert_eq!(
        shown_arguments(r#"{"password":"x","n":1}"#, &Redactor::new()),
        json!({ "password": "[redacted]", "n": 1 })
    );
    let long = format!(r#"{{"text":"{}"}}"#, "ü".repeat(4000));
    let shown = shown_arguments(&long, &Redactor::new());
    assert!(shown["cut"].as_str().unwrap().len() <= MAX_ARGUMENTS_BYTES);
    assert_eq!(shown["bytes"], long.len());
}
