use ahma_common::envelope::Kind;

use super::*;

const CLIENT: ClientId = 7;

/// Asks under `number`, and is answered.
fn ask(pending: &mut Pending, number: u64, request: &str) {
    insert(pending, number, request);
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{}}}}"#);
    let answer = Envelope::parse(answer.as_bytes()).unwrap();
    let Kind::Response { id, .. } = &answer.kind else {
        panic!("{answer:?}")
    };
    let over = pending.answer(number).expect("an open call");
    over.finish(&answer, id, None);
}

fn insert(pending: &mut Pending, number: u64, request: &str) {
    let request = Envelope::parse(request.as_bytes()).unwrap();
    let token = request.params().unwrap().meta().unwrap().progress_token;
    let (reply, _unused) = oneshot::channel();
    let params = CallParams {
        reply: Reply::Once(reply),
        client: CLIENT,
        principal: None,
        program: None,
        tools: None,
        timeout: Some(Duration::from_secs(60)),
        observer: None,
    };
    pending
        .insert(number, request.request().unwrap(), token, params)
        .unwrap();
}

fn progress(pending: &mut Pending, number: u64) -> Delivery {
    let progress = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{number},"progress":1}}}}"#
    );
    let progress = Envelope::parse(progress.as_bytes()).unwrap();
    let token = progress.params().unwrap().progress_token.unwrap();
    pending.deliver(&progress, token, Named::ProgressToken)
}

#[test]
fn late_progress_of_a_tool_finds_its_client_after_any_number_of_other_requests() {
    let mut pending = Pending::new();
    let call = r#"{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{"name":"build","_meta":{"progressToken":"token"}}}"#;
    ask(&mut pending, 1, call);
    for number in 2..=2 * MAX_ANSWERED as u64 {
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":3}}}"#;
        ask(&mut pending, number, list);
    }
    let Delivery::Client(CLIENT, message) = progress(&mut pending, 1) else {
        panic!("the call is forgotten")
    };
    assert!(String::from_utf8_lossy(&message).contains(r#""progressToken":"token""#));
    assert!(matches!(progress(&mut pending, 2), Delivery::Unknown));
}

#[test]
fn only_so_many_calls_are_remembered() {
    let mut pending = Pending::new();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build","_meta":{"progressToken":1}}}"#;
    for number in 1..=MAX_ANSWERED as u64 + 1 {
        ask(&mut pending, number, call);
    }
    assert!(matches!(progress(&mut pending, 1), Delivery::Unknown));
    assert!(matches!(progress(&mut pending, 2), Delivery::Client(CLIENT, _)));
}

#[test]
fn a_call_is_open_until_its_end_is_told() {
    let mut pending = Pending::new();
    insert(&mut pending, 1, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let over = pending.give_up(1).unwrap();
    assert_eq!(pending.unanswered(), 1);
    over.fail(CallFailure::Cancelled);
    assert_eq!(pending.unanswered(), 0);
}
