use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use super::*;
use crate::auth::token_file::write_file;
use crate::auth::{TokenParams, issue_token};

fn params(name: &str, lifetime: Option<Duration>) -> TokenParams {
    TokenParams {
        role: Role::Agent,
        tools: None,
        name: name.to_owned(),
        lifetime,
        scope: None,
        max_sessions: Some(3),
    }
}

fn issued(file: &Path, params: TokenParams) -> Secret {
    issue_token(file, params).unwrap().token
}

#[test]
fn an_issued_token_is_known_by_its_hash_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.json");
    let token = issued(&file, params("ci", None));
    let expired = issued(&file, params("old", Some(Duration::ZERO)));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains(token.expose()) && !format!("{token:?}").contains(token.expose()));
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);

    let tokens = Tokens::from_file(&file, Isolation::Shared, 16).unwrap();
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
fn a_changed_file_is_read_again_and_a_broken_one_admits_no_client() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.json");
    let first = issued(&file, params("a", None));
    let tokens = Tokens::from_file(&file, Isolation::Shared, 16).unwrap();
    let second = issued(&file, params("a", None));
    tokens.refresh();
    assert!(
        matches!(tokens.check(first.expose()), Checked::Unknown),
        "the old one of that name is gone"
    );
    assert!(matches!(tokens.check(second.expose()), Checked::Valid(_)));
    let good = std::fs::read(&file).unwrap();
    for spoil in [
        |file: &Path| std::fs::write(file, "{ broken"),
        |file: &Path| std::fs::write(file, ""),
        |file: &Path| std::fs::remove_file(file),
        |file: &Path| std::fs::remove_file(file).and_then(|()| std::fs::create_dir(file)),
    ] {
        std::fs::write(&file, &good).unwrap();
        tokens.refresh();
        assert!(matches!(tokens.check(second.expose()), Checked::Valid(_)));
        spoil(&file).unwrap();
        tokens.refresh();
        assert!(matches!(tokens.check(second.expose()), Checked::NoFile));
    }
}

#[test]
fn an_entry_that_went_bad_shuts_out_its_client_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.json");
    let scope = directory.path().join("scope");
    std::fs::create_dir(&scope).unwrap();
    let (good, revoked) = (
        issued(&file, params("good", None)),
        issued(&file, params("revoked", None)),
    );
    let confined = TokenParams {
        scope: Some(scope.clone()),
        ..params("confined", None)
    };
    let confined = issued(&file, confined);
    let tokens = Tokens::from_file(&file, Isolation::PerSession, 16).unwrap();
    std::fs::remove_dir(&scope).unwrap();
    let mut left = read_file(&file).unwrap();
    left.tokens.retain(|entry| entry.name != "revoked");
    write_file(&file, &left).unwrap();
    tokens.refresh();
    assert!(matches!(tokens.check(good.expose()), Checked::Valid(_)));
    for out in [revoked, confined] {
        assert!(matches!(tokens.check(out.expose()), Checked::Unknown));
    }
}

#[test]
fn a_bad_entry_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.json");
    let hash = "0".repeat(64);
    let table = [
        (
            r#"{"tokens":[{"name":"n","sha256":"12"}]}"#.to_owned(),
            "token `n` has a sha256",
        ),
        (
            format!(r#"{{"tokens":[{{"name":"n","sha256":"{hash}","expires":"soon"}}]}}"#),
            "token `n` has a wrong expires",
        ),
        (
            format!(r#"{{"tokens":[{{"name":"n","sha256":"{hash}","scope":"/no/such"}}]}}"#),
            "token `n` has a scope that cannot be used",
        ),
        (
            format!(r#"{{"tokens":[{{"name":"n","sha256":"{hash}","expire":"x"}}]}}"#),
            "tokens file",
        ),
        (
            format!(r#"{{"tokens":[{{"name":" ","sha256":"{hash}"}}]}}"#),
            "token ` ` needs a name",
        ),
        (
            format!(
                r#"{{"tokens":[{{"name":"n","sha256":"{hash}"}},{{"name":"n","sha256":"{}"}}]}}"#,
                "1".repeat(64)
            ),
            "token `n` is there more than once",
        ),
        ("[]".to_owned(), "tokens file"),
        ("".to_owned(), "tokens file"),
        (
            format!(r#"{{"tokens":[{{"name":"n","sha256":"{hash}","scope":"/"}}]}}"#),
            "token `n` is confined to a scope, which only --session-isolation keeps",
        ),
    ];
    for (text, expected) in table {
        std::fs::write(&file, text).unwrap();
        let error = Tokens::from_file(&file, Isolation::Shared, 16)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("tokens file") && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn a_token_with_a_scope_that_cannot_be_enforced_is_not_admitted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.json");
    let free = issued(&file, params("free", None));
    let shared = Tokens::from_file(&file, Isolation::Shared, 16).unwrap();
    let isolated = Tokens::from_file(&file, Isolation::PerSession, 16).unwrap();
    let scope = Some(directory.path().to_owned());
    let confined = issued(
        &file,
        TokenParams {
            scope,
            ..params("confined", None)
        },
    );
    for (tokens, admits_confined) in [(shared, false), (isolated, true)] {
        tokens.refresh();
        assert!(matches!(tokens.check(free.expose()), Checked::Valid(_)));
        let checked = tokens.check(confined.expose());
        assert_eq!(
            matches!(checked, Checked::Valid(_)),
            admits_confined,
            "{checked:?}"
        );
    }
}

#[test]
fn a_token_of_no_use_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.json");
    for (name, max_sessions) in [("", None), (" ", None), ("a\nb", None), ("ci", Some(0))] {
        let params = TokenParams {
            max_sessions,
            ..params(name, None)
        };
        assert!(issue_token(&file, params).is_err(), "{name:?} {max_sessions:?}");
    }
    for days in [99_999_999, u64::MAX / 86_400] {
        let endless = params("ci", Some(Duration::from_secs(days * 86_400)));
        let error = issue_token(&file, endless).unwrap_err();
        assert!(matches!(error, TokenError::Lifetime), "{days}: {error}");
    }
    assert!(!file.exists());
    assert!(!issue_token(&file, params("ci", None)).unwrap().replaced);
    assert!(issue_token(&file, params("ci", None)).unwrap().replaced);
}
