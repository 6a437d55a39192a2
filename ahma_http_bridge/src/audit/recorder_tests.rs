use super::super::trail::Medium;
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

#[test]
fn no_text_of_a_client_is_written_whole_or_with_a_credential() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit.jsonl");
    let redactor = Arc::new(Redactor::new());
    redactor.remember(&ahma_common::secret::Secret::new("the-credential"));
    let long = "ü".repeat(100_000);
    let audit = Audit::to_file(&file, redactor).unwrap();
    audit.record(
        "refused",
        json!({ "path": format!("/the-credential/{long}"), "status": 404 }),
    );
    drop(audit);
    let text = std::fs::read_to_string(&file).unwrap();
    let line: Value = serde_json::from_str(&text).unwrap();
    let path = line["path"].as_str().unwrap();
    assert!(path.starts_with("/[redacted]/üüü"), "{path}");
    assert!(path.ends_with("ü… (200012 bytes)"), "{path}");
    assert!(path.len() < MAX_TEXT_BYTES + 32, "{}", path.len());
    assert_eq!(line["status"], 404);
}

#[test]
fn nothing_a_terminal_would_obey_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit.jsonl");
    let audit = Audit::to_file(&file, Arc::new(Redactor::new())).unwrap();
    let tool = "x\u{9b}31m\u{7f}\u{1b}";
    audit.record("call", json!({ "tool": tool }));
    audit.record("call", json!({ "tool": tool }));
    drop(audit);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    for line in text.lines() {
        assert_eq!(serde_json::from_str::<Value>(line).unwrap()["tool"], tool);
    }
    assert_eq!(super::super::verify_audit(&file).unwrap(), 2);
}

/// A disk that hangs until the test lets go.
struct Hung(mpsc::Receiver<()>);

impl std::io::Write for Hung {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.recv();
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Medium for Hung {
    fn take_back(&mut self, _bytes: u64) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_disk_that_hangs_does_not_prevent_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let (release, hung) = mpsc::channel();
    let trail = Trail::onto(&directory.path().join("audit.jsonl"), Box::new(Hung(hung))).unwrap();
    let audit = Audit::onto(trail, Arc::new(Redactor::new())).unwrap();
    for number in 0..2 * MAX_WAITING {
        audit.record("event", json!({ "number": number }));
    }
    let (tx, ended) = mpsc::channel();
    std::thread::spawn(move || {
        audit.settle();
        drop(audit);
        tx.send(()).unwrap();
    });
    ended.recv_timeout(test_support::TEST_TIMEOUT).expect("it ends");
    drop(release);
}
