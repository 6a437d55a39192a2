//! Clients of one shared child do not meet.

use serde_json::{Value, json};

use crate::harness::{BOTH, Bridge, Client, Events, JSON, tool_call, with_token};

#[tokio::test]
async fn the_child_is_initialised_once_for_all() {
    let count = tempfile::NamedTempFile::new().unwrap();
    let flag = format!("--count={}", count.path().display());
    let bridge = Bridge::start(&[&flag], |_| {}).await;
    let (one, two) = (bridge.session().await, bridge.session().await);
    assert_eq!(one.who().await.pid, two.who().await.pid);
    assert_eq!(std::fs::read_to_string(count.path()).unwrap().lines().count(), 1);
    bridge.stop().await;
}

#[tokio::test]
async fn same_ids_and_tokens_of_two_clients_do_not_mix() {
    let bridge = Bridge::shared().await;
    let clients = [bridge.session().await, bridge.session().await];
    let calls = clients.iter().enumerate().map(|(number, client)| async move {
        let steps = 5 + number;
        let call = with_token(
            tool_call(json!(1), "progress", json!({ "steps": steps })),
            json!("token"),
        );
        let events = Events::of(client.post(BOTH, &call).await).rest().await;
        assert_eq!(events.len(), steps + 1);
        for (step, event) in events[..steps].iter().enumerate() {
            assert_eq!(
                event["params"],
                json!({ "progressToken": "token", "progress": step + 1 })
            );
        }
        assert_eq!(events[steps]["id"], 1);
    });
    futures::future::join_all(calls).await;
    bridge.stop().await;
}

#[tokio::test]
async fn late_progress_goes_to_the_client_it_belongs_to() {
    let bridge = Bridge::shared().await;
    let (mine, other) = (bridge.session().await, bridge.session().await);
    let (mut my_events, mut other_events) = (mine.events(None).await, other.events(None).await);
    let call = with_token(tool_call(json!(1), "late_progress", json!({})), json!(77));
    assert!(mine.post(JSON, &call).await.status().is_success());
    let late = my_events.next_json().await;
    assert_eq!(
        (&late["params"]["progressToken"], &late["params"]["message"]),
        (&json!(77), &json!("done"))
    );
    // What the other hears next is what concerns all, so it did not hear the progress before.
    other.call("list_changed", json!({})).await;
    assert_eq!(
        other_events.next_json().await["method"],
        "notifications/tools/list_changed"
    );
    assert_eq!(
        my_events.next_json().await["method"],
        "notifications/tools/list_changed"
    );
    bridge.stop().await;
}

#[tokio::test]
async fn a_log_message_without_a_client_reaches_no_client() {
    let bridge = Bridge::shared().await;
    let alone = bridge.session().await;
    let mut events = alone.events(None).await;
    alone.call("log", json!({ "text": "just me" })).await;
    assert_eq!(events.next_json().await["params"]["data"], "just me");
    let other = bridge.session().await;
    other.call("log", json!({ "text": "secret of the other" })).await;
    other.call("list_changed", json!({})).await;
    assert_eq!(
        events.next_json().await["method"],
        "notifications/tools/list_changed"
    );
    bridge.stop().await;
}

#[tokio::test]
async fn a_log_line_that_names_its_request_goes_to_its_client() {
    let bridge = Bridge::shared().await;
    let (mine, other) = (bridge.session().await, bridge.session().await);
    let (mut my_events, mut other_events) = (mine.events(None).await, other.events(None).await);
    let call = tool_call(json!("mine"), "log_related", json!({}));
    let mut answer = Events::of(mine.post(BOTH, &call).await);
    let before = answer.next_json().await;
    assert_eq!(
        before["params"],
        json!({ "level": "info", "data": "before", "_meta": { "ahma/relatedRequestId": "mine" } })
    );
    assert_eq!(answer.next_json().await["id"], "mine");
    // What it started goes on and is told on the session's own stream.
    let after = my_events.next_json().await;
    assert_eq!(after["params"]["data"], "after");
    assert_eq!(after["params"]["_meta"]["ahma/relatedRequestId"], "mine");
    other.call("list_changed", json!({})).await;
    assert_eq!(
        other_events.next_json().await["method"],
        "notifications/tools/list_changed"
    );
    bridge.stop().await;
}

