//! Answers that need no sandbox: `initialize` and `tools/list`. All other requests wait here until the sandbox is set up and
//! tested, and are refused if that fails.

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::ErrorData;
use tokio::sync::{Notify, watch};

use super::{error, server::Server, subscriptions::Subscriptions};
use crate::toolbox::{Toolbox, ToolboxHandle};

/// Everything needed to answer a client before there is a server.
#[derive(Debug)]
pub(super) struct Lobby {
    pub(super) instructions: String,
    pub(super) toolbox: ToolboxHandle,
    /// There are remote servers, whose tools are not known here.
    pub(super) has_remotes: bool,
    pub(super) shown: Arc<ShownTools>,
    /// Exists early, so that no change is missed while the sandbox is being set up.
    pub(super) subscriptions: Arc<Subscriptions>,
    pub(super) server: watch::Receiver<Arrival>,
    /// Notified when a request waits for the server.
    pub(super) needed: Arc<Notify>,
}

/// The server, as far as it is known.
#[derive(Debug, Clone)]
pub(super) enum Arrival {
    Awaited,
    Open(Arc<Server>),
    /// It will never come.
    Failed,
}

/// The oldest list of tools that a client may still take for the current one.
#[derive(Debug, Default)]
pub(super) struct ShownTools(Mutex<Option<Arc<Toolbox>>>);

impl ShownTools {
    /// Notes a list that a client is about to be shown. An older one stays: another client may have it.
    pub(super) fn note(&self, toolbox: &Arc<Toolbox>) {
        self.0.lock().get_or_insert_with(|| toolbox.clone());
    }

    /// Replaces the list by a newer one; true if a client would notice the difference and has to be told.
    pub(super) fn supersede(&self, newer: &Arc<Toolbox>) -> bool {
        let older = self.0.lock().replace(newer.clone());
        older.is_some_and(|older| !older.shows_the_same_as(newer))
    }

    pub(super) fn is_any(&self) -> bool {
        self.0.lock().is_some()
    }
}

impl Lobby {
    /// The server once its sandbox is proven, for a request that needs it.
    pub(super) async fn server(&self) -> Result<Arc<Server>, ErrorData> {
        if let Arrival::Open(server) = &*self.server.borrow() {
            return Ok(Arc::clone(server));
        }
        self.needed.notify_one();
        self.arrived().await
    }

    /// The server once it exists; does not ask for it.
    pub(super) async fn arrived(&self) -> Result<Arc<Server>, ErrorData> {
        let mut arrival = self.server.clone();
        let arrived = arrival
            .wait_for(|arrival| !matches!(arrival, Arrival::Awaited))
            .await;
        match arrived.as_deref() {
            Ok(Arrival::Open(server)) => Ok(Arc::clone(server)),
            Ok(Arrival::Awaited | Arrival::Failed) | Err(_) => Err(error::no_sandbox()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        catalog::{Catalog, CatalogSettings},
        mtdf::{ToolSource, check_set},
    };

    fn toolbox(tools: &[&str]) -> Arc<Toolbox> {
        let sources: Vec<ToolSource> = (tools.iter())
            .map(|name| ToolSource {
                name: format!("{name}.json"),
                text: json!({"name": name, "command": "echo", "description": "Says it."}).to_string(),
            })
            .collect();
        Arc::new(Toolbox {
            present: Catalog::build(&check_set(&sources).tools, CatalogSettings::default()),
            ..Toolbox::default()
        })
    }

    #[test]
    fn clients_hear_of_a_list_that_differs_from_the_oldest_one_shown() {
        let shown = ShownTools::default();
        assert!(!shown.supersede(&toolbox(&[])), "it is the first one");

        let shown = ShownTools::default();
        shown.note(&toolbox(&["a"]));
        // One client asks between the change and the message; the other has still seen the old list only.
        shown.note(&toolbox(&["a", "b"]));
        assert!(shown.supersede(&toolbox(&["a", "b"])));
        assert!(!shown.supersede(&toolbox(&["a", "b"])), "both know it");
    }
}
