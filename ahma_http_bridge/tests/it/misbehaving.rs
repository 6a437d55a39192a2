//! A child that crashes, hangs, floods or talks nonsense harms only itself.

use std::time::{Duration, Instant};

use ahma_http_bridge::Isolation;
use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use reqwest::StatusCode;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{
    BOTH, Bridge, BridgeProcess, Events, JSON, eventually, initialize, is_alive, tool_call,
};

#[tokio::test]
async fn a_crash_is_told_to_every_waiter_and_the_session_goes_on() {
    for bridge in [Bridge::shared().await, Bridge::isolated().await] {
        let client = bridge.session().await;
        let first = client.who().await;
        for tool in ["crash", "crash_mid_answer"] {
            let waiting: Vec<_> = (0..20)
                .map(|id| {
                    let client = client.clone();
                    tokio::spawn(async move { client.try_call(json!(id), "silent", json!({})).await })
                })
                .collect();
            let stream = client
                .post(BOTH, &tool_call(json!("s"), "silent", json!({})))
                .await;
            // One that comes late would ask the next child, and wait for ever.
            bridge.wait_for_open_calls(21).await;
            let (status, body) = client.try_call(json!("c"), tool, json!({})).await;
            assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
            assert_eq!(body["id"], "c");
            assert_eq!(body["error"]["code"], -32000);
            for (id, waiter) in join_all(waiting).await.into_iter().enumerate() {
                let (status, body) = waiter.unwrap();
                assert_eq!(
                    (status, &body["id"]),
                    (StatusCode::INTERNAL_SERVER_ERROR, &json!(id))
                );
            }
            let told = Events::of(stream).rest().await;
            assert_eq!(told.last().unwrap()["error"]["code"], -32000);
            assert_ne!(
                client.who().await.pid,
                first.pid,
                "a new child serves the same session"
            );
        }
        bridge.stop().await;
    }
}

#[tokio::test]
async fn a_killed_child_is_noticed_within_a_second() {
    let bridge = Bridge::isolated().await;
    let client = bridge.session().await;
    let who = client.who().await;
    let waiting: Vec<_> = (0..50)
        .map(|id| {
            let client = client.clone();
            tokio::spawn(async move { client.try_call(json!(id), "silent", json!({})).await })
        })
        .collect();
    bridge.wait_for_open_calls(50).await;
    let killed = Instant::now();
    kill_process(Pid::from_raw(who.pid).unwrap(), Signal::KILL).unwrap();
    for waiter in join_all(waiting).await {
        assert_eq!(waiter.unwrap().0, StatusCode::INTERNAL_SERVER_ERROR);
    }
    eprintln!("fifty waiters were told {:?} after the kill", killed.elapsed());
    bridge.stop().await;
}

#[tokio::test]
async fn a_child_that_does_not_answer_times_out() {
    let bridge = Bridge::start(&[], |settings| {
        settings.times.request = Duration::from_millis(300)
    })
    .await;
    let client = bridge.session().await;
    let (status, body) = client.try_call(json!(5), "silent", json!({})).await;
    assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!((&body["id"], &body["error"]["code"]), (&json!(5), &json!(-32001)));
    let streamed = client.post(BOTH, &tool_call(json!(6), "silent", json!({}))).await;
    assert_eq!(streamed.status(), StatusCode::GATEWAY_TIMEOUT);
    eventually("both to be cancelled at the child", async || {
        let (_, answer) = client.try_call(json!(7), "cancelled", json!({})).await;
        let cancelled = answer["result"]["content"][0]["text"].as_str();
        cancelled.is_some_and(|list| list.matches(',').count() == 1)
    })
    .await;
    bridge.stop().await;
}

#[tokio::test]
async fn a_child_that_cannot_start_is_unavailable_and_says_when_to_come_back() {
    for isolation in [Isolation::Shared, Isolation::PerSession] {
        let bridge = Bridge::start(&["--die"], |settings| settings.isolation = isolation).await;
        for _ in 0..3 {
            let response = bridge
                .client()
                .post(JSON, &initialize("2025-11-25", json!({})))
                .await;
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert!(response.headers().contains_key("retry-after"));
        }
        bridge.stop().await;
    }
}

#[tokio::test]
async fn a_mute_child_does_not_hold_a_session_for_ever() {
    let bridge = Bridge::start(&["--mute"], |settings| {
        settings.isolation = Isolation::PerSession;
        settings.times.start = Duration::from_millis(200);
        settings.limits.sessions = 1;
    })
    .await;
    for _ in 0..3 {
        let response = bridge
            .client()
            .post(JSON, &initialize("2025-11-25", json!({})))
            .await;
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        let body: serde_json::Value = response.json().await.unwrap();
        if !body["error"]["message"]
            .as_str()
            .unwrap()
            .contains("as many sessions")
        {
            continue;
        }
    }
    bridge.stop().await;
}

#[tokio::test]
async fn nonsense_and_floods_are_survived() {
    for bridge in [Bridge::shared().await, Bridge::isolated().await] {
        let client = bridge.session().await;
        assert_eq!(client.call("garbage", json!({})).await, "after garbage");
        assert_eq!(client.call("twice", json!({})).await, "first");
        assert_eq!(client.call("echo", json!({ "text": "third" })).await, "third");
        assert_eq!(client.call("flood", json!({ "count": 20_000 })).await, "flooded");
        let huge = client.call("huge", json!({ "bytes": 8 << 20 })).await;
        assert_eq!(huge.len(), 8 << 20);
        let streamed = Events::of(
            client
                .post(BOTH, &tool_call(json!(1), "huge", json!({ "bytes": 3 << 20 })))
                .await,
        );
        let answer = streamed.rest().await.pop().unwrap();
        assert_eq!(
            answer["result"]["content"][0]["text"].as_str().unwrap().len(),
            3 << 20
        );
        bridge.stop().await;
    }
}