#[tokio::test]
async fn cancelling_touches_only_the_clients_own_request() {
    let bridge = Bridge::shared().await;
    let (mine, other) = (bridge.session().await, bridge.session().await);
    let waiting = |client: &Client, ms: u32| {
        let client = client.clone();
        tokio::spawn(async move { client.try_call(json!("same"), "slow", json!({ "ms": ms })).await })
    };
    let (my_call, other_call) = (waiting(&mine, 600_000), waiting(&other, 1500));
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "same" } });
    // The request may not have arrived yet; a cancel before it is ignored, as it must be.
    crate::harness::eventually("the request to be cancelled", async || {
        mine.post(JSON, &cancel).await;
        mine.call("cancelled", json!({})).await != "[]"
    })
    .await;
    let (_, mine) = my_call.await.unwrap();
    assert_eq!(mine["error"]["code"], -32800);
    let (_, other) = other_call.await.unwrap();
    assert_eq!(other["result"]["content"][0]["text"], "slept");
    bridge.stop().await;
}

#[tokio::test]
async fn resource_updates_go_to_subscribers_and_survive_a_crash() {
    let bridge = Bridge::shared().await;
    let (one, two, three) = (
        bridge.session().await,
        bridge.session().await,
        bridge.session().await,
    );
    let subscription =
        |method: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "uri": "x:1" } });
    for client in [&one, &two] {
        assert!(
            client
                .post(JSON, &subscription("resources/subscribe"))
                .await
                .status()
                .is_success()
        );
    }
    let mut events = [
        one.events(None).await,
        two.events(None).await,
        three.events(None).await,
    ];
    three.call("touch", json!({ "uri": "x:1" })).await;
    three.call("list_changed", json!({})).await;
    for (place, expected) in [(0, true), (1, true), (2, false)] {
        let first = events[place].next_json().await;
        assert_eq!(
            first["method"] == "notifications/resources/updated",
            expected,
            "{place}: {first}"
        );
    }
    let answer: Value = one
        .post(JSON, &subscription("resources/unsubscribe"))
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(answer["result"], json!({}));
    assert_eq!(
        three.call("subscribed", json!({})).await,
        r#"["\"x:1\""]"#,
        "two is still subscribed"
    );
    three.try_call(json!(1), "crash", json!({})).await;
    crate::harness::eventually("the new child to know of the subscription", async || {
        let (_, answer) = three.try_call(json!(1), "subscribed", json!({})).await;
        answer["result"]["content"][0]["text"] == r#"["\"x:1\""]"#
    })
    .await;
    assert_eq!(two.delete().await, 204);
    crate::harness::eventually("the last subscriber's end to be told", async || {
        three.call("subscribed", json!({})).await == "[]"
    })
    .await;
    bridge.stop().await;
}

#[tokio::test]
async fn an_update_that_names_its_client_goes_to_that_client() {
    let bridge = Bridge::shared_naming_clients().await;
    let (mine, other, absent) = (
        bridge.session().await,
        bridge.session().await,
        bridge.session().await,
    );
    let subscribe =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": "x:1" } });
    for client in [&mine, &other] {
        assert!(client.post(JSON, &subscribe).await.status().is_success());
    }
    let mut all_events = [
        mine.events(None).await,
        other.events(None).await,
        absent.events(None).await,
    ];
    // A client without a session has a name, too; one that is not subscribed hears nothing even of its own.
    for client in [&mine, &absent, &bridge.client()] {
        assert_eq!(client.call("touch_own", json!({ "uri": "x:1" })).await, "touched");
    }
    mine.call("list_changed", json!({})).await;
    for (place, updates) in [1, 0, 0].into_iter().enumerate() {
        for _ in 0..updates {
            let update = all_events[place].next_json().await;
            assert_eq!(update["method"], "notifications/resources/updated", "{place}");
        }
        let last = all_events[place].next_json().await;
        assert_eq!(last["method"], "notifications/tools/list_changed", "{place}");
    }
    bridge.stop().await;
}

