//! Subscriptions and the log level of the client. They are repeated to a server that is new or has forgotten us.
#![expect(
    deprecated,
    reason = "log levels and resource subscriptions are deprecated, and clients still use them"
)]

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use rmcp::{
    model::{
        ErrorData, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
        UnsubscribeRequestParams,
    },
    service::{ServiceError, SubscriptionContext, SubscriptionSink},
};
use tokio_util::task::AbortOnDropHandle;

use super::relay::{Relay, as_protocol_error};
use crate::{
    remote::LiveConnection,
    session::{
        changes::{Change, Changes},
        reason_of,
    },
};

/// The client's subscriptions.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// Those of a modern client.
    sinks: Mutex<Vec<SubscriptionSink>>,
    /// Resources the client watches, each with the task that passes on a modern server's updates.
    watched: Mutex<BTreeMap<String, UpdateTask>>,
}

/// A legacy server sends its updates unasked, and needs no task.
type UpdateTask = Option<AbortOnDropHandle<()>>;

impl Subscriptions {
    pub(super) fn sinks(&self) -> Vec<SubscriptionSink> {
        self.sinks.lock().clone()
    }

    pub(super) fn forget(&self, closed: &SubscriptionSink) {
        self.sinks.lock().retain(|sink| sink.id() != closed.id());
    }

    pub(super) fn stop_watching(&self, uri: &str) {
        self.watched.lock().remove(uri);
    }

    /// Forgets a subscription that is over, and returns the resources that are no longer watched.
    fn unsubscribe(&self, ended: &SubscriptionSink) -> Vec<String> {
        // Both locks at once: a subscription that begins now is seen here, or finds nothing and watches anew.
        let mut sinks = self.sinks.lock();
        let mut watched = self.watched.lock();
        sinks.retain(|sink| sink.id() != ended.id());
        let is_wanted = |uri: &String| sinks.iter().any(|sink| resources(sink).contains(uri));
        let unwanted = resources(ended).iter().filter(|uri| !is_wanted(uri));
        unwanted
            .filter(|uri| watched.remove(*uri).is_some())
            .cloned()
            .collect()
    }
}

impl Relay {
    /// Serves a modern client's subscription until it ends.
    pub(super) async fn serve_subscription(
        self: &Arc<Self>,
        context: &SubscriptionContext,
    ) -> Result<(), ErrorData> {
        // First, so that no update is lost once the server has been asked for it.
        self.subscriptions.sinks.lock().push(context.sink().clone());
        let served = self.watch_until_ended(context).await;
        for uri in self.subscriptions.unsubscribe(context.sink()) {
            if let Err(error) = self.end_updates(&uri).await {
                tracing::debug!(uri, error = %error.message, "the server may go on reporting changes");
            }
        }
        served
    }

    async fn watch_until_ended(self: &Arc<Self>, context: &SubscriptionContext) -> Result<(), ErrorData> {
        for uri in resources(context.sink()) {
            self.while_heard(self.watch_resource(uri)).await?;
        }
        tokio::select! {
            () = context.cancelled() => {}
            () = self.client_left.cancelled() => {}
        }
        Ok(())
    }

    /// Asks the server to report changes of one resource, now and after every reconnect.
    pub(super) async fn watch_resource(self: &Arc<Self>, uri: &str) -> Result<(), ErrorData> {
        let connection = self.connection().await?;
        let task = match self.ask_for_updates(&connection, uri).await {
            Ok(task) => task,
            Err(error) => return Err(as_protocol_error(self.server.failed(&connection, error).await)),
        };
        // An earlier task for the same updates ends here.
        self.subscriptions.watched.lock().insert(uri.to_owned(), task);
        Ok(())
    }

    /// Asks for updates of one resource in the way of the server's era.
    async fn ask_for_updates(
        self: &Arc<Self>,
        connection: &LiveConnection,
        uri: &str,
    ) -> Result<UpdateTask, ServiceError> {
        if !connection.is_modern() {
            connection
                .peer
                .subscribe(SubscribeRequestParams::new(uri))
                .await?;
            return Ok(None);
        }
        let filter = SubscriptionFilter::builder().resource_subscriptions([uri.to_owned()]);
        let mut changes = Changes::subscribe(&connection.peer, filter.build()).await?;
        let relay = Arc::clone(self);
        let task = tokio::spawn(async move {
            loop {
                if let Change::Announced(notification) = changes.next().await {
                    relay.announce(*notification).await;
                }
            }
        });
        Ok(Some(AbortOnDropHandle::new(task)))
    }

    /// Asks for no more updates of a resource that is no longer watched. A modern server sees the end of its stream,
    /// and one that is gone has forgotten it.
    pub(super) async fn end_updates(&self, uri: &str) -> Result<(), ErrorData> {
        let Some(connection) = self.server.live().filter(|server| !server.is_modern()) else {
            return Ok(());
        };
        match connection
            .peer
            .unsubscribe(UnsubscribeRequestParams::new(uri))
            .await
        {
            Ok(()) => Ok(()),
            Err(error) => Err(as_protocol_error(self.server.failed(&connection, error).await)),
        }
    }

    /// Asks a server that is new, or has forgotten us, again for what the client has asked for.
    pub(super) async fn repeat_wishes(self: &Arc<Self>, connection: &LiveConnection) {
        let level = *self.log_level.lock();
        if let Some(level) = level.filter(|_| !connection.is_modern())
            && let Err(error) = connection.peer.set_level(SetLevelRequestParams::new(level)).await
        {
            tracing::warn!(reason = reason_of(&error), "the log level is not set again");
        }
        let watched: Vec<String> = self.subscriptions.watched.lock().keys().cloned().collect();
        for uri in watched {
            let task = match self.ask_for_updates(connection, &uri).await {
                Ok(task) => task,
                Err(error) => {
                    tracing::warn!(
                        uri,
                        reason = reason_of(&error),
                        "the resource is no longer watched"
                    );
                    continue;
                }
            };
            // The client may have lost interest meanwhile.
            if let Some(watched) = self.subscriptions.watched.lock().get_mut(&uri) {
                *watched = task;
            }
        }
    }
}

/// The resources whose updates a subscription is for.
fn resources(sink: &SubscriptionSink) -> &[String] {
    let resources = sink.accepted().resource_subscriptions.as_ref();
    resources.map_or(&[], Vec::as_slice)
}
