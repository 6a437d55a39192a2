//! Each session has a child of its own, inside the directory its client named first.

use std::path::Path;
use std::time::Duration;

use ahma_http_bridge::Isolation;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::harness::{BOTH, Bridge, BridgeProcess, Client, Events, JSON, eventually, is_alive, tool_call};

fn roots_capable() -> Value {
    json!({ "roots": { "listChanged": true } })
}

/// Answers the bridge's question for roots, which arrives on this stream.
async fn answer_roots(client: &Client, events: &mut Events, uris: &[String]) {
    let question = events.next_json().await;
    assert_eq!(question["method"], "roots/list");
    let roots: Vec<_> = uris.iter().map(|uri| json!({ "uri": uri })).collect();
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": roots } });
    assert_eq!(client.post(JSON, &answer).await.status(), StatusCode::ACCEPTED);
}

fn uri(path: &Path) -> String {
    reqwest::Url::from_file_path(path).unwrap().to_string()
}

#[tokio::test]
async fn the_first_root_is_the_scope_for_ever() {
    let bridge = Bridge::isolated().await;
    let project = tempfile::tempdir().unwrap();
    let root = project
        .path()
        .canonicalize()
        .unwrap()
        .join("with space & ünicode");
    std::fs::create_dir(&root).unwrap();

    let mut client = bridge.client();
    let greeting = client.initialize(roots_capable()).await;
    assert_eq!(greeting["serverInfo"]["name"], "fake_mcp");
    // This request waits in the queue until the scope is known.
    let queued = tokio::spawn({
        let client = client.clone();
        async move { client.who().await }
    });
    let mut events = client.events(None).await;
    answer_roots(&client, &mut events, &[uri(&root), "file:///etc".to_owned()]).await;
    let who = queued.await.unwrap();
    assert_eq!(who.scope, root);

    // A second answer changes nothing.
    let again = json!({ "jsonrpc": "2.0", "id": "ahma-bridge/roots", "result": { "roots": [{ "uri": "file:///etc" }] } });
    client.post(JSON, &again).await;
    let after = client.who().await;
    assert_eq!((after.scope, after.pid), (root.clone(), who.pid));

    // The child that asks is told what the client said.
    let heard: Value =
        serde_json::from_str(&client.call("ask", json!({ "method": "roots/list" })).await).unwrap();
    assert_eq!(heard["result"]["roots"][0]["uri"], uri(&root));

    // After a crash the new child has the same scope.
    client.try_call(json!(1), "crash", json!({})).await;
    assert_eq!(client.who().await.scope, root);
    bridge.stop().await;
}

#[tokio::test]
async fn a_roots_change_after_the_lock_ends_the_session() {
    let directory = tempfile::tempdir().unwrap();
    let audit = directory.path().join("audit.jsonl");
    let bridge = Bridge::start(&[], |settings| {
        settings.isolation = Isolation::PerSession;
        settings.audit_file = Some(audit.clone());
    })
    .await;
    let mut client = bridge.client();
    client.initialize(roots_capable()).await;
    let mut events = client.events(None).await;
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    assert_eq!(
        client.post(JSON, &changed).await.status(),
        StatusCode::ACCEPTED,
        "before the lock it is no change"
    );
    answer_roots(&client, &mut events, &[uri(bridge.scope.path())]).await;
    let who = client.who().await;
    assert_eq!(client.post(JSON, &changed).await.status(), StatusCode::ACCEPTED);
    assert!(!is_alive(who.pid));
    for _ in 0..2 {
        let (status, body) = client.try_call(json!(4), "echo", json!({})).await;
        assert_eq!((status, &body["id"]), (StatusCode::FORBIDDEN, &json!(4)));
        assert!(
            body["error"]["message"]
                .as_str()
                .unwrap()
                .starts_with("roots_change_rejected"),
            "{body}"
        );
    }
    bridge.stop().await;
    let trail = std::fs::read_to_string(&audit).unwrap();
    let ends: Vec<&str> = trail
        .lines()
        .filter(|line| line.contains("session_ended"))
        .collect();
    assert!(
        matches!(ends[..], [end] if end.contains("roots_change_rejected")),
        "it is written down once: {trail}"
    );
}