#[tokio::test]
async fn a_request_that_waits_for_the_child_ends_with_its_session() {
    let directory = tempfile::tempdir().unwrap();
    let obstacle = directory.path().join("obstacle");
    let flag = format!("--start-after={}", obstacle.display());
    let bridge = Bridge::start(&[&flag], |_| {}).await;
    let (mine, other) = (bridge.session().await, bridge.session().await);
    std::fs::write(&obstacle, "").unwrap();
    other.try_call(json!(1), "crash", json!({})).await;
    let subscribe =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": "x:1" } });
    // The stream opens though there is no child yet.
    let waiting = Events::of(mine.post(BOTH, &subscribe).await);
    assert_eq!(mine.delete().await, 204);
    let answers = waiting.rest().await;
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert!(answers[0]["error"].is_object(), "{answers:?}");
    std::fs::remove_file(&obstacle).unwrap();
    assert_eq!(other.call("subscribed", json!({})).await, "[]");
    bridge.stop().await;
}

#[tokio::test]
async fn a_question_of_a_shared_child_is_answered_by_the_bridge() {
    let bridge = Bridge::shared().await;
    let client = bridge.session().await;
    let answer: Value =
        serde_json::from_str(&client.call("ask", json!({ "method": "roots/list" })).await).unwrap();
    assert_eq!(answer["error"]["code"], -32601);
    let answer: Value = serde_json::from_str(&client.call("ask", json!({ "method": "ping" })).await).unwrap();
    assert_eq!(answer["result"], json!({}));
    bridge.stop().await;
}

#[tokio::test]
async fn no_client_ends_the_subscriptions_of_others() {
    let bridge = Bridge::shared().await;
    let mut old = bridge.client();
    old.initialize_as("2025-03-26", json!({})).await;
    let (other, stranger) = (bridge.session().await, bridge.client());
    let message =
        |method: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "uri": "x:1" } });
    for client in [&old, &other] {
        client.post(JSON, &message("resources/subscribe")).await;
    }
    // Without a session there is no client that an update could go to.
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        for accept in [JSON, BOTH] {
            let response = stranger.post(accept, &message(method)).await;
            assert_eq!(response.status(), reqwest::StatusCode::BAD_REQUEST, "{method}");
        }
    }
    // A batch that is answered by a stream is no way around either.
    let batch = json!([
        message("resources/unsubscribe"),
        tool_call(json!(2), "echo", json!({}))
    ]);
    let answers = Events::of(old.post(BOTH, &batch).await).rest().await;
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert_eq!(other.call("subscribed", json!({})).await, r#"["\"x:1\""]"#);
    bridge.stop().await;
}

#[tokio::test]
async fn a_subscription_that_is_refused_is_none() {
    let bridge = Bridge::shared().await;
    let client = bridge.session().await;
    let mut events = client.events(None).await;
    let endless = "x".repeat(1 << 20);
    for accept in [JSON, BOTH] {
        for (uri, code) in [("x:missing", -32002), (&endless, -32602)] {
            let subscribe = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": uri } });
            let response = client.post(accept, &subscribe).await;
            let answer = match accept {
                BOTH => Events::of(response).rest().await.remove(0),
                _ => response.json().await.unwrap(),
            };
            assert_eq!(answer["error"]["code"], code);
        }
    }
    assert_eq!(client.call("subscribed", json!({})).await, "[]");
    client.call("touch", json!({ "uri": "x:missing" })).await;
    client.call("list_changed", json!({})).await;
    assert_eq!(
        events.next_json().await["method"],
        "notifications/tools/list_changed"
    );
    bridge.stop().await;
}
