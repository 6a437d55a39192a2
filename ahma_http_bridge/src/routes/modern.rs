//! POST in the revision without sessions, 2026-07-28: each request stands alone, and closing its response
//! stream cancels it.

use axum::response::{IntoResponse, Response};
use http::StatusCode;

use super::exchange::Exchange;
use crate::child::CallFailure;
use crate::http::negotiate::Wanted;
use crate::http::refusal::{Era, Refusal};
use crate::http::sse::StreamGuard;
use crate::http::standard_headers;
use crate::session::BackendLease;
use ahma_common::envelope::{Envelope, Meta, Params};

/// Methods of the legacy era. A child that was greeted the legacy way might still answer them.
const REMOVED: [&str; 5] = [
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

pub(crate) async fn handle(
    exchange: Exchange<'_>,
    envelope: &Envelope<'_>,
    params: &Params<'_>,
    meta: &Meta<'_>,
) -> Result<Response, Refusal> {
    standard_headers::check(exchange.headers, envelope, params, meta)?;
    let Ok(request) = envelope.request() else {
        // There is nothing a lone notification could refer to: cancelling is done by closing the stream.
        return Ok(StatusCode::ACCEPTED.into_response());
    };
    if REMOVED.contains(&request.method) {
        let message = format!("{} does not exist in this revision", request.method);
        return Err(Refusal::new(StatusCode::NOT_FOUND, -32601, message));
    }
    // A subscription may be silent for as long as it likes.
    let timeout = match request.method {
        "subscriptions/listen" if exchange.wanted == Wanted::Json => {
            return Err(Refusal::new(
                StatusCode::NOT_ACCEPTABLE,
                -32000,
                "subscriptions/listen needs Accept: text/event-stream",
            ));
        }
        "subscriptions/listen" => None,
        _ => Some(exchange.bridge.settings.times.request),
    };
    let cancel = |lease, number| CancelOnDrop { lease, number };
    exchange
        .answer_without_session(request, timeout, Era::Modern, cancel)
        .await
}

/// Cancels a call whose client went away before the answer.
struct CancelOnDrop {
    lease: BackendLease,
    number: Option<u64>,
}

impl StreamGuard for CancelOnDrop {
    fn completed(&mut self) {
        self.number = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let reason = "the client closed the stream";
            self.lease.child.cancel(number, CallFailure::Cancelled, reason);
        }
    }
}
