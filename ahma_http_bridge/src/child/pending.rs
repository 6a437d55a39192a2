//! The requests a child has not answered yet, and what to do when the answer comes, or never does.
//!
//! Every request gets a number of ours on the pipe, which is also its progress token and subscription id
//! there, so that clients who share a child cannot meet. The client's own ids are put back on the way out.
//!
//! All clients of a child share one lock around this. So what takes a call out hands it over as [`Over`], to be finished
//! after the lock is free: that may mean to copy a long answer and to search the arguments for secrets.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::audit::CallRecord;
use crate::envelope::{Edit, Envelope, MAX_ID_BYTES, Params, RpcRequest, error_message, splice};
use crate::session::Activity;
use crate::stream::EventStream;

/// Whose request it is: the serial number of a session, or of a principal that goes without one.
pub(crate) type OwnerId = u64;

/// The bridge itself, which asks for all.
pub(crate) const BRIDGE: OwnerId = 0;

/// Whose request it is, where the answer goes, and what lasts until then.
#[derive(Debug)]
pub(crate) struct CallParams {
    pub(crate) reply: Reply,
    pub(crate) owner: OwnerId,
    /// The longest silence before the call is given up; `None` for a subscription, which may be silent.
    pub(crate) patience: Option<Duration>,
    /// The client's place among the calls it may have open, given back when this one is over.
    #[expect(dead_code, reason = "held for its drop")]
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    /// A session with an open call is in use, also when nobody waits for the answer just now.
    #[expect(dead_code, reason = "held for its drop")]
    pub(crate) activity: Option<Activity>,
    /// What the audit trail will say of the call.
    pub(crate) record: Option<CallRecord>,
    /// What holds only if the child agrees.
    pub(crate) provisional: Option<Box<dyn Provisional>>,
}

/// Something that is taken back when it is dropped, unless it was granted.
pub(crate) trait Provisional: Send + Debug {
    /// Hears of the child's consent before anything that the child says after it.
    fn granted(&mut self);
}

#[derive(Debug)]
pub(crate) enum Reply {
    /// The answer and nothing else.
    Once(oneshot::Sender<Answer>),
    /// Notifications of the request, then its answer.
    Events(Arc<EventStream>),
}

