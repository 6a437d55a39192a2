use super::*;

#[test]
fn an_older_client_is_answered_in_its_own_revision() {
    let greeting = r#"{"capabilities":{},"protocolVersion":"2025-11-25","serverInfo":{"name":"x"}}"#;
    let table = [
        (Some("2025-03-26"), "2025-03-26"),
        (Some("2025-11-25"), "2025-11-25"),
        (Some("2026-07-28"), "2025-11-25"),
        (Some("1999-01-01"), "2025-11-25"),
        (Some("2025-11-25\""), "2025-11-25"),
        (None, "2025-11-25"),
    ];
    for (wanted, agreed) in table {
        let (result, version) = with_version(greeting, wanted);
        assert_eq!(version, agreed, "{wanted:?}");
        assert_eq!(result, greeting.replace("2025-11-25", agreed));
    }
}

#[test]
fn roots_are_offered_by_their_key() {
    let support = |capabilities: &str| {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"capabilities":{capabilities}}}}}"#
        );
        roots_support(&Envelope::parse(text.as_bytes()).unwrap())
    };
    assert_eq!(support("{}"), RootsSupport::Missing);
    assert_eq!(support("null"), RootsSupport::Missing);
    assert_eq!(support(r#"{"sampling":{}}"#), RootsSupport::Missing);
    assert_eq!(support(r#"{"roots":{}}"#), RootsSupport::Offered);
    assert_eq!(
        support(r#"{"roots":{"listChanged":true}}"#),
        RootsSupport::Offered
    );
}
