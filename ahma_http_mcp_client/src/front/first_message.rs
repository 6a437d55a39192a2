//! The client's first message, which tells its name and capabilities in either era. It is read ahead, not consumed.

use std::io::Cursor;

use ahma_common::contract::{META_CLIENT_CAPABILITIES, META_CLIENT_INFO};
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use crate::name::CLIENT_NAME;

/// The limit of rmcp.
const MAX_LINE: u64 = 16 * 1024 * 1024;

/// The client that the first message describes, and the input with that message still in it.
pub(super) struct FirstMessage<R> {
    pub(super) client: ClientConfig,
    /// The id of the request, to which an answer is owed.
    pub(super) id: Option<Value>,
    pub(super) input: R,
}

/// Reads up to the first message; `None` when the client leaves without one.
pub(super) async fn read<R>(
    input: R,
) -> std::io::Result<Option<FirstMessage<impl AsyncRead + Send + Unpin + 'static>>>
where
    R: AsyncRead + Send + Unpin + 'static,
{
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    if (&mut input).take(MAX_LINE).read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    let message: Value = serde_json::from_slice(&line).unwrap_or_default();
    Ok(Some(FirstMessage {
        client: client_of(&message),
        id: message.get("id").cloned(),
        input: Cursor::new(line).chain(input),
    }))
}

/// The requests to which an answer is owed: the first one, and those among what was read ahead.
pub(super) fn owed(first: Option<Value>, read_ahead: &[u8]) -> Vec<Value> {
    let mut ids = Vec::from_iter(first);
    for line in read_ahead.split(|byte| *byte == b'\n') {
        let message: Value = serde_json::from_slice(line).unwrap_or_default();
        if let (Some(id), Some(_)) = (message.get("id"), message.get("method"))
            && !ids.contains(id)
        {
            ids.push(id.clone());
        }
    }
    ids
}

/// Answers the requests of a client that cannot be served, so that it can show why.
pub(super) async fn refuse(mut output: impl AsyncWrite + Unpin, ids: Vec<Value>, reason: &str) {
    for id in ids {
        let error =
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": UNREACHABLE, "message": reason } });
        // For a client that does not read there is the exit code.
        let _ = output.write_all(format!("{error}\n").as_bytes()).await;
    }
    let _ = output.flush().await;
}

/// The first code that JSON-RPC leaves to servers.
const UNREACHABLE: i32 = -32000;

fn client_of(message: &Value) -> ClientConfig {
    let params = &message["params"];
    let meta = |key: &str| &params["_meta"][key];
    let (info, capabilities) = match message["method"].as_str() {
        Some("initialize") => (&params["clientInfo"], &params["capabilities"]),
        _ => (meta(META_CLIENT_INFO), meta(META_CLIENT_CAPABILITIES)),
    };
    let capabilities = ClientCapabilities::deserialize(capabilities).unwrap_or_default();
    let info = Implementation::deserialize(info)
        .unwrap_or_else(|_| Implementation::new(CLIENT_NAME, env!("CARGO_PKG_VERSION")));
    ClientConfig::new(capabilities, info)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_owed_an_answer_once() {
        let read = br#"{"id":1,"method":"initialize"}
{"method":"notifications/initialized"}
{"id":"a","method":"tools/list"}
{"id":9,"result":{}}
{"id":2,"meth"#;
        assert_eq!(owed(Some(json!(1)), read), [json!(1), json!("a")]);
        assert_eq!(owed(Some(json!(1)), b""), [json!(1)]);
        assert_eq!(owed(None, b""), Vec::<Value>::new());
    }

    #[tokio::test]
    async fn the_client_is_known_and_its_message_is_still_there() {
        let legacy = r#"{"method":"initialize","params":{"clientInfo":{"name":"c","version":"1"},"capabilities":{"roots":{}}}}"#;
        let modern = r#"{"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}"#;
        for message in [legacy, modern] {
            let text = format!("{message}\nmore");
            let mut first = read(Cursor::new(text.clone())).await.unwrap().unwrap();
            assert_eq!(first.client.client_info.name, "c");
            assert!(first.client.capabilities.roots.is_some());
            let mut all = String::new();
            first.input.read_to_string(&mut all).await.unwrap();
            assert_eq!(all, text);
        }
        assert!(read(Cursor::new("")).await.unwrap().is_none());
        assert_eq!(
            read(Cursor::new("junk\n"))
                .await
                .unwrap()
                .unwrap()
                .client
                .client_info
                .name,
            "ahma_mcp"
        );
    }
}
