//! The requests a child has not answered yet, and what to do when the answer comes, or never does.
//!
//! Every request gets a number of ours on the pipe, which is also its progress token and subscription id
//! there, so that clients who share a child cannot meet. The client's own ids are put back on the way out.
//!
//! All clients of a child share one lock around this. So what takes a call out hands it over as [`FinishedCall`], to be finished
//! after the lock is free: that may mean to copy a long answer and to search the arguments for secrets.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use ahma_common::envelope::{Edit, Envelope, Params, RpcRequest, splice};

use super::answer::{Answer, CallFailure, CallOutcome};

/// The client of a request: the serial number of a session, or of a principal without one.
pub(crate) type ClientId = u64;

/// The bridge itself, which asks for all.
pub(crate) const BRIDGE: ClientId = 0;

/// Client, reply and observer of a request that is passed on.
#[derive(Debug)]
pub(crate) struct CallParams {
    pub(crate) reply: Reply,
    pub(crate) client: ClientId,
    /// The principal of the client, if it has authenticated.
    pub(crate) principal: Option<Arc<str>>,
    /// Name that the client's program gives itself, where the child cannot know it.
    pub(crate) program: Option<Arc<str>>,
    /// Patterns of the tools that the client is limited to, if it is.
    pub(crate) tools: Option<Arc<str>>,
    /// Longest silence before the call is given up; `None` for a subscription, which may be silent.
    pub(crate) timeout: Option<Duration>,
    /// Lives as long as the call is open.
    pub(crate) observer: Option<Box<dyn CallObserver>>,
}

impl CallParams {
    /// For a request of the bridge itself.
    pub(crate) fn of_bridge(reply: Reply, timeout: Duration) -> Self {
        Self {
            reply,
            client: BRIDGE,
            principal: None,
            program: None,
            tools: None,
            timeout: Some(timeout),
            observer: None,
        }
    }
}

/// Notified of the end of a call before its client is, and before any later message of the child is handled.
pub(crate) trait CallObserver: Send + Debug {
    fn ended(self: Box<Self>, answer: &Answer);
}

#[derive(Debug)]
pub(crate) enum Reply {
    /// The answer and nothing else.
    Once(oneshot::Sender<Answer>),
    /// Notifications of the request, then its answer.
    Events(Arc<dyn ReplySink>),
}

/// A stream for the notifications of a request and its answer.
pub(crate) trait ReplySink: Send + Sync + Debug {
    fn notify(&self, message: Bytes);
    fn finish(&self, answer: Answer);
}

/// A call that is no longer open. Only [`FinishedCall::finish`] and [`FinishedCall::fail`] answer its client.
#[derive(Debug)]
#[must_use = "a client waits for the end of the call"]
pub(crate) struct FinishedCall {
    call: Call,
    _finishing: Arc<()>,
}

#[derive(Debug)]
struct Call {
    params: CallParams,
    id: Box<str>,
    token: Option<Box<str>>,
    /// True if notifications may follow the answer.
    has_aftermath: bool,
    last_sign: Instant,
}

/// A call that was answered, remembered because what it started may have something to say after it returned.
#[derive(Debug)]
struct Answered {
    number: u64,
    client: ClientId,
    id: Box<str>,
    token: Option<Box<str>>,
}

/// Enough for the operations a child keeps in its history.
const MAX_ANSWERED: usize = 1024;

#[derive(Debug)]
pub(crate) struct Pending {
    /// `None` once the child is over: a call registered now would never be answered.
    calls: Option<HashMap<u64, Call>>,
    /// The reason why the child is over, for later calls.
    over: CallFailure,
    answered: VecDeque<Answered>,
    /// Shared with every call that is being finished, so that those are counted as well.
    finishing: Arc<()>,
}

/// Destination of a notification with one of our numbers in it.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// It was put into the stream of its open request, or has no recipient.
    Settled,
    /// It is for this client, but not for an open stream.
    Client(ClientId, Bytes),
    /// The number is not one of ours.
    Unknown,
}

/// The way in which a notification names a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    ProgressToken,
    Request,
    /// Of a `subscriptions/listen`.
    Subscription,
}

impl Named {
    /// The client's own text for our number.
    fn text<'c>(self, id: &'c str, token: Option<&'c str>) -> Option<&'c str> {
        match self {
            Self::ProgressToken => token,
            Self::Request | Self::Subscription => Some(id),
        }
    }
}

impl Pending {
    pub(crate) fn new() -> Self {
        Self {
            calls: Some(HashMap::new()),
            over: CallFailure::ChildDied,
            answered: VecDeque::new(),
            finishing: Arc::default(),
        }
    }

    /// Requests that will be answered; a subscription is open for as long as its client likes.
    pub(crate) fn unanswered(&self) -> usize {
        let calls = self.calls.iter().flatten();
        let open = calls.filter(|(_, call)| call.params.timeout.is_some()).count();
        open + Arc::strong_count(&self.finishing) - 1
    }

    fn over(&self, call: Call) -> FinishedCall {
        FinishedCall {
            call,
            _finishing: Arc::clone(&self.finishing),
        }
    }

    /// Registers a call. Gives it back with the reason when the child is over.
    pub(super) fn insert(
        &mut self,
        number: u64,
        request: RpcRequest<'_>,
        token: Option<&RawValue>,
        params: CallParams,
    ) -> Result<(), (Box<FinishedCall>, CallFailure)> {
        let call = Call {
            params,
            id: request.id.get().into(),
            token: token.map(|token| token.get().into()),
            // Background work reports under the call that started it, or that asked for log messages.
            has_aftermath: matches!(request.method, "tools/call" | "logging/setLevel"),
            last_sign: Instant::now(),
        };
        match &mut self.calls {
            Some(calls) => {
                calls.insert(number, call);
                Ok(())
            }
            None => Err((Box::new(self.over(call)), self.over)),
        }
    }

