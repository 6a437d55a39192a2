//! Event streams as a client reads them.

use reqwest::Response;
use serde_json::Value;

use super::TEST_TIMEOUT;

/// The events of a response, as they come.
pub(crate) struct Events {
    response: Response,
    buffer: String,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

impl Events {
    pub(crate) fn of(response: Response) -> Self {
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            buffer: String::new(),
        }
    }

    /// The next event with data; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.next_where(|event| !event.data.is_empty()).await
    }

    /// The id of the next event, with data or without.
    pub(crate) async fn next_id(&mut self) -> String {
        let event = self.next_where(|event| event.id.is_some()).await;
        event.and_then(|event| event.id).expect("an event")
    }

    async fn next_where(&mut self, wanted: impl Fn(&Event) -> bool) -> Option<Event> {
        loop {
            while let Some((block, rest)) = self.buffer.split_once("\n\n") {
                let mut event = Event::default();
                for line in block.lines() {
                    match line.split_once(": ") {
                        Some(("id", value)) => event.id = Some(value.to_owned()),
                        Some(("event", value)) => event.name = Some(value.to_owned()),
                        Some(("data", value)) => event.data.push_str(value),
                        _ => {}
                    }
                }
                self.buffer = rest.to_owned();
                if wanted(&event) {
                    return Some(event);
                }
            }
            let chunk = tokio::time::timeout(TEST_TIMEOUT, self.response.chunk())
                .await
                .expect("an event or the end");
            self.buffer.push_str(std::str::from_utf8(&chunk.ok()??).unwrap());
        }
    }

    pub(crate) async fn next_json(&mut self) -> Value {
        self.next().await.expect("an event").json()
    }

    /// Everything up to the end of the stream.
    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event.json());
        }
        all
    }
}
