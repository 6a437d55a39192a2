//! Requests, progress, questions and cancellation across eras.

use std::sync::{Arc, atomic::Ordering};

use super::client::{Client, call, leave, start};
use crate::{
    fixture::{
        eventually,
        host::Host,
        tools::{Era, Shared, router},
    },
    remote::call_of,
};

#[tokio::test]
async fn every_era_speaks_to_every_other() {
    for client_era in [Era::Legacy, Era::Modern] {
        for server_era in [Era::Legacy, Era::Modern] {
            let case = format!("client {client_era:?}, server {server_era:?}");
            let shared = Arc::new(Shared::default());
            let host = Host::start(|_| router(server_era, &shared));
            let client = Client::default();
            let (service, front, _dir) = start(&host.url("/mcp"), client_era, &client).await;
            let info = service.peer().peer_info().unwrap();
            assert_eq!(info.server_info.as_ref().unwrap().name, "fixture", "{case}");
            assert_eq!(service.list_all_tools().await.unwrap().len(), 3, "{case}");
            let typed = service
                .call_tool(call_of("echo", serde_json::json!({"text": "hi"})))
                .await
                .unwrap();
            assert_eq!(
                typed.result_type.is_some(),
                client_era == Era::Modern,
                "{case}: {typed:?}"
            );
            let echo = call(&service, call_of("echo", serde_json::json!({"text": "hi"}))).await;
            assert!(echo.contains("hi"), "{case}: {echo}");
            call(
                &service,
                call_of("count", serde_json::json!({"to": 5, "pause_ms": 1})),
            )
            .await;
            let progress = || (client.progress.load(Ordering::SeqCst) == 5).then_some(());
            eventually(&case, progress).await;
            let unknown = service
                .call_tool(call_of("nonsense", serde_json::json!({})))
                .await
                .unwrap_err();
            assert!(
                unknown.to_string().contains("no tool nonsense"),
                "{case}: {unknown}"
            );
            let answer = call(&service, call_of("ask", serde_json::json!({}))).await;
            if (client_era, server_era) == (Era::Modern, Era::Legacy) {
                // A legacy server asks in the middle of a call, which a modern client cannot be.
                assert!(answer.contains("cannot be asked"), "{case}: {answer}");
            } else {
                assert!(answer.contains("blue"), "{case}: {answer}");
            }
            leave(service, front).await;
        }
    }
}

#[tokio::test]
async fn a_cancelled_request_is_cancelled_at_the_server() {
    for server_era in [Era::Legacy, Era::Modern] {
        let shared = Arc::new(Shared::default());
        let host = Host::start(|_| router(server_era, &shared));
        let (service, _front, _dir) = start(&host.url("/mcp"), Era::Legacy, &Client::default()).await;
        tokio::select! {
            _ = service.call_tool(call_of("slow", serde_json::json!({}))) => panic!("ended by itself"),
            () = eventually("the call", || (shared.calls.load(Ordering::SeqCst) == 1).then_some(())) => {}
        }
        eventually("the cancellation", || {
            shared.cancelled.load(Ordering::SeqCst).then_some(())
        })
        .await;
    }
}
