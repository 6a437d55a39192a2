//! State that lasts as long as a client's request is open.

use tokio::sync::OwnedSemaphorePermit;

use super::hub::SubscriptionClaim;
use crate::activity::Activity;
use crate::audit::CallRecord;
use crate::child::{Answer, CallObserver, CallOutcome};

#[derive(Debug)]
pub(crate) struct OpenCall {
    /// One of the calls that the client may have open.
    pub(crate) _permit: OwnedSemaphorePermit,
    /// A session with an open call is in use, even while its client is not connected.
    pub(crate) _activity: Option<Activity>,
    pub(crate) record: Option<CallRecord>,
    /// Holds only if the child agrees.
    pub(crate) claim: Option<SubscriptionClaim>,
}

impl CallObserver for OpenCall {
    fn ended(self: Box<Self>, answer: &Answer) {
        if let Some(record) = self.record {
            let outcome = match answer.outcome {
                CallOutcome::Result => "answered".to_owned(),
                CallOutcome::RpcError(code) => format!("error {code}"),
                CallOutcome::Failed(failure) => failure.to_string(),
            };
            record.finish(outcome, answer.body.len());
        }
        if let (Some(claim), CallOutcome::Result) = (self.claim, answer.outcome) {
            claim.granted();
        }
    }
}
