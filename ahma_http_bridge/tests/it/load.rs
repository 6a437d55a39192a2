//! Many clients at once: every answer to the right one, none lost, none held up.

use std::{net::SocketAddr, os::fd::BorrowedFd, time::Duration};

use ahma_http_bridge::Isolation;
use futures::future::join_all;
use reqwest::StatusCode;
use rustix::net::{getpeername, getsockname, sockopt};
use serde_json::json;

use crate::harness::{BOTH, Bridge, Client, Events, JSON, TEST_TIMEOUT, tool_call};

/// Twenty calls at once, in both forms; each must come back with its own text.
async fn twenty_calls(client: Client, who: usize) {
    let calls = (0..20).map(|number| {
        let client = client.clone();
        async move {
            let text = format!("{who}/{number}");
            let call = tool_call(json!(number), "echo", json!({ "text": text }));
            let answer = if number % 2 == 0 {
                client.post(JSON, &call).await.json().await.unwrap()
            } else {
                Events::of(client.post(BOTH, &call).await).rest().await.remove(0)
            };
            assert_eq!(answer["id"], number);
            assert_eq!(answer["result"]["content"][0]["text"], text);
        }
    });
    join_all(calls).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_sessions_with_twenty_calls_each() {
    for isolation in [Isolation::Shared, Isolation::PerSession] {
        let bridge = Bridge::start(&[], |settings| settings.isolation = isolation).await;
        let sessions = join_all((0..50).map(|_| bridge.session())).await;
        let work = join_all(
            sessions
                .into_iter()
                .enumerate()
                .map(|(who, client)| twenty_calls(client, who)),
        );
        tokio::time::timeout(TEST_TIMEOUT, work).await.expect("no stall");
        bridge.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ending_sessions_in_the_middle_of_calls_delays_no_other() {
    let bridge = Bridge::isolated().await;
    let bystander = bridge.session().await;
    for _ in 0..100 {
        let client = bridge.session().await;
        let calls: Vec<_> = (0..3)
            .map(|id| {
                let client = client.clone();
                tokio::spawn(async move { client.try_call(json!(id), "silent", json!({})).await.0 })
            })
            .collect();
        let ended = tokio::spawn({
            let client = client.clone();
            async move { client.delete().await }
        });
        let answer = bystander.call("echo", json!({ "text": "fine" }));
        assert_eq!(
            tokio::time::timeout(Duration::from_secs(10), answer)
                .await
                .expect("no stall"),
            "fine"
        );
        assert_eq!(ended.await.unwrap(), StatusCode::NO_CONTENT);
        for call in join_all(calls).await {
            assert_eq!(call.unwrap(), StatusCode::NOT_FOUND);
        }
    }
    bridge.stop().await;
}

/// With Nagle's algorithm a small answer waits up to 40 ms for the acknowledgement of the one before.
#[tokio::test]
async fn no_answer_waits_for_another_to_be_acknowledged() {
    let bridge = Bridge::shared().await;
    let client = bridge.session().await;
    client.who().await;
    let numbers: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .collect();
    let mut connections = 0;
    for number in numbers {
        // SAFETY: only asked about; one that was closed meanwhile gives an error.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let is_ours = getsockname(descriptor).and_then(SocketAddr::try_from) == Ok(bridge.address);
        if is_ours && getpeername(descriptor).is_ok() {
            assert!(sockopt::tcp_nodelay(descriptor).unwrap());
            connections += 1;
        }
    }
    assert!(connections > 0, "the client's connection was not found");
}
