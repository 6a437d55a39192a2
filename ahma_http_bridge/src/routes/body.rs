//! Reads a request's body within bounds of size and time.

use axum::body::Body;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::http::refusal::Refusal;
use crate::settings::BridgeSettings;

pub(crate) async fn read(body: Body, settings: &BridgeSettings) -> Result<Bytes, Refusal> {
    let limit = settings.limits.body_bytes;
    let too_large = || {
        Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            -32600,
            format!("the body is larger than {limit} bytes"),
        )
    };
    if http_body::Body::size_hint(&body).lower() > limit as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(settings.times.body, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Refusal::bad_request("the body ended early")),
        Err(_) => Err(Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            -32600,
            "the body was not sent in time",
        )),
    }
}
