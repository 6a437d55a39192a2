//! The client's first message: who it is and what it can do, in either era. It is read ahead, not consumed.

use std::io::Cursor;

use rmcp::model::{ClientCapabilities, ClientConfig, Implementation};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

/// As long as rmcp's longest line.
const LONGEST_LINE: u64 = 16 * 1024 * 1024;

/// What the first message says, and the input with that message still in it.
pub(super) struct Greeting<R> {
    pub(super) client: ClientConfig,
    /// Of the request, to which an answer is owed.
    pub(super) id: Option<Value>,
    pub(super) input: R,
}

/// Reads up to the first message; `None` when the client leaves without a word.
pub(super) async fn read<R>(
    input: R,
) -> std::io::Result<Option<Greeting<impl AsyncRead + Send + Unpin + 'static>>>
where
    R: AsyncRead + Send + Unpin + 'static,
{
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    if (&mut input)
        .take(LONGEST_LINE)
        .read_until(b'\n', &mut line)
        .await?
        == 0
    {
        return Ok(None);
    }
    let message: Value = serde_json::from_slice(&line).unwrap_or_default();
    Ok(Some(Greeting {
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
        // A client that does not read is told by the exit code.
        let _ = output.write_all(format!("{error}\n").as_bytes()).await;
    }
    let _ = output.flush().await;
}

/// The first code that JSON-RPC leaves to servers.
const UNREACHABLE: i32 = -32000;

fn client_of(message: &Value) -> ClientConfig {
    let params = &message["params"];
    let meta = |key: &str| &params["_meta"][format!("io.modelcontextprotocol/{key}")];
    let (info, capabilities) = match message["method"].as_str() {
        Some("initialize") => (&params["clientInfo"], &params["capabilities"]),
        _ => (meta("clientInfo"), meta("clientCapabilities")),
    };
    let capabilities = ClientCapabilities::deserialize(capabilities).unwrap_or_default();
    let info = Implementation::deserialize(info)
        .unwrap_or_else(|_| Implementation::new("ahma_mcp", env!("CARGO_PKG_VERSION")));
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
            let mut greeting = read(Cursor::new(text.clone())).await.unwrap().unwrap();
            assert_eq!(greeting.client.client_info.name, "c");
            assert!(greeting.client.capabilities.roots.is_some());
            let mut all = String::new();
            greeting.input.read_to_string(&mut all).await.unwrap();
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
