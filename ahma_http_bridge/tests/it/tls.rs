//! TLS, with both versions of HTTP and a certificate that changes under way.

use std::path::Path;
use std::time::Duration;

use ahma_http_bridge::TlsSettings;
use reqwest::{Certificate, Version};
use serde_json::json;

use crate::harness::{Bridge, Client, eventually, http_client};

/// The files written by [`write_certificate`].
fn certified(directory: &Path) -> TlsSettings {
    TlsSettings {
        certificate: directory.join("cert.pem"),
        key: directory.join("key.pem"),
    }
}

/// Writes a new certificate for localhost; gives it back for the client to trust.
fn write_certificate(directory: &Path) -> Certificate {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(directory.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    Certificate::from_pem(made.cert.pem().as_bytes()).unwrap()
}

fn trusting(certificate: &Certificate) -> reqwest::Client {
    http_client();
    reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([certificate.clone()])
        .build()
        .unwrap()
}

#[tokio::test]
async fn tls_serves_http_2_and_takes_up_a_new_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let first = write_certificate(directory.path());
    let bridge = Bridge::start(&[], |settings| {
        settings.tls = Some(certified(directory.path()));
    })
    .await;
    let url = format!("https://localhost:{}/healthz", bridge.address.port());
    let response = trusting(&first).get(&url).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.version()),
        (200, Version::HTTP_2)
    );
    let old = reqwest::Client::builder()
        .no_proxy()
        .http1_only()
        .tls_certs_only([first.clone()])
        .build()
        .unwrap();
    assert_eq!(old.get(&url).send().await.unwrap().version(), Version::HTTP_11);
    assert!(
        trusting(&first)
            .get(url.replace("https", "http"))
            .send()
            .await
            .is_err(),
        "no plain HTTP on a TLS port"
    );

    let second = write_certificate(directory.path());
    eventually("the new certificate", async || {
        trusting(&second).get(&url).send().await.is_ok()
    })
    .await;
    assert!(trusting(&first).get(&url).send().await.is_err());
    bridge.stop().await;
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed_and_one_with_an_open_stream_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let certificate = write_certificate(directory.path());
    let bridge = Bridge::start(&[], |settings| {
        settings.tls = Some(certified(directory.path()));
        settings.times.head = Duration::from_secs(2);
        settings.times.keep_alive = Duration::from_millis(50);
    })
    .await;
    let port = bridge.address.port();
    let mut client = Client {
        url: format!("https://localhost:{port}/mcp"),
        session: None,
        http: trusting(&certificate),
    };
    client.initialize(json!({})).await;
    let mut events = client.events(None).await;
    let idle = trusting(&certificate);
    let health = client.url.replace("/mcp", "/healthz");
    assert_eq!(idle.get(health).send().await.unwrap().version(), Version::HTTP_2);
    let metrics = client.url.replace("/mcp", "/metrics");
    eventually("the end of the connection", async || {
        let text = client.http.get(&metrics).send().await.unwrap().text();
        text.await.unwrap().contains("ahma_connections 1\n")
    })
    .await;
    client.call("list_changed", json!({})).await;
    assert_eq!(
        events.next_json().await["method"],
        "notifications/tools/list_changed"
    );
    bridge.stop().await;
}

#[tokio::test]
async fn a_client_that_takes_no_answer_loses_its_connection() {
    let directory = tempfile::tempdir().unwrap();
    let certificate = write_certificate(directory.path());
    let bridge = Bridge::start(&[], |settings| {
        settings.tls = Some(certified(directory.path()));
        settings.times.head = Duration::from_secs(2);
        settings.times.write = Duration::from_millis(300);
        settings.times.keep_alive = Duration::from_millis(50);
    })
    .await;
    let url = |path: &str| format!("https://localhost:{}{path}", bridge.address.port());
    let asking = trusting(&certificate);
    let mut unread = Vec::new();
    // The first takes nothing of any answer, the second one byte.
    for window in [0, 1] {
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([certificate.clone()])
            .http2_initial_stream_window_size(window)
            .build()
            .unwrap();
        let response = client.get(url("/healthz")).send().await.unwrap();
        assert_eq!(response.version(), Version::HTTP_2);
        unread.push((client, response));
    }
    eventually("the end of both connections", async || {
        let text = asking.get(url("/metrics")).send().await.unwrap().text();
        text.await.unwrap().contains("ahma_connections 1\n")
    })
    .await;
    drop(unread);
    bridge.stop().await;
}
