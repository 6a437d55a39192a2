//! POST in the revision without sessions, 2026-07-28: each request stands alone, and closing its response
//! stream cancels it.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use tokio::sync::oneshot;

use super::exchange::{Exchange, answer_response};
use crate::activity::Activity;
use crate::child::{Answer, CallFailure, CallParams, Child, Reply};
use crate::http::negotiate::Wanted;
use crate::http::refusal::{Era, Refusal};
use crate::http::sse::StreamGuard;
use crate::http::standard_headers;
use crate::session::{BackendLease, EventStream, Keep};
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
    let listens = request.method == "subscriptions/listen";
    exchange.bridge.refuse_under_pressure()?;
    let permit = exchange.bridge.sessionless.permit(exchange.principal)?;
    let BackendLease { child, activity } = exchange.bridge.child_without_session(exchange.principal).await?;
    let call = |reply| {
        let params = exchange.call_params(request, None, permit, reply);
        match listens {
            // A subscription may be silent for as long as it likes.
            true => CallParams {
                timeout: None,
                ..params
            },
            false => params,
        }
    };
    match exchange.wanted {
        Wanted::Json if listens => Err(Refusal::new(
            StatusCode::NOT_ACCEPTABLE,
            -32000,
            "subscriptions/listen needs Accept: text/event-stream",
        )),
        Wanted::Json => {
            let (tx, answer) = oneshot::channel();
            let number = child.call(request, call(Reply::Once(tx))).ok();
            let mut guard = CancelOnDrop::new(&child, number, activity);
            let answer = answer.await.unwrap_or_else(|_| Answer::lost());
            guard.completed();
            Ok(answer_response(answer, Era::Modern))
        }
        Wanted::EventStream => {
            let stream = EventStream::for_answers(0, Keep::UntilRead, 1);
            let number = child
                .call(request, call(Reply::Events(Arc::clone(&stream) as _)))
                .ok();
            let guard = CancelOnDrop::new(&child, number, activity);
            Ok(exchange.stream_response(&stream, None, Era::Modern, guard).await)
        }
    }
}

/// Cancels a call whose client went away before the answer.
struct CancelOnDrop {
    child: Arc<Child>,
    number: Option<u64>,
    _activity: Option<Activity>,
}

impl CancelOnDrop {
    fn new(child: &Arc<Child>, number: Option<u64>, activity: Option<Activity>) -> Self {
        Self {
            child: Arc::clone(child),
            number,
            _activity: activity,
        }
    }
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
            self.child.cancel(number, CallFailure::Cancelled, reason);
        }
    }
}