    /// Takes out the call that the child has answered. `None` if it is not open.
    pub(crate) fn answer(&mut self, number: u64) -> Option<FinishedCall> {
        let over = self.give_up(number)?;
        let call = &over.call;
        if call.has_aftermath {
            self.remember(Answered {
                number,
                client: call.params.client,
                id: call.id.clone(),
                token: call.token.clone(),
            });
        }
        Some(over)
    }

    fn remember(&mut self, answered: Answered) {
        if self.answered.len() == MAX_ANSWERED {
            self.answered.pop_front();
        }
        self.answered.push_back(answered);
    }

    /// Delivers a notification that names one of our numbers in `value`.
    pub(crate) fn deliver(&mut self, envelope: &Envelope<'_>, value: &RawValue, named: Named) -> Delivery {
        let number = match named {
            Named::Subscription => value.get().trim_matches('"').parse::<u64>(),
            Named::ProgressToken | Named::Request => value.get().parse::<u64>(),
        };
        let Ok(number) = number else {
            return Delivery::Unknown;
        };
        if let Some(call) = self.calls.as_mut().and_then(|calls| calls.get_mut(&number)) {
            let Some(text) = named.text(&call.id, call.token.as_deref()) else {
                return Delivery::Unknown;
            };
            if named == Named::ProgressToken {
                call.last_sign = Instant::now();
            }
            return match &call.params.reply {
                Reply::Events(stream) => {
                    stream.notify(envelope.replaced(value, text));
                    Delivery::Settled
                }
                Reply::Once(_) if named == Named::Subscription => Delivery::Unknown,
                Reply::Once(_) => Delivery::Client(call.params.client, envelope.replaced(value, text)),
            };
        }
        let mut answered = self.answered.iter().rev();
        let answered = answered.find(|answered| answered.number == number && named != Named::Subscription);
        let text = answered.and_then(|answered| named.text(&answered.id, answered.token.as_deref()));
        match (answered, text) {
            (Some(answered), Some(text)) => Delivery::Client(answered.client, envelope.replaced(value, text)),
            _ => Delivery::Unknown,
        }
    }

    /// The number of an open request, by the name its client gave it.
    pub(crate) fn number_of(&self, client: ClientId, id: &str) -> Option<u64> {
        let found = |(number, call): (&u64, &Call)| {
            (call.params.client == client && &*call.id == id).then_some(*number)
        };
        self.calls.as_ref()?.iter().find_map(found)
    }

    /// Takes out a call, if it is still open.
    pub(crate) fn give_up(&mut self, number: u64) -> Option<FinishedCall> {
        let call = self.calls.as_mut()?.remove(&number)?;
        Some(self.over(call))
    }

    /// Takes out every call that `choose` picks.
    fn give_up_where(&mut self, choose: impl Fn(&Call) -> bool) -> Vec<(u64, FinishedCall)> {
        let calls = self.calls.iter_mut();
        let chosen: Vec<_> = calls
            .flat_map(|calls| calls.extract_if(|_, call| choose(call)))
            .collect();
        let chosen = chosen.into_iter();
        chosen.map(|(number, call)| (number, self.over(call))).collect()
    }

    pub(crate) fn give_up_client(&mut self, client: ClientId) -> Vec<(u64, FinishedCall)> {
        self.give_up_where(|call| call.params.client == client)
    }

    pub(crate) fn give_up_silent(&mut self, now: Instant) -> Vec<(u64, FinishedCall)> {
        self.give_up_where(|call| {
            call.params
                .timeout
                .is_some_and(|timeout| now.saturating_duration_since(call.last_sign) >= timeout)
        })
    }

    /// Takes out every call when the child is over; later ones are refused.
    pub(crate) fn close(&mut self, failure: CallFailure) -> Vec<FinishedCall> {
        if self.calls.is_some() {
            self.over = failure;
        }
        let calls = self.calls.take().into_iter().flatten();
        calls.map(|(_, call)| self.over(call)).collect()
    }
}

impl FinishedCall {
    /// Ends the call with the child's answer.
    pub(super) fn finish(self, envelope: &Envelope<'_>, id: &RawValue, error_code: Option<i64>) {
        let call = &self.call;
        let mut edits = vec![envelope.edit(id, &*call.id)];
        if call.params.timeout.is_none() {
            edits.extend(subscription_edit(envelope, &call.id));
        }
        let answer = Answer {
            body: splice(envelope.text(), edits).freeze(),
            outcome: error_code.map_or(CallOutcome::Result, CallOutcome::RpcError),
        };
        self.end(answer);
    }

    pub(super) fn fail(self, failure: CallFailure) {
        let answer = failure.answer(&self.call.id);
        self.end(answer);
    }

    fn end(self, answer: Answer) {
        let params = self.call.params;
        if let Some(observer) = params.observer {
            observer.ended(&answer);
        }
        params.reply.finish(answer);
    }
}

impl Reply {
    fn finish(self, answer: Answer) {
        match self {
            // The client may be gone.
            Self::Once(tx) => drop(tx.send(answer)),
            Self::Events(stream) => stream.finish(answer),
        }
    }
}

/// The result of `subscriptions/listen` names the subscription again.
fn subscription_edit(envelope: &Envelope<'_>, id: &str) -> Option<Edit> {
    let result: Params<'_> = envelope.params().ok()?;
    let subscription = result.meta().ok()?.subscription_id?;
    Some(envelope.edit(subscription, id))
}

#[cfg(test)]
#[path = "pending_tests.rs"]
mod tests;
