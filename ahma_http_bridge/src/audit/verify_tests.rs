use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;

use super::super::Audit;
use super::super::trail::numbered;
use super::*;
use crate::redact::Redactor;

fn trail(lines: usize) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.jsonl");
    // Closed in between, as by a restart: the chain goes on.
    for number in 0..lines {
        Audit::to_file(&path, Arc::new(Redactor::new()))
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
    let table: [(Tamper, &str, usize); 9] = [
        (
            |lines| lines[2] = lines[2].replace("\"number\":2", "\"number\":9"),
            "line 4 does not follow from line 3",
            2,
        ),
        (|lines| drop(lines.remove(1)), "line 2 does not follow", 0),
        (
            |lines| lines.insert(3, lines[0].clone()),
            "line 4 does not follow",
            2,
        ),
        (|lines| lines.swap(1, 2), "line 2 does not follow", 0),
        (
            |lines| lines[4] = "{".to_owned(),
            "line 5 is not an audit line",
            3,
        ),
        (
            |lines| drop(lines.remove(0)),
            "line 1 does not follow from the beginning",
            0,
        ),
        (
            |lines| drop(lines.drain(..4)),
            "line 1 does not follow from the beginning",
            0,
        ),
        (
            |lines| lines[0] = lines[1].clone(),
            "line 1 does not follow from the beginning",
            0,
        ),
        (|lines| lines.clear(), "it is empty", 0),
    ];
    for (tamper, told, intact) in table {
        let (_directory, path) = trail(5);
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        tamper(&mut lines);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, text).unwrap();
        let error = verify_audit(&path).unwrap_err();
        assert!(error.to_string().starts_with(told), "{error}");
        assert_eq!(error.intact_lines(), intact, "{error}");
    }
}

#[test]
fn a_file_follows_from_the_one_set_aside_before_it() {
    let (_directory, path) = trail(2);
    let aside = numbered(&path, 1);
    std::fs::rename(&path, &aside).unwrap();
    for number in 0..2 {
        Audit::to_file(&path, Arc::new(Redactor::new()))
            .unwrap()
            .record("event", json!({ "number": number }));
    }
    assert_eq!(verify_audit(&path).unwrap(), 2);
    assert_eq!(verify_audit(&aside).unwrap(), 2);

    let text = std::fs::read_to_string(&aside).unwrap();
    std::fs::write(&aside, text.lines().next().unwrap()).unwrap();
    let error = verify_audit(&path).unwrap_err().to_string();
    assert!(
        error.contains("line 1 does not follow from") && error.contains(".jsonl.1"),
        "{error}"
    );
    std::fs::remove_file(&aside).unwrap();
    assert!(matches!(verify_audit(&path), Err(AuditError::Beginning { .. })));

    // What stood before the oldest file that is kept is gone, which is no fault.
    let oldest = numbered(&path, KEPT_FILES);
    std::fs::rename(&path, &oldest).unwrap();
    assert_eq!(verify_audit(&oldest).unwrap(), 2);
}
