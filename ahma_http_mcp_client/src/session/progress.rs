//! Takes progress notifications out of the message flow, in order, and hands each to the request it belongs to.
//!
//! rmcp runs every notification in a task of its own, so there they may overtake each other and even the
//! response. Here they are routed where messages arrive one after the other: in the transport.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ProgressNotificationParam, ProgressToken, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::transport::Transport;
use tokio::sync::mpsc;

/// Progress that arrives before its request has told us its token; only the newest matter.
const EARLY_LIMIT: usize = 64;

/// Who wants which progress.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgressRoutes(Arc<Mutex<Routes>>);

#[derive(Debug, Default)]
struct Routes {
    sinks: HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>,
    early: VecDeque<ProgressNotificationParam>,
}

/// Ends the route when dropped.
#[derive(Debug)]
pub(crate) struct Route {
    routes: ProgressRoutes,
    token: ProgressToken,
}

impl ProgressRoutes {
    pub(crate) fn add(&self, token: ProgressToken, sink: mpsc::Sender<ProgressNotificationParam>) -> Route {
        let mut routes = self.lock();
        let early = std::mem::take(&mut routes.early);
        let (mine, others): (Vec<_>, Vec<_>) = early
            .into_iter()
            .partition(|progress| progress.progress_token == token);
        routes.early = others.into();
        for progress in mine {
            let _ = sink.try_send(progress);
        }
        routes.sinks.insert(token.clone(), sink);
        Route {
            routes: self.clone(),
            token,
        }
    }

    /// A sink that is full loses this one: a slow reader must not hold up the connection.
    fn deliver(&self, progress: ProgressNotificationParam) {
        let mut routes = self.lock();
        if let Some(sink) = routes.sinks.get(&progress.progress_token) {
            let _ = sink.try_send(progress);
            return;
        }
        if routes.early.len() == EARLY_LIMIT {
            routes.early.pop_front();
        }
        routes.early.push_back(progress);
    }

    fn lock(&self) -> MutexGuard<'_, Routes> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.routes.lock().sinks.remove(&self.token);
    }
}

/// A transport whose progress notifications go to their routes.
pub(crate) struct Tapped<T> {
    pub(crate) inner: T,
    pub(crate) routes: ProgressRoutes,
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
                message => return Some(message),
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
