use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

use super::*;

struct Client {
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    input: Option<WriteHalf<DuplexStream>>,
}

type ServerSide = LineTransport<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>;

fn connected() -> (Client, ServerSide, CancellationToken) {
    let (client, server) = tokio::io::duplex(1 << 20);
    let (read, write) = tokio::io::split(server);
    let gone = CancellationToken::new();
    let transport = LineTransport::new(read, write, gone.clone());
    let (read, write) = tokio::io::split(client);
    (
        Client {
            output: BufReader::new(read).lines(),
            input: Some(write),
        },
        transport,
        gone,
    )
}

impl Client {
    async fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("still open");
        input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .expect("written");
    }

    async fn hear(&mut self) -> serde_json::Value {
        let next = tokio::time::timeout(Duration::from_secs(60), self.output.next_line());
        let line = next.await.expect("in time").expect("readable").expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }
}

fn id_of(message: &RxJsonRpcMessage<RoleServer>) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#;

#[tokio::test]
async fn what_is_no_message_is_answered_and_the_next_one_is_read() {
    for (line, code, id) in [
        ("not json", -32700, None),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping""#, -32700, None),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, None),
        (r#"{"id":7,"colour":"red"}"#, -32600, Some(7)),
        ("42", -32600, None),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, None),
        (
            r#"{"jsonrpc":"2.0","id":[7],"method":"tools/call","params":{"name":"x"}}"#,
            -32600,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}"#,
            -32602,
            Some(7),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":3}}"#,
            -32602,
            Some(7),
        ),
        (
            r#"{"jsonrpc":"1.0","id":7,"method":"ping","params":[1]}"#,
            -32600,
            Some(7),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"id":7,"method":"ping"}"#,
            -32600,
            Some(7),
        ),
    ] {
        let (mut client, mut server, _gone) = connected();
        client.say(line).await;
        client.say(INITIALIZE).await;
        let message = server.receive().await.expect("the next message");
        assert_eq!(id_of(&message), Some(RequestId::Number(1)), "{line}");
        let answer = client.hear().await;
        assert_eq!(answer["error"]["code"], code, "{line}");
        assert_eq!(answer["id"].as_i64(), id, "{line}");
    }
}

#[tokio::test]
async fn a_request_with_a_value_that_cannot_be_read_is_answered_by_its_id() {
    let too_deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    for value in [r#""\ud800""#, "1e999", &too_deep] {
        let (mut client, mut server, _gone) = connected();
        client.say(&format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"x","arguments":{{"a":{value}}}}}}}"#)).await;
        // An answer is not answered.
        client
            .say(&format!(r#"{{"jsonrpc":"2.0","id":8,"result":{value}}}"#))
            .await;
        client.say(INITIALIZE).await;
        server.receive().await.expect("the next message");
        let answer = client.hear().await;
        assert_eq!(answer["error"]["code"], -32700, "{value}");
        assert_eq!(answer["id"], 7, "{value}");
        let answer = client.hear().await;
        assert_eq!(answer.get("id"), None, "{value}");
    }
}

#[test]
fn a_subscription_to_more_than_can_be_compared_in_time_is_refused() {
    let listen = |count: usize| {
        let uris: Vec<_> = (0..count)
            .map(|number| format!("ahma://operations/{number}"))
            .collect();
        serde_json::json!({
            "jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen",
            "params": {"notifications": {"resourceSubscriptions": uris}},
        })
        .to_string()
    };
    assert!(parse(listen(MAX_SUBSCRIPTIONS).as_bytes()).is_ok());
    match parse(listen(MAX_SUBSCRIPTIONS + 1).as_bytes()) {
        Err(Unfit::Refuse(Some(RequestId::Number(7)), error)) => {
            assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
            assert!(error.message.contains("1025 resources"), "{error:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_is_read_as_rmcp_would_read_it() {
    let call =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
    let meta = r#"{"progressToken":"t","io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    let plain = [
        call(r#"{"name":"x"}"#),
        call(&format!(
            r#"{{"_meta":{meta},"name":"x","arguments":{{"a":[1,2.5,-3,1e3,null,"\u00e9"],"result":1}}}}"#
        )),
        r#"{"method":"tools/call","extra":1,"params":{"name":"x"},"id":"seven","jsonrpc":"2.0"}"#.to_owned(),
    ];
    for line in &plain {
        assert!(parse_call(line.as_bytes()).is_some(), "{line}");
    }
    let others = [
        call(r#"{"nom":"x"}"#),
        call(r#"{"name":5}"#),
        call(r#"{"name":"x","arguments":[]}"#),
        call(r#"{"name":"x","_meta":5}"#),
        call("[]"),
        call("null"),
        call(r#"{"name":"x","name":"y"}"#),
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"x"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"x"}}"#.to_owned(),
        r#"{"jsonrpc":"1.0","id":7,"method":"tools/call","params":{"name":"x"}}"#.to_owned(),
        r#"{"id":7,"method":"tools/call","params":{"name":"x"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"},"result":null}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"},"\u0065rror":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"tools/call","params":{"name":"x"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/call","params":{"name":"x"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":7,"method":"no/such","params":{"name":"tools/call"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":7,"result":{"method":"tools/call"}}"#.to_owned(),
        r#"[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}]"#.to_owned(),
        format!("{} trailing", plain[0]),
    ];
    for line in &others {
        assert!(parse_call(line.as_bytes()).is_none(), "{line}");
    }
    for line in plain {
        let by_rmcp: RxJsonRpcMessage<RoleServer> = serde_json::from_str(&line).expect("a message");
        let read = parse(line.as_bytes()).expect("a message");
        // Shows what is beside the message, too, which is no part of its equality.
        assert_eq!(format!("{read:?}"), format!("{by_rmcp:?}"), "{line}");
    }
}

#[tokio::test]
async fn only_a_request_opens_the_session() {
    let (mut client, mut server, _gone) = connected();
    client
        .say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    client.say(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#).await;
    client.say(INITIALIZE).await;
    assert_eq!(
        id_of(&server.receive().await.expect("a message")),
        Some(RequestId::Number(1))
    );
    client
        .say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    assert!(matches!(
        server.receive().await,
        Some(JsonRpcMessage::Notification(_))
    ));
}

#[tokio::test]
async fn an_id_is_refused_only_while_its_request_is_open() {
    let (mut client, mut server, _gone) = connected();
    client.say(INITIALIZE).await;
    client.say(INITIALIZE).await;
    client.say(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    assert_eq!(
        id_of(&server.receive().await.expect("the first")),
        Some(RequestId::Number(1))
    );
    assert_eq!(
        id_of(&server.receive().await.expect("the ping")),
        Some(RequestId::Number(2))
    );
    let refusal = client.hear().await;
    assert_eq!(refusal["error"]["code"], -32600);
    assert!(refusal.get("id").is_none(), "{refusal}");

    server
        .send(TxJsonRpcMessage::<RoleServer>::error(
            ErrorData::internal_error("over", None),
            Some(RequestId::Number(1)),
        ))
        .await
        .expect("sent");
    client.say(INITIALIZE).await;
    assert_eq!(
        id_of(&server.receive().await.expect("free again")),
        Some(RequestId::Number(1))
    );
}

#[tokio::test]
async fn the_end_of_input_is_told_even_if_a_request_is_never_answered() {
    let (mut client, mut server, gone) = connected();
    client.say(INITIALIZE).await;
    server.receive().await.expect("the request");
    client.input = None;
    drop(client);
    assert!(server.receive().await.is_none());
    assert!(gone.is_cancelled());
}
