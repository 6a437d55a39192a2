//! Reads a request's body within bounds of size and time.

use axum::body::Body;
use bytes::Bytes;
use http::header::EXPECT;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::http::refusal::Refusal;
use crate::settings::BridgeSettings;

pub(crate) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    settings: &BridgeSettings,
) -> Result<Bytes, Refusal> {
    let limit = settings.limits.body_bytes;
    if http_body::Body::size_hint(&body).lower() > limit as u64 {
        discard(headers, body, settings).await;
        return Err(too_large(limit));
    }
    let collected = Limited::new(&mut body, limit).collect();
    match tokio::time::timeout(settings.times.body, collected).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            discard(headers, body, settings).await;
            Err(too_large(limit))
        }
        Ok(Err(_)) => Err(Refusal::bad_request("the body ended early")),
        Err(_) => Err(Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            -32600,
            "the body was not sent in time",
        )),
    }
}

fn too_large(limit: usize) -> Refusal {
    Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        -32600,
        format!("the body is larger than {limit} bytes"),
    )
}

/// Size up to which an unwanted body is read, as a multiple of the largest accepted one.
const DISCARDED: usize = 4;

/// Reads what is of no use, within bounds: a connection that is closed before all is read loses the answer. A client that
/// waits for leave to send it sends nothing.
pub(crate) async fn discard(headers: &HeaderMap, mut body: Body, settings: &BridgeSettings) {
    if headers.contains_key(EXPECT) {
        return;
    }
    let mut left = settings.limits.body_bytes.saturating_mul(DISCARDED);
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let Some(rest) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else {
                return;
            };
            left = rest;
        }
    };
    let _ = tokio::time::timeout(settings.times.body, reading).await;
}
