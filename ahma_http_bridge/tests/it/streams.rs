//! Streams that break are taken up again, with nothing lost and nothing twice.

use ahma_http_bridge::Isolation;
use serde_json::json;

use crate::harness::{BOTH, Bridge, Events, tool_call, with_token};

#[tokio::test]
async fn the_standing_stream_is_resumed_after_the_last_event_seen() {
    let bridge = Bridge::isolated().await;
    let client = bridge.session().await;
    let mut events = client.events(None).await;
    for line in 0..5 {
        client.call("log", json!({ "text": line })).await;
    }
    for _ in 0..2 {
        events.next().await.unwrap();
    }
    let last = events.next().await.unwrap();
    assert_eq!(last.json()["params"]["data"], 2);
    drop(events);
    client.call("log", json!({ "text": 5 })).await;
    let mut resumed = client.events(last.id.as_deref()).await;
    for line in 3..=5 {
        assert_eq!(resumed.next_json().await["params"]["data"], line);
    }
    client.call("log", json!({ "text": 6 })).await;
    assert_eq!(resumed.next_json().await["params"]["data"], 6);
    bridge.stop().await;
}

#[tokio::test]
async fn a_stream_is_resumed_from_its_first_event_without_what_others_before_it_carried() {
    let bridge = Bridge::isolated().await;
    let client = bridge.session().await;
    let mut events = client.events(None).await;
    client.call("log", json!({ "text": "first" })).await;
    assert_eq!(events.next_json().await["params"]["data"], "first");
    drop(events);
    let mut again = client.events(None).await;
    let priming = again.next_id().await;
    drop(again);
    client.call("log", json!({ "text": "second" })).await;
    let mut resumed = client.events(Some(&priming)).await;
    assert_eq!(resumed.next_json().await["params"]["data"], "second");
    bridge.stop().await;
}

#[tokio::test]
async fn the_stream_of_a_request_is_resumed_and_its_work_goes_on() {
    let bridge = Bridge::isolated().await;
    let client = bridge.session().await;
    let call = with_token(
        tool_call(json!("r"), "ask", json!({ "method": "sampling/createMessage" })),
        json!(1),
    );
    let mut events = Events::of(client.post(BOTH, &call).await);
    let question = events.next().await.unwrap();
    drop(events);
    // The client is away while its request is being worked on.
    let reply = json!({ "jsonrpc": "2.0", "id": question.json()["id"], "result": {} });
    client.post(BOTH, &reply).await;
    let mut resumed = client.events(question.id.as_deref()).await;
    assert_eq!(resumed.next_json().await["id"], "r");
    assert!(resumed.next().await.is_none(), "the stream ends with the answer");
    bridge.stop().await;
}

#[tokio::test]
async fn progress_comes_before_the_answer_and_the_stream_ends() {
    let bridge = Bridge::start(&[], |settings| settings.isolation = Isolation::PerSession).await;
    let client = bridge.session().await;
    let call = with_token(
        tool_call(json!(1), "progress", json!({ "steps": 100 })),
        json!("t"),
    );
    let events = Events::of(client.post(BOTH, &call).await).rest().await;
    let steps: Vec<_> = events
        .iter()
        .filter_map(|event| event["params"]["progress"].as_u64())
        .collect();
    assert_eq!(steps, (1..=100).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap()["id"], 1);
    bridge.stop().await;
}

#[tokio::test]
async fn answers_wait_for_a_client_that_was_away_however_many_they_are() {
    let bridge = Bridge::isolated().await;
    let client = bridge.session().await;
    let mut questions = Vec::new();
    for id in 0..20 {
        let call = tool_call(json!(id), "ask", json!({ "method": "sampling/createMessage" }));
        let mut events = Events::of(client.post(BOTH, &call).await);
        questions.push(events.next().await.unwrap());
    }
    // What is written to a connection counts as read, so the bridge must know that they are gone.
    bridge.wait_for_connections_down_to(1).await;
    for question in &questions {
        let reply = json!({ "jsonrpc": "2.0", "id": question.json()["id"], "result": {} });
        client.post(BOTH, &reply).await;
    }
    bridge.wait_for_open_calls(0).await;
    // What is kept is looked over with every new stream.
    Events::of(
        client
            .post(BOTH, &tool_call(json!("last"), "echo", json!({})))
            .await,
    )
    .rest()
    .await;
    for (id, question) in questions.iter().enumerate() {
        let answers = client.events(question.id.as_deref()).await.rest().await;
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!(answers[0]["id"], id);
    }
    bridge.stop().await;
}

#[tokio::test]
async fn an_unknown_place_in_a_stream_is_not_taken_for_the_end_of_the_session() {
    let bridge = Bridge::shared().await;
    let client = bridge.session().await;
    for id in ["99-1", "nonsense", "-", "1-x"] {
        let response = client
            .http
            .get(&client.url)
            .header("accept", "text/event-stream")
            .header("mcp-session-id", client.session.as_deref().unwrap())
            .header("last-event-id", id)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 400, "{id}");
        let body: serde_json::Value = response.json().await.unwrap();
        assert_eq!(body["error"]["code"], -32600, "{id}");
    }
    client.call("echo", json!({ "text": "" })).await;
    bridge.stop().await;
}

#[tokio::test]
async fn a_new_standing_stream_takes_over_from_the_old_one() {
    let bridge = Bridge::shared().await;
    let client = bridge.session().await;
    let mut old = client.events(None).await;
    let mut new = client.events(None).await;
    assert!(old.next().await.is_none());
    client.call("list_changed", json!({})).await;
    assert_eq!(
        new.next_json().await["method"],
        "notifications/tools/list_changed"
    );
    bridge.stop().await;
}
