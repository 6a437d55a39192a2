//! A transport with two messages taken out of its flow, where they still are in order.
//!
//! Progress: rmcp runs every notification in a task of its own, so there they may overtake each other and even the
//! response. Late answers to the probe: when a server is slow to start, rmcp falls back to `initialize` and would
//! then take the answer to `server/discover` for an error.

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ClientRequest, RequestId, ServerJsonRpcMessage, ServerNotification},
    transport::Transport,
};

use super::progress::ProgressRoutes;

pub(crate) struct Tapped<T> {
    inner: T,
    routes: ProgressRoutes,
    probe: Probe,
}

/// Progress of the probe for the era.
enum Probe {
    NotSent,
    Sent(RequestId),
    /// Its answer is no longer waited for.
    GivenUp(RequestId),
}

impl<T> Tapped<T> {
    pub(crate) fn new(inner: T, routes: ProgressRoutes) -> Self {
        Self {
            inner,
            routes,
            probe: Probe::NotSent,
        }
    }

    fn note(&mut self, message: &ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(request) = message else {
            return;
        };
        match (&request.request, &self.probe) {
            (ClientRequest::DiscoverRequest(_), _) => self.probe = Probe::Sent(request.id.clone()),
            (ClientRequest::InitializeRequest(_), Probe::Sent(probe)) => {
                self.probe = Probe::GivenUp(probe.clone())
            }
            _ => {}
        }
    }

    fn is_late(&self, message: &ServerJsonRpcMessage) -> bool {
        let answered = match message {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        matches!(&self.probe, Probe::GivenUp(probe) if answered == Some(probe))
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tapped<T> {
    type Error = T::Error;

    fn name() -> std::borrow::Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.note(&message);
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.inner.receive().await? {
                ServerJsonRpcMessage::Notification(message) => match message.notification {
                    ServerNotification::ProgressNotification(progress) => {
                        self.routes.deliver(progress.params)
                    }
                    notification => return Some(ServerJsonRpcMessage::notification(notification)),
                },
                message if self.is_late(&message) => tracing::debug!("dropped a late answer to the probe"),
                message => return Some(message),
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use rmcp::transport::async_rw::AsyncRwTransport;
    use tokio::io::AsyncWriteExt;

    use super::*;

    fn message(text: &str) -> ClientJsonRpcMessage {
        serde_json::from_str(text).unwrap()
    }

    #[tokio::test]
    async fn a_late_answer_to_the_probe_is_dropped_and_no_other() {
        let (near, mut far) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(near);
        let mut tapped = Tapped::new(AsyncRwTransport::new(read, write), ProgressRoutes::default());
        let answer = |id: u32| {
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":1,\"message\":\"m{id}\"}}}}\n")
        };
        let id_of = |message: Option<ServerJsonRpcMessage>| match message {
            Some(ServerJsonRpcMessage::Error(error)) => error.id.unwrap().to_string(),
            other => panic!("{other:?}"),
        };
        let discover = r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{}}"#;
        tapped.send(message(discover)).await.unwrap();
        far.write_all(answer(0).as_bytes()).await.unwrap();
        assert_eq!(id_of(tapped.receive().await), "0", "an answer in time");
        tapped.send(message(discover)).await.unwrap();
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"n","version":"1"}}}"#;
        tapped.send(message(initialize)).await.unwrap();
        far.write_all((answer(0) + &answer(1)).as_bytes()).await.unwrap();
        assert_eq!(id_of(tapped.receive().await), "1");
    }
}
