//! The HTTP+SSE transport of 2024-11-05, which rmcp does not have: one event stream in, one POST for each message out.
//!
//! A broken stream is a lost session there (nothing can be resumed), so it ends the transport and the layer above
//! connects anew. The server's `endpoint` must be on its own origin: it is where our credentials go.

use std::{collections::HashMap, sync::Arc};

use futures::{StreamExt, stream::BoxStream};
use http::{HeaderName, HeaderValue};
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::Sse;
use tokio::sync::mpsc;
use url::Url;

use super::{HttpMcpError, client::RemoteHttp};

/// Answers that came with the POST itself, waiting to be received.
const INLINE_ANSWERS: usize = 64;

pub(super) struct LegacySse {
    client: RemoteHttp,
    events: BoxStream<'static, Result<Sse, SseError>>,
    endpoint: Arc<str>,
    headers: HashMap<HeaderName, HeaderValue>,
    inline_tx: mpsc::Sender<ServerJsonRpcMessage>,
    inline_rx: mpsc::Receiver<ServerJsonRpcMessage>,
}

impl LegacySse {
    pub(super) async fn connect(
        client: RemoteHttp,
        url: &Url,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Self, HttpMcpError> {
        let mut events = client
            .get_stream(url.as_str().into(), None, None, None, headers.clone())
            .await?;
        let endpoint = loop {
            match events.next().await {
                Some(Ok(event)) if event.event.as_deref() == Some("endpoint") => {
                    break endpoint_of(url, event.data.as_deref().unwrap_or_default())?;
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err(unexpected("the event stream ended before it named an endpoint")),
            }
        };
        let (inline_tx, inline_rx) = mpsc::channel(INLINE_ANSWERS);
        let endpoint = endpoint.as_str().into();
        Ok(Self {
            client,
            events,
            endpoint,
            headers,
            inline_tx,
            inline_rx,
        })
    }

    pub(super) fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), HttpMcpError>> + Send + 'static {
        let (client, endpoint, headers) = (
            self.client.clone(),
            Arc::clone(&self.endpoint),
            self.headers.clone(),
        );
        let inline = self.inline_tx.clone();
        async move {
            match client.post_message(endpoint, message, None, None, headers).await {
                Ok(StreamableHttpPostResponse::Json(answer, _)) => inline
                    .send(answer)
                    .await
                    .map_err(|_| StreamableHttpError::TransportChannelClosed),
                // 200 with a word of prose is how some servers say "accepted".
                Ok(_) | Err(StreamableHttpError::UnexpectedContentType(_)) => Ok(()),
                Err(error) => Err(error),
            }
        }
    }

    pub(super) async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let event = tokio::select! {
                Some(answer) = self.inline_rx.recv() => return Some(answer),
                event = self.events.next() => match event? {
                    Ok(event) => event,
                    Err(error) => {
                        tracing::debug!(%error, "the event stream broke");
                        return None;
                    }
                },
            };
            if !matches!(event.event.as_deref(), None | Some("" | "message")) {
                continue;
            }
            match event.data.as_deref().map(serde_json::from_str) {
                Some(Ok(message)) => return Some(message),
                Some(Err(error)) => tracing::warn!(%error, "skipped an event that is not a message"),
                None => {}
            }
        }
    }

    pub(super) fn close(&mut self) {
        self.events = futures::stream::empty().boxed();
    }
}

fn endpoint_of(stream: &Url, data: &str) -> Result<Url, HttpMcpError> {
    let endpoint = stream
        .join(data.trim())
        .map_err(|error| unexpected(format!("bad endpoint: {error}")))?;
    if endpoint.origin() != stream.origin() {
        return Err(unexpected(format!(
            "the server names an endpoint of another origin: {endpoint}"
        )));
    }
    Ok(endpoint)
}

fn unexpected(text: impl Into<String>) -> HttpMcpError {
    StreamableHttpError::UnexpectedServerResponse(text.into().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_stays_on_the_origin() {
        let stream = Url::parse("http://localhost:3001/sse").unwrap();
        for (data, expected) in [
            (
                "/message?sessionId=1",
                Some("http://localhost:3001/message?sessionId=1"),
            ),
            ("message", Some("http://localhost:3001/message")),
            ("http://localhost:3001/x", Some("http://localhost:3001/x")),
            ("http://localhost:3002/x", None),
            ("https://evil.example/x", None),
        ] {
            assert_eq!(
                endpoint_of(&stream, data).ok().map(String::from).as_deref(),
                expected,
                "{data}"
            );
        }
    }
}