/// The end of a call: a JSON-RPC message in any case.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) body: Bytes,
    pub(crate) verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Result,
    /// The child answered with this JSON-RPC error code.
    RpcError(i64),
    /// The child did not answer.
    Failed(CallFailure),
    /// The child was never asked, for a reason that has this HTTP status.
    Refused(u16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallFailure {
    #[error("the server process ended before it answered")]
    ChildDied,
    #[error("the server process did not answer in time")]
    TimedOut,
    #[error("the request was cancelled")]
    Cancelled,
    #[error("the session ended before the answer")]
    SessionEnded,
    #[error("the server process was stopped before it answered")]
    Stopped,
    #[error("the server process does not read its input")]
    ChildStuck,
    #[error("`params` names a key twice, or a progress token of more than {MAX_ID_BYTES} bytes")]
    Unreadable,
    #[error("no such method for clients")]
    NotForClients,
}

/// A call that is no longer open. Whoever waits for it hears of it from [`Over::finish`] or [`Over::fail`] only.
#[derive(Debug)]
#[must_use = "somebody waits for the end of the call"]
pub(crate) struct Over {
    call: Call,
    _finishing: Arc<()>,
}

#[derive(Debug)]
struct Call {
    params: CallParams,
    id: Box<str>,
    token: Option<Box<str>>,
    /// Whether there may be something to say about it after the answer.
    has_aftermath: bool,
    last_sign: Instant,
}

/// A call that was answered, remembered because what it started may have something to say after it returned.
#[derive(Debug)]
struct Answered {
    number: u64,
    owner: OwnerId,
    id: Box<str>,
    token: Option<Box<str>>,
}

/// Enough for the operations a child keeps in its history.
const MAX_ANSWERED: usize = 1024;

#[derive(Debug)]
pub(crate) struct Pending {
    /// `None` once the child is over: nothing may be registered that nobody would ever answer.
    calls: Option<HashMap<u64, Call>>,
    /// What a late-comer is told: why the child is over.
    over: CallFailure,
    answered: VecDeque<Answered>,
    /// Shared with every call that is being finished, so that those are counted as well.
    finishing: Arc<()>,
}

/// Where a notification with one of our numbers in it belongs.
#[derive(Debug)]
pub(crate) enum Route {
    /// It was put into the stream of its open request, or is for nobody.
    Settled,
    /// It is for this client, but not for an open stream.
    Owner(OwnerId, Bytes),
    /// The number is not one of ours.
    Unknown,
}

impl Route {
    fn settle(stream: &EventStream, message: Bytes) -> Self {
        // A stream that is closed before its answer is one that nobody reads.
        let _ = stream.push(message);
        Self::Settled
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
        let open = calls.filter(|(_, call)| call.params.patience.is_some()).count();
        open + Arc::strong_count(&self.finishing) - 1
    }

    fn over(&self, call: Call) -> Over {
        Over {
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
    ) -> Result<(), (Box<Over>, CallFailure)> {
        let call = Call {
            params,
            id: request.id.get().into(),
            token: token.map(|token| token.get().into()),
            // What goes on in the background is told by the call that started it, or asked to hear of it.
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

    /// Takes out the call that the child has answered. `None` if nobody asked, or nobody asks any more.
    pub(crate) fn answer(&mut self, number: u64) -> Option<Over> {
        let over = self.give_up(number)?;
        let call = &over.call;
        if call.has_aftermath {
            self.remember(Answered {
                number,
                owner: call.params.owner,
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

    /// Delivers a progress notification whose token is `token`.
    pub(crate) fn progress(&mut self, envelope: &Envelope<'_>, token: &RawValue) -> Route {
        let Ok(number) = token.get().parse::<u64>() else {
            return Route::Unknown;
        };
        let edited = |client_token: &str| {
            splice(
                envelope.text(),
                vec![Edit {
                    span: envelope.span(token),
                    text: client_token.to_owned(),
                }],
            )
            .freeze()
        };
        if let Some(call) = self.calls.as_mut().and_then(|calls| calls.get_mut(&number)) {
            let Some(client_token) = &call.token else {
                return Route::Unknown;
            };
            call.last_sign = Instant::now();
            let body = edited(client_token);
            return match &call.params.reply {
                Reply::Events(stream) => Route::settle(stream, body),
                Reply::Once(_) => Route::Owner(call.params.owner, body),
            };
        }
        match self.answered(number) {
            Some(Answered {
                owner,
                token: Some(token),
                ..
            }) => Route::Owner(*owner, edited(token)),
            _ => Route::Unknown,
        }
    }

    /// Delivers a notification that names the request it belongs to.
    pub(crate) fn related(&mut self, envelope: &Envelope<'_>, request: &RawValue) -> Route {
        let Ok(number) = request.get().parse::<u64>() else {
            return Route::Unknown;
        };
        let edited = |id: &str| {
            let edit = Edit {
                span: envelope.span(request),
                text: id.to_owned(),
            };
            splice(envelope.text(), vec![edit]).freeze()
        };
        if let Some(call) = self.calls.as_ref().and_then(|calls| calls.get(&number)) {
            return match &call.params.reply {
                Reply::Events(stream) => Route::settle(stream, edited(&call.id)),
                Reply::Once(_) => Route::Owner(call.params.owner, edited(&call.id)),
            };
        }
        match self.answered(number) {
            Some(answered) => Route::Owner(answered.owner, edited(&answered.id)),
            None => Route::Unknown,
        }
    }

    fn answered(&self, number: u64) -> Option<&Answered> {
        self.answered
            .iter()
            .rev()
            .find(|answered| answered.number == number)
    }

    /// Delivers a notification of a `subscriptions/listen` stream.
    pub(crate) fn subscription(&mut self, envelope: &Envelope<'_>, subscription: &RawValue) -> Route {
        let number = subscription.get().trim_matches('"').parse::<u64>();
        let call = number
            .ok()
            .and_then(|number| self.calls.as_mut()?.get_mut(&number));
        match call {
            Some(Call {
                params:
                    CallParams {
                        reply: Reply::Events(stream),
                        ..
                    },
                id,
                ..
            }) => {
                let edit = Edit {
                    span: envelope.span(subscription),
                    text: id.to_string(),
                };
                Route::settle(stream, splice(envelope.text(), vec![edit]).freeze())
            }
            _ => Route::Unknown,
        }
    }

    /// The number of an open request, by the name its client gave it.
    pub(crate) fn number_of(&self, owner: OwnerId, id: &str) -> Option<u64> {
        let found = |(number, call): (&u64, &Call)| {
            (call.params.owner == owner && &*call.id == id).then_some(*number)
        };
        self.calls.as_ref()?.iter().find_map(found)
    }

    /// Takes out a call, if it is still open.
    pub(crate) fn give_up(&mut self, number: u64) -> Option<Over> {
        let call = self.calls.as_mut()?.remove(&number)?;
        Some(self.over(call))
    }

    /// Takes out every call that `choose` picks.
    fn give_up_where(&mut self, choose: impl Fn(&Call) -> bool) -> Vec<(u64, Over)> {
        let calls = self.calls.iter_mut();
        let chosen: Vec<_> = calls
            .flat_map(|calls| calls.extract_if(|_, call| choose(call)))
            .collect();
        let chosen = chosen.into_iter();
        chosen.map(|(number, call)| (number, self.over(call))).collect()
    }

    pub(crate) fn give_up_owner(&mut self, owner: OwnerId) -> Vec<(u64, Over)> {
        self.give_up_where(|call| call.params.owner == owner)
    }

    pub(crate) fn give_up_silent(&mut self, now: Instant) -> Vec<(u64, Over)> {
        self.give_up_where(|call| {
            call.params
                .patience
                .is_some_and(|patience| now.saturating_duration_since(call.last_sign) >= patience)
        })
    }

    /// The child is over: nobody may wait any more. Gives back whoever does.
    pub(crate) fn close(&mut self, failure: CallFailure) -> Vec<Over> {
        if self.calls.is_some() {
            self.over = failure;
        }
        let calls = self.calls.take().into_iter().flatten();
        calls.map(|(_, call)| self.over(call)).collect()
    }
}

impl Over {
    /// Ends the call with the child's answer.
    pub(super) fn finish(self, envelope: &Envelope<'_>, id: &RawValue, error_code: Option<i64>) {
        let call = &self.call;
        let mut edits = vec![Edit {
            span: envelope.span(id),
            text: call.id.to_string(),
        }];
        if call.params.patience.is_none() {
            edits.extend(subscription_edit(envelope, &call.id));
        }
        let answer = Answer {
            body: splice(envelope.text(), edits).freeze(),
            verdict: error_code.map_or(Verdict::Result, Verdict::RpcError),
        };
        self.end(answer);
    }

    pub(super) fn fail(self, failure: CallFailure) {
        let answer = failure.answer(&self.call.id);
        self.end(answer);
    }

    fn end(self, answer: Answer) {
        let params = self.call.params;
        if let Some(record) = params.record {
            record.finish(answer.verdict, answer.body.len());
        }
        if let (Some(mut provisional), Verdict::Result) = (params.provisional, answer.verdict) {
            provisional.granted();
        }
        params.reply.finish(answer);
    }
}

impl CallFailure {
    /// The failure as the end of the request with this id.
    pub(crate) fn answer(self, id: &str) -> Answer {
        Answer {
            body: error_message(Some(id), self.rpc_code(), &self.to_string()),
            verdict: Verdict::Failed(self),
        }
    }

    /// Codes from the range JSON-RPC leaves to implementations.
    pub(crate) fn rpc_code(self) -> i64 {
        match self {
            Self::ChildDied | Self::Stopped => -32000,
            Self::TimedOut => -32001,
            Self::SessionEnded => -32003,
            Self::ChildStuck => -32004,
            Self::Unreadable => -32600,
            Self::NotForClients => -32601,
            Self::Cancelled => -32800,
        }
    }
}

impl Reply {
    fn finish(self, answer: Answer) {
        match self {
            // The client may be gone; there is nobody else to tell.
            Self::Once(tx) => drop(tx.send(answer)),
            Self::Events(stream) => stream.finish(answer),
        }
    }
}

/// The result of `subscriptions/listen` names the subscription again.
fn subscription_edit(envelope: &Envelope<'_>, id: &str) -> Option<Edit> {
    let result: Params<'_> = envelope.params().ok()?;
    let subscription = result.meta().ok()?.subscription_id?;
    Some(Edit {
        span: envelope.span(subscription),
        text: id.to_owned(),
    })
}

#[cfg(test)]
#[path = "pending_tests.rs"]
mod tests;
