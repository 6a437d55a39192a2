use super::*;

fn trail(lines: usize) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.jsonl");
    // Closed in between, as by a restart: the chain goes on.
    for number in 0..lines {
        Audit::to_file(&path)
            .unwrap()
            .record("event", json!({ "number": number }));
    }
    (directory, path)
}

#[test]
fn an_untouched_trail_is_whole_across_restarts() {
    let (_directory, path) = trail(5);
    assert_eq!(verify_audit(&path).unwrap(), 5);
}

#[test]
fn the_first_broken_line_is_named() {
    type Tamper = fn(&mut Vec<String>);
    let table: [(Tamper, usize); 4] = [
        (
            |lines| lines[2] = lines[2].replace("\"number\":2", "\"number\":9"),
            4,
        ),
        (|lines| drop(lines.remove(1)), 2),
        (|lines| lines.insert(3, lines[0].clone()), 4),
        (|lines| lines.swap(1, 2), 2),
    ];
    for (tamper, broken) in table {
        let (_directory, path) = trail(5);
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        tamper(&mut lines);
        std::fs::write(&path, lines.join("\n")).unwrap();
        match verify_audit(&path) {
            Err(AuditError::Broken { line }) => assert_eq!(line, broken),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn arguments_are_redacted_and_cut() {
    assert_eq!(
        shown_arguments(r#"{"password":"x","n":1}"#),
        json!({ "password": "[redacted]", "n": 1 })
    );
    let long = format!(r#"{{"text":"{}"}}"#, "ü".repeat(4000));
    let shown = shown_arguments(&long);
    assert!(shown["cut"].as_str().unwrap().len() <= MAX_ARGUMENTS_BYTES);
    assert_eq!(shown["bytes"], long.len());
}