#[tokio::test]
async fn a_root_that_cannot_be_a_scope_is_an_error_the_client_can_read() {
    let bridge = Bridge::isolated().await;
    for (root, why) in [
        ("file:///no/such/dir", "cannot be used"),
        ("https://x.example/", "only file://"),
        ("file:///", "too wide"),
    ] {
        let mut client = bridge.client();
        client.initialize(roots_capable()).await;
        let queued = tokio::spawn({
            let client = client.clone();
            async move { client.try_call(json!("q"), "echo", json!({})).await }
        });
        answer_roots(&client, &mut client.events(None).await, &[root.to_owned()]).await;
        let (status, body) = queued.await.unwrap();
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(
            body["error"]["message"].as_str().unwrap().contains(why),
            "{root}: {body}"
        );
    }
    bridge.stop().await;
}

#[tokio::test]
async fn a_client_without_roots_gets_the_default_scope() {
    let bridge = Bridge::isolated().await;
    let scope = bridge.scope.path().canonicalize().unwrap();
    assert_eq!(bridge.session().await.who().await.scope, scope);
    // Also one that offers roots and has none, and one that offers them and cannot say.
    let answers = [
        json!({ "result": { "roots": [] } }),
        json!({ "error": { "code": -32601, "message": "?" } }),
    ];
    for mut answer in answers {
        let mut client = bridge.client();
        client.initialize(roots_capable()).await;
        let question = client.events(None).await.next_json().await;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = question["id"].clone();
        client.post(JSON, &answer).await;
        assert_eq!(client.who().await.scope, scope);
    }
    bridge.stop().await;
}

#[tokio::test]
async fn a_client_without_a_standing_stream_is_asked_on_its_request() {
    let bridge = Bridge::isolated().await;
    let mut client = bridge.client();
    client.initialize(roots_capable()).await;
    let mut events = Events::of(client.post(BOTH, &tool_call(json!(1), "who", json!({}))).await);
    answer_roots(&client, &mut events, &[uri(bridge.scope.path())]).await;
    assert_eq!(events.next_json().await["id"], 1);
    assert!(events.next().await.is_none());

    // It also hears there why its root is refused.
    let mut client = bridge.client();
    client.initialize(roots_capable()).await;
    let mut events = Events::of(client.post(BOTH, &tool_call(json!(2), "who", json!({}))).await);
    answer_roots(&client, &mut events, &["file:///".to_owned()]).await;
    let refused = events.next_json().await;
    assert_eq!(refused["id"], 2, "{refused}");
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("too wide"),
        "{refused}"
    );
    assert!(events.next().await.is_none());
    bridge.stop().await;
}

#[tokio::test]
async fn a_client_that_never_answers_is_told_what_is_missing() {
    let bridge = Bridge::start(&[], |settings| {
        settings.isolation = Isolation::PerSession;
        settings.times.request = Duration::from_millis(200);
    })
    .await;
    let mut client = bridge.client();
    client.initialize(roots_capable()).await;
    let (status, body) = client.try_call(json!(1), "echo", json!({})).await;
    assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
    assert!(
        body["error"]["message"].as_str().unwrap().contains("roots/list"),
        "{body}"
    );
    bridge.stop().await;
}

#[tokio::test]
async fn a_request_that_waits_for_its_scope_can_be_cancelled() {
    let bridge = Bridge::isolated().await;
    let mut client = bridge.client();
    client.initialize(roots_capable()).await;
    let cancel = |id: i32| {
        let cancelled =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        let client = client.clone();
        async move { client.post(JSON, &cancelled).await }
    };
    // The one that wants one answer gets it; the request may not have arrived at the first cancellation.
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.try_call(json!(7), "who", json!({})).await }
    });
    eventually("the end of the request", async || {
        cancel(7).await;
        waiting.is_finished()
    })
    .await;
    let (status, body) = waiting.await.unwrap();
    assert_eq!(
        (status, &body["error"]["code"]),
        (StatusCode::OK, &json!(-32800)),
        "{body}"
    );

    // The one that has a stream sees it end without an answer. The session goes on.
    let mut events = Events::of(client.post(BOTH, &tool_call(json!(8), "who", json!({}))).await);
    cancel(8).await;
    answer_roots(&client, &mut events, &[uri(bridge.scope.path())]).await;
    assert!(events.next().await.is_none());
    assert_eq!(
        client.who().await.scope,
        bridge.scope.path().canonicalize().unwrap()
    );
    bridge.stop().await;
}

