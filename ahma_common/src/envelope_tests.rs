use super::*;

fn kind_of(text: &str) -> String {
    match Envelope::parse(text.as_bytes()) {
        Ok(envelope) => match envelope.kind {
            Kind::Request { id, method } => format!("request {id} {method}"),
            Kind::Notification { method } => format!("notification {method}"),
            Kind::Response { id, error_code } => format!("response {id} {error_code:?}"),
        },
        Err(error) => error.code().to_string(),
    }
}

#[test]
fn every_text_has_one_kind() {
    let table = [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping"),
        (
            r#"{"jsonrpc":"2.0","id":"a\"b","method":"ping"}"#,
            r#"request "a\"b" ping"#,
        ),
        (r#" {"method":"x","jsonrpc":"2.0","id":1.50}"#, "request 1.50 x"),
        (
            r#"{"jsonrpc":"2.0","\u0069d":7,"method":"ping"}"#,
            "request 7 ping",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
            "notification notifications/x",
        ),
        (r#"{"jsonrpc":"2.0","id":3,"result":null}"#, "response 3 None"),
        (
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-5,"message":"m"}}"#,
            "response 3 Some(-5)",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-5,"message":"m"}}"#,
            "response null Some(-5)",
        ),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "-32600"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "-32600"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, "-32600"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, "-32600"),
        (r#"{"id":1,"method":"ping"}"#, "-32600"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "-32600"),
        (r#"["2.0",1,"ping"]"#, "-32600"),
        (r#""text""#, "-32600"),
        ("{", "-32700"),
        ("", "-32700"),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\nb\"}", "-32700"),
    ];
    for (text, expected) in table {
        assert_eq!(kind_of(text), expected, "{text}");
    }
    assert!(matches!(
        Envelope::parse(b"\xff\xfe"),
        Err(EnvelopeError::NotJson(_))
    ));
}

#[test]
fn an_edit_changes_only_its_own_place() {
    let text = "{\"jsonrpc\": \"2.0\",\n \"params\":{\"a\":1e2,\"_meta\":{\"progressToken\":\"t\",\"x\":1}},\r\n\"id\":\"one\",\"method\":\"m\"}";
    let envelope = Envelope::parse(text.as_bytes()).unwrap();
    let Kind::Request { id, .. } = envelope.kind else {
        panic!("{envelope:?}")
    };
    let token = envelope.params().unwrap().meta().unwrap().progress_token.unwrap();
    let edits = vec![
        Edit {
            span: envelope.span(id),
            text: "41".to_owned(),
        },
        Edit {
            span: envelope.span(token),
            text: "42".to_owned(),
        },
    ];
    assert_eq!(
        splice(text, edits),
        "{\"jsonrpc\": \"2.0\",  \"params\":{\"a\":1e2,\"_meta\":{\"progressToken\":42,\"x\":1}},  \"id\":41,\"method\":\"m\"}"
    );
}

#[test]
fn a_key_given_twice_is_refused_where_it_would_matter() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#;
    let envelope = Envelope::parse(text.as_bytes()).unwrap();
    assert!(envelope.params().is_err());
}

#[test]
fn params_that_are_no_object_have_no_fields() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":["a","b"]}"#;
    let envelope = Envelope::parse(text.as_bytes()).unwrap();
    assert!(envelope.params().unwrap().name.is_none());
}

#[test]
fn a_batch_is_seen_and_taken_apart() {
    assert!(is_batch(b" [1]") && !is_batch(b"{}") && !is_batch(b""));
    assert_eq!(batch_members(br#"[{"a":1},2]"#).unwrap().len(), 2);
    assert!(batch_members(b"[]").is_err());
    let batch = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    assert!(batch_members(batch(MAX_BATCH).as_bytes()).is_ok());
    assert!(batch_members(batch(MAX_BATCH + 1).as_bytes()).is_err());
}

#[test]
fn ids_and_progress_tokens_are_short() {
    let longest = "x".repeat(MAX_ID_BYTES - 2);
    for (text, expected) in [(longest.clone(), true), (longest + "x", false)] {
        let id = format!(r#"{{"jsonrpc":"2.0","id":"{text}","method":"ping"}}"#);
        assert_eq!(Envelope::parse(id.as_bytes()).is_ok(), expected);
        let token = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"_meta":{{"progressToken":"{text}"}}}}}}"#
        );
        let envelope = Envelope::parse(token.as_bytes()).unwrap();
        assert_eq!(envelope.params().unwrap().meta().is_ok(), expected);
    }
}

#[test]
fn the_keys_of_meta_are_those_of_the_contract() {
    use crate::contract::{
        META_CLIENT, META_CLIENT_CAPABILITIES, META_PRINCIPAL, META_PROGRAM, META_PROTOCOL_VERSION,
        META_RELATED_REQUEST, META_SUBSCRIPTION_ID,
    };
    let meta = serde_json::json!({
        META_CLIENT: 1, META_RELATED_REQUEST: 2, META_PROTOCOL_VERSION: 3, META_CLIENT_CAPABILITIES: 4,
        META_SUBSCRIPTION_ID: 5, META_PRINCIPAL: 6, META_PROGRAM: 7,
    });
    let text =
        serde_json::json!({ "jsonrpc": "2.0", "method": "x", "params": { "_meta": meta } }).to_string();
    let meta = Envelope::parse(text.as_bytes())
        .unwrap()
        .params()
        .unwrap()
        .meta()
        .unwrap();
    let found = [
        meta.client,
        meta.related_request,
        meta.protocol_version,
        meta.client_capabilities,
        meta.subscription_id,
        meta.principal,
        meta.program,
    ];
    assert_eq!(
        found.map(|value| value.unwrap().get()),
        ["1", "2", "3", "4", "5", "6", "7"]
    );
}