#[tokio::test]
async fn a_child_that_can_say_nothing_more_is_replaced() {
    let bridge = Bridge::isolated().await;
    let client = bridge.session().await;
    let first = client.who().await;
    let (status, _) = client.try_call(json!(1), "close_stdout", json!({})).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_ne!(client.who().await.pid, first.pid);
    bridge.stop().await;
}

#[tokio::test]
async fn an_endless_line_ends_the_child_and_nothing_else() {
    let bridge = Bridge::isolated().await;
    let (client, other) = (bridge.session().await, bridge.session().await);
    let (status, _) = client.try_call(json!(1), "endless_line", json!({})).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(other.call("echo", json!({ "text": "well" })).await, "well");
    assert_eq!(client.call("echo", json!({ "text": "again" })).await, "again");
    bridge.stop().await;
}

#[tokio::test]
async fn a_stubborn_child_and_its_commands_are_gone_when_delete_answers() {
    let bridge = Bridge::start(&["--stubborn"], |settings| {
        settings.isolation = Isolation::PerSession
    })
    .await;
    let client = bridge.session().await;
    let child = client.who().await.pid;
    let command: i32 = client.call("spawn", json!({})).await.parse().unwrap();
    assert!(is_alive(child) && is_alive(command));
    assert_eq!(client.delete().await, StatusCode::NO_CONTENT);
    assert!(!is_alive(child) && !is_alive(command));
    bridge.stop().await;
}

#[tokio::test]
async fn a_bridge_that_stops_answers_what_is_open() {
    for bridge in [Bridge::shared().await, Bridge::isolated().await] {
        let client = bridge.session().await;
        let mut events = client.events(None).await;
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.call("slow", json!({ "ms": 4000 })).await }
        });
        bridge.wait_for_open_calls(1).await;
        bridge.stop().await;
        assert_eq!(call.await.unwrap(), "slept");
        assert!(events.next().await.is_none());
    }
}

#[tokio::test]
async fn a_child_that_never_got_ready_does_not_hold_up_the_end() {
    let count = tempfile::NamedTempFile::new().unwrap();
    let flag = format!("--count={}", count.path().display());
    let bridge = Bridge::start(&["--mute", &flag], |settings| {
        settings.isolation = Isolation::PerSession
    })
    .await;
    let client = bridge.client();
    let waiting = tokio::spawn(async move { client.post(JSON, &initialize("2025-11-25", json!({}))).await });
    let started = || {
        std::fs::read_to_string(count.path())
            .unwrap()
            .trim()
            .parse::<i32>()
            .ok()
    };
    eventually("the child's start", async || started().is_some()).await;
    let pid = started().unwrap();
    // The child would have half a minute to answer; no request waits for that.
    bridge.stop().await;
    assert!(!is_alive(pid));
    assert!(!waiting.await.unwrap().status().is_success());
}

#[tokio::test]
async fn a_killed_bridge_leaves_no_child() {
    let bridge = BridgeProcess::start(&[], &["--session-isolation"]);
    let mut client = bridge.client();
    client.initialize(json!({})).await;
    let child = client.who().await.pid;
    bridge.kill();
    eventually("the child's end", async || !is_alive(child)).await;
}

#[tokio::test]
async fn no_child_outlives_the_bridge() {
    let bridge = Bridge::isolated().await;
    let mut pids = Vec::new();
    for _ in 0..5 {
        let client = bridge.session().await;
        pids.push(client.who().await.pid);
        pids.push(client.call("spawn", json!({})).await.parse().unwrap());
    }
    bridge.stop().await;
    assert!(pids.iter().all(|pid| !is_alive(*pid)), "{pids:?}");
}

#[tokio::test]
async fn a_standard_error_that_is_not_read_stops_neither_the_work_nor_the_end() {
    let bridge = BridgeProcess::start_unread(&["--debug"]);
    let mut client = bridge.client();
    client.initialize(json!({})).await;
    // Much more than a pipe holds.
    let text = "x".repeat(200_000);
    for _ in 0..5 {
        assert_eq!(client.call("echo", json!({ "text": text })).await, text);
    }
    drop(client);
    bridge.stop();
}

#[tokio::test]
async fn a_child_that_stops_reading_costs_a_refusal_and_keeps_what_it_was_sent() {
    let bridge = Bridge::shared().await;
    let client = bridge.session().await;
    let pid = Pid::from_raw(client.who().await.pid).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    // Together more than waits for a child that does not read.
    let text = "x".repeat(4_000_000);
    let mut calls: FuturesUnordered<_> = (0..12)
        .map(|number| client.try_call(json!(number), "echo", json!({ "text": text })))
        .collect();
    let (status, answer) = calls.next().await.unwrap();
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer["error"]["code"], -32004);
    kill_process(pid, Signal::CONT).unwrap();
    let answers: Vec<_> = calls.collect().await;
    let (answered, refused): (Vec<_>, Vec<_>) = answers
        .into_iter()
        .partition(|(status, _)| *status == StatusCode::OK);
    for (_, answer) in &answered {
        assert_eq!(answer["result"]["content"][0]["text"], *text);
    }
    assert!(
        answered.len() >= 7,
        "{} answered, {} refused",
        answered.len(),
        refused.len()
    );
    bridge.stop().await;
}