#[tokio::test]
async fn sessions_have_their_own_children_and_idle_ones_end() {
    let bridge = Bridge::start(&[], |settings| {
        settings.isolation = Isolation::PerSession;
        settings.times.session_idle = Duration::from_secs(3);
    })
    .await;
    let (one, two) = (bridge.session().await, bridge.session().await);
    let (first, second) = (one.who().await, two.who().await);
    assert_ne!(first.pid, second.pid);
    // An open stream keeps the one; the other ends.
    let _events = one.events(None).await;
    eventually("the idle session's end", async || !is_alive(second.pid)).await;
    let (status, _) = two.try_call(json!(1), "echo", json!({})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(is_alive(first.pid));
    bridge.stop().await;
}

#[tokio::test]
async fn a_question_of_the_child_reaches_its_own_client() {
    let bridge = Bridge::isolated().await;
    let mut client = bridge.client();
    client.initialize(json!({ "sampling": {} })).await;
    let mut events = client.events(None).await;
    let asking = tokio::spawn({
        let client = client.clone();
        async move {
            client
                .call("ask", json!({ "method": "sampling/createMessage" }))
                .await
        }
    });
    let question = events.next_json().await;
    assert_eq!(question["method"], "sampling/createMessage");
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "said": "yes" } });
    // Another client cannot answer for this one.
    bridge
        .session()
        .await
        .post(
            JSON,
            &json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "said": "no" } }),
        )
        .await;
    client.post(JSON, &answer).await;
    let heard: Value = serde_json::from_str(&asking.await.unwrap()).unwrap();
    assert_eq!(heard["result"]["said"], "yes");
    bridge.stop().await;
}

#[tokio::test]
async fn a_late_answer_does_not_reach_the_next_child() {
    let bridge = Bridge::isolated().await;
    let mut client = bridge.client();
    client.initialize(json!({ "sampling": {} })).await;
    let mut events = client.events(None).await;
    let ask = || {
        let client = client.clone();
        let arguments = json!({ "method": "sampling/createMessage" });
        tokio::spawn(async move { client.try_call(json!(1), "ask", arguments).await })
    };
    let first = ask();
    let stale = events.next_json().await;
    client.try_call(json!(2), "crash", json!({})).await;
    assert_eq!(first.await.unwrap().0, StatusCode::INTERNAL_SERVER_ERROR);

    // The new child counts from the beginning, so for it the question has the same name.
    let second = ask();
    let fresh = events.next_json().await;
    for (question, said) in [(&stale, "late"), (&fresh, "yes")] {
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "said": said } });
        client.post(JSON, &answer).await;
    }
    let (_, answer) = second.await.unwrap();
    let heard: Value =
        serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(heard["result"]["said"], "yes");
    bridge.stop().await;
}

#[tokio::test]
async fn a_child_that_takes_its_question_back_is_understood() {
    let bridge = Bridge::isolated().await;
    let mut client = bridge.client();
    client.initialize(json!({ "sampling": {} })).await;
    let mut events = client.events(None).await;
    let call = tool_call(
        json!(1),
        "ask",
        json!({ "method": "sampling/createMessage", "cancel": true }),
    );
    let _response = client.post(BOTH, &call).await;
    let question = events.next_json().await;
    let cancelled = events.next_json().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    bridge.stop().await;
}

#[tokio::test]
async fn what_a_child_says_against_an_initialize_reaches_its_client() {
    let bridge = Bridge::isolated().await;
    let client = bridge.client();
    for capabilities in [json!({}), roots_capable()] {
        let mut bad = crate::harness::initialize("2025-11-25", capabilities);
        bad["params"].as_object_mut().unwrap().remove("clientInfo");
        let response = client.post(JSON, &bad).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert!(!response.headers().contains_key("mcp-session-id"));
        let answer: Value = response.json().await.unwrap();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!("init"), &json!(-32602))
        );
    }
    bridge.stop().await;
}

