use std::time::Duration;

use super::*;

fn params(name: &str, lifetime: Option<Duration>) -> TokenParams {
    TokenParams {
        name: name.to_owned(),
        lifetime,
        scope: None,
        max_sessions: Some(3),
    }
}

#[test]
fn an_issued_token_is_known_by_its_hash_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.json");
    let token = issue_token(&file, params("ci", None)).unwrap();
    let expired = issue_token(&file, params("old", Some(Duration::ZERO))).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains(token.expose()) && !format!("{token:?}").contains(token.expose()));
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);

    let tokens = Tokens::from_file(&file).unwrap();
    match tokens.check(token.expose()) {
        Checked::Valid(principal) => {
            assert_eq!((&*principal.name, principal.max_sessions), ("ci", Some(3)));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(tokens.check(expired.expose()), Checked::Expired));
    for wrong in ["", "x", &token.expose()[1..]] {
        assert!(matches!(tokens.check(wrong), Checked::Unknown));
    }
}

#[test]
fn a_changed_file_is_read_again_and_a_broken_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.json");
    let first = issue_token(&file, params("a", None)).unwrap();
    let tokens = Tokens::from_file(&file).unwrap();
    let second = issue_token(&file, params("a", None)).unwrap();
    tokens.refresh();
    assert!(
        matches!(tokens.check(first.expose()), Checked::Unknown),
        "the old one of that name is gone"
    );
    assert!(matches!(tokens.check(second.expose()), Checked::Valid(_)));
    std::fs::write(&file, "{ broken").unwrap();
    tokens.refresh();
    assert!(matches!(tokens.check(second.expose()), Checked::Valid(_)));
}

#[test]
fn a_bad_entry_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.json");
    let hash = "0".repeat(64);
    let table = [
        (
            r#"{"tokens":[{"name":"n","sha256":"12"}]}"#.to_owned(),
            "token n: sha256",
        ),
        (
            format!(r#"{{"tokens":[{{"name":"n","sha256":"{hash}","expires":"soon"}}]}}"#),
            "token n: expires",
        ),
        (
            format!(r#"{{"tokens":[{{"name":"n","sha256":"{hash}","scope":"/no/such"}}]}}"#),
            "token n: scope",
        ),
        (
            format!(r#"{{"tokens":[{{"name":"n","sha256":"{hash}","expire":"x"}}]}}"#),
            "tokens file",
        ),
    ];
    for (text, expected) in table {
        std::fs::write(&file, text).unwrap();
        let error = Tokens::from_file(&file).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
