//! Hands progress to the request it belongs to. [`super::tap`] feeds it in the order of arrival.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::mpsc;

/// Progress that arrives before its request has told us its token; only the newest matter.
const EARLY_LIMIT: usize = 64;

/// The receivers of progress, by token.
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
        let mut routes = self.0.lock();
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
    pub(super) fn deliver(&self, progress: ProgressNotificationParam) {
        let mut routes = self.0.lock();
        if let Some(sink) = routes.sinks.get(&progress.progress_token) {
            let _ = sink.try_send(progress);
            return;
        }
        if routes.early.len() == EARLY_LIMIT {
            routes.early.pop_front();
        }
        routes.early.push_back(progress);
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.routes.0.lock().sinks.remove(&self.token);
    }
}