#[tokio::test]
async fn a_session_with_an_open_request_is_not_idle() {
    let bridge = Bridge::start(&[], |settings| {
        settings.isolation = Isolation::PerSession;
        settings.times.session_idle = Duration::from_secs(2);
    })
    .await;
    let client = bridge.session().await;
    let ask = tool_call(json!(1), "ask", json!({ "method": "sampling/createMessage" }));
    let mut events = Events::of(client.post(BOTH, &ask).await);
    let question = events.next().await.unwrap();
    drop(events);
    // A later client that does nothing is gone when the time is over.
    bridge.session().await;
    bridge.wait_for_sessions(1).await;
    let mut resumed = client.events(question.id.as_deref()).await;
    let reply = json!({ "jsonrpc": "2.0", "id": question.json()["id"], "result": {} });
    client.post(JSON, &reply).await;
    assert_eq!(resumed.next_json().await["id"], 1);
    bridge.stop().await;
}

#[tokio::test]
async fn a_crowd_is_greeted_by_one_child() {
    const CROWD: usize = 5;
    let directory = tempfile::tempdir().unwrap();
    let (obstacle, count) = (directory.path().join("obstacle"), directory.path().join("count"));
    std::fs::write(&obstacle, "").unwrap();
    let flags = [
        format!("--count={}", count.display()),
        format!("--start-after={}", obstacle.display()),
    ];
    let bridge = Bridge::start(&[&flags[0], &flags[1]], |settings| {
        settings.isolation = Isolation::PerSession;
    })
    .await;
    let crowd: Vec<_> = (0..CROWD)
        .map(|_| {
            let mut client = bridge.client();
            tokio::spawn(async move { client.initialize(roots_capable()).await })
        })
        .collect();
    bridge.wait_for_sessions(CROWD).await;
    std::fs::remove_file(&obstacle).unwrap();
    for greeted in crowd {
        assert_eq!(greeted.await.unwrap()["serverInfo"]["name"], "fake_mcp");
    }
    assert_eq!(std::fs::read_to_string(&count).unwrap().lines().count(), 1);
    bridge.stop().await;
}

#[tokio::test]
async fn each_client_refused_in_a_crowd_gets_the_answer_to_its_own_request() {
    let directory = tempfile::tempdir().unwrap();
    let obstacle = directory.path().join("obstacle");
    std::fs::write(&obstacle, "").unwrap();
    let flag = format!("--start-after={}", obstacle.display());
    let bridge = Bridge::start(&[&flag], |settings| settings.isolation = Isolation::PerSession).await;
    let crowd: Vec<_> = (0..3)
        .map(|id| {
            let client = bridge.client();
            let nameless = json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": roots_capable(),
            }});
            tokio::spawn(async move { client.post(JSON, &nameless).await.json::<Value>().await.unwrap() })
        })
        .collect();
    bridge.wait_for_sessions(crowd.len()).await;
    std::fs::remove_file(&obstacle).unwrap();
    for (id, refused) in crowd.into_iter().enumerate() {
        let refused = refused.await.unwrap();
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&json!(id), &json!(-32602))
        );
    }
    bridge.stop().await;
}

#[tokio::test]
async fn a_directorys_name_cannot_write_into_the_log() {
    let project = tempfile::tempdir().unwrap();
    let root = project.path().canonicalize().unwrap();
    let root = root.join("x\nERROR forged: \u{1b}[31m\u{9b}31m");
    std::fs::create_dir(&root).unwrap();
    let bridge = BridgeProcess::start(&[], &["--session-isolation"]);
    let mut client = bridge.client();
    client.initialize(roots_capable()).await;
    let mut events = client.events(None).await;
    answer_roots(&client, &mut events, &[uri(&root)]).await;
    assert_eq!(client.who().await.scope, root);
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    client.post(JSON, &changed).await;
    let log = bridge.stop();
    assert!(
        log.contains("scope locked") && log.contains("changed its roots"),
        "{log}"
    );
    assert!(!log.lines().any(|line| line.starts_with("ERROR forged")), "{log}");
    assert!(!log.contains(|c: char| c.is_control() && c != '\n'), "{log:?}");
}
