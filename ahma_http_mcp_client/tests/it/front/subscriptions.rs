//! Subscriptions of a client, before and after a restart of the server.

#![expect(
    deprecated,
    reason = "log levels and resource subscriptions are deprecated, and clients still use them"
)]

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use rmcp::model::{
    LoggingLevel, ServerNotification, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};

use super::client::{Client, call_until, leave, start};
use crate::{
    fixture::{
        eventually,
        host::Host,
        tools::{Era, Shared, router},
    },
    remote::call_of,
};

#[tokio::test]
async fn watched_resources_are_watched_again_after_a_restart() {
    for server_era in [Era::Legacy, Era::Modern] {
        let shared = Arc::new(Shared::default());
        let host = Host::start(|_| router(server_era, &shared));
        let address = host.address;
        let client = Client::default();
        let (service, front, _dir) = start(&host.url("/mcp"), Era::Legacy, &client).await;
        service
            .subscribe(SubscribeRequestParams::new("x:1"))
            .await
            .unwrap();
        let asked = || shared.subscriptions.load(Ordering::SeqCst);
        // A modern server hears of it after it has acknowledged it.
        eventually("the server to be asked", || (asked() == 1).then_some(())).await;
        host.kill();
        let life = Arc::new(Shared::default());
        let _next_life = Host::start_at(address, |_| router(server_era, &life));
        eventually("the server to be asked again", || {
            (life.subscriptions.load(Ordering::SeqCst) > 0).then_some(())
        })
        .await;
        eventually("a listener", || life.has_listener().then_some(())).await;
        life.touch("x:1").await;
        eventually("the update", || {
            (client.updates.load(Ordering::SeqCst) > 0).then_some(())
        })
        .await;
        leave(service, front).await;
    }
}

#[tokio::test]
async fn a_log_level_outlives_the_server_it_was_set_at() {
    for server_era in [Era::Legacy, Era::Modern] {
        let case = format!("the level at a server {server_era:?}");
        let host = Host::start(|_| router(server_era, &Arc::default()));
        let address = host.address;
        let (service, front, _dir) = start(&host.url("/mcp"), Era::Legacy, &Client::default()).await;
        service
            .set_level(SetLevelRequestParams::new(LoggingLevel::Warning))
            .await
            .unwrap();
        host.kill();
        let life = Arc::new(Shared::default());
        let _next_life = Host::start_at(address, |_| router(server_era, &life));
        call_until(&service, &case, |answer| answer.is_ok()).await;
        eventually(&case, || {
            (*life.log_level.lock().unwrap() == Some(LoggingLevel::Warning)).then_some(())
        })
        .await;
        leave(service, front).await;
    }
}

#[tokio::test]
async fn a_resource_can_be_watched_while_the_server_is_away() {
    for server_era in [Era::Legacy, Era::Modern] {
        let host = Host::start(|_| router(server_era, &Arc::default()));
        let address = host.address;
        let (service, front, _dir) = start(&host.url("/mcp"), Era::Legacy, &Client::default()).await;
        host.kill();
        // A request that was sent on the dying connection is lost; one that has to wait finds the server away.
        let echo = || service.call_tool(call_of("echo", serde_json::json!({})));
        while tokio::time::timeout(Duration::from_millis(200), echo())
            .await
            .is_ok()
        {}
        let watching = tokio::spawn({
            let peer = service.peer().clone();
            async move { while peer.subscribe(SubscribeRequestParams::new("x:1")).await.is_err() {} }
        });
        let life = Arc::new(Shared::default());
        let _next_life = Host::start_at(address, |_| router(server_era, &life));
        tokio::time::timeout(test_support::TEST_TIMEOUT, watching)
            .await
            .unwrap()
            .unwrap();
        eventually("the server to hear of it", || {
            (life.subscriptions.load(Ordering::SeqCst) > 0).then_some(())
        })
        .await;
        leave(service, front).await;
    }
}

#[tokio::test]
async fn a_resource_that_is_watched_anew_is_watched_once() {
    let shared = Arc::new(Shared::default());
    let host = Host::start(|_| router(Era::Modern, &shared));
    let (service, front, _dir) = start(&host.url("/mcp"), Era::Legacy, &Client::default()).await;
    for _ in 0..3 {
        service
            .subscribe(SubscribeRequestParams::new("x:1"))
            .await
            .unwrap();
        service
            .unsubscribe(UnsubscribeRequestParams::new("x:1"))
            .await
            .unwrap();
        service
            .subscribe(SubscribeRequestParams::new("x:1"))
            .await
            .unwrap();
    }
    eventually("the server to be asked each time", || {
        (shared.subscriptions.load(Ordering::SeqCst) == 6).then_some(())
    })
    .await;
    eventually("one subscription to be left", || {
        (shared.open_subscriptions.load(Ordering::SeqCst) == 1).then_some(())
    })
    .await;
    leave(service, front).await;
}

#[tokio::test]
async fn a_subscription_that_ends_is_ended_at_the_server() {
    for server_era in [Era::Legacy, Era::Modern] {
        let shared = Arc::new(Shared::default());
        let host = Host::start(|_| router(server_era, &shared));
        let (service, front, _dir) = start(&host.url("/mcp"), Era::Modern, &Client::default()).await;
        let open = || shared.open_subscriptions.load(Ordering::SeqCst);
        let listen = |uris: &[&str]| {
            let uris: Vec<String> = uris.iter().map(|uri| (*uri).to_owned()).collect();
            service.listen(SubscriptionFilter::builder().resource_subscriptions(uris).build())
        };
        let both = listen(&["x:1", "x:2"]).await.unwrap();
        eventually("two resources to be watched", || (open() == 2).then_some(())).await;
        let mut one = listen(&["x:1"]).await.unwrap();
        eventually("one of them to be watched again", || {
            (shared.subscriptions.load(Ordering::SeqCst) == 3).then_some(())
        })
        .await;
        drop(both);
        // A legacy server was asked twice for the resource that is still watched.
        let left = if server_era == Era::Legacy { 2 } else { 1 };
        eventually("the other to be let go", || (open() == left).then_some(())).await;
        shared.touch("x:1").await;
        let update = tokio::time::timeout(test_support::TEST_TIMEOUT, one.next()).await;
        assert!(
            matches!(
                update,
                Ok(Ok(Some(ServerNotification::ResourceUpdatedNotification(_))))
            ),
            "{server_era:?}: {update:?}"
        );
        drop(one);
        eventually("the last to be let go", || (open() == left - 1).then_some(())).await;
        leave(service, front).await;
    }
}
