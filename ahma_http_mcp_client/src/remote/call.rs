//! One tool call to one server, and an honest answer when it fails.

use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, ClientRequest, ErrorData,
    ProgressNotificationParam, ServerResult,
};
use rmcp::service::ServiceError;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::state::{Board, Live, Nudge, ServerState, Slot, Snapshot};
use crate::session::request::request;
use crate::session::{CREDENTIALS_REFUSED, Failure, describe_call};

/// How long a call waits for a server that is being connected.
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("there is no remote server `{server}`")]
    UnknownServer { server: String },
    /// Nothing was sent.
    #[error("remote server `{server}` is not available: {reason}")]
    Unavailable { server: String, reason: String },
    /// `how` is the page to open, or the command to run.
    #[error("remote server `{server}` wants a login: {how}")]
    LoginRequired { server: String, how: String },
    /// The server will not have the call, and a login would not change that.
    #[error("remote server `{server}` refused the call: {reason}")]
    Refused { server: String, reason: String },
    /// The server answered that it failed; the call may have had its effect.
    #[error("remote server `{server}` failed during the call, which may or may not have run: {reason}")]
    Broken { server: String, reason: String },
    /// The call was sent and its answer is lost; it may have had its effect.
    #[error(
        "the connection to remote server `{server}` was lost during the call, which may or may not have run: {reason}"
    )]
    Lost { server: String, reason: String },
    #[error("the call was cancelled")]
    Cancelled,
    /// The server's own JSON-RPC error, to be passed on as it is.
    #[error("remote server answered with an error")]
    Protocol(ErrorData),
}

pub(super) async fn call(
    server: &str,
    slot: &Slot,
    board: &Board,
    params: CallToolRequestParams,
    progress: Option<mpsc::Sender<ProgressNotificationParam>>,
    cancel: &CancellationToken,
) -> Result<CallToolResponse, CallError> {
    let unavailable = |reason: String| CallError::Unavailable {
        server: server.to_owned(),
        reason,
    };
    tokio::select! {
        ready = tokio::time::timeout(CONNECT_PATIENCE, until_ready(server, slot, board.subscribe())) => {
            ready.map_err(|_| unavailable("it is still being connected".to_owned()))??;
        }
        () = cancel.cancelled() => return Err(CallError::Cancelled),
    }
    let live = slot
        .live()
        .ok_or_else(|| unavailable("the connection was just lost".to_owned()))?;
    let call = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    match request(&live.peer, &live.routes, call, progress, cancel).await {
        Ok(ServerResult::CallToolResult(result)) => Ok(CallToolResponse::Complete(result)),
        Ok(ServerResult::InputRequiredResult(result)) => Ok(CallToolResponse::InputRequired(result)),
        Ok(ServerResult::CreateTaskResult(result)) => Ok(CallToolResponse::Task(result)),
        Ok(_) => Err(CallError::Lost {
            server: server.to_owned(),
            reason: "its answer is not the result of a tool call".to_owned(),
        }),
        Err(error) => Err(failed(server, slot, board, &live, error)),
    }
}

/// Waits until the server is ready, or cannot become so.
async fn until_ready(
    server: &str,
    slot: &Slot,
    mut states: watch::Receiver<Snapshot>,
) -> Result<(), CallError> {
    let mut nudged = false;
    loop {
        match states.borrow_and_update().get(server) {
            Some(ServerState::Ready { .. }) => return Ok(()),
            Some(state @ ServerState::LoginRequired { link, .. }) if nudged || link.is_some() => {
                return Err(CallError::LoginRequired {
                    server: server.to_owned(),
                    how: state.how_to_log_in().unwrap_or_default(),
                });
            }
            Some(ServerState::Failed { reason }) if nudged => {
                return Err(CallError::Unavailable {
                    server: server.to_owned(),
                    reason: reason.clone(),
                });
            }
            Some(ServerState::Failed { .. } | ServerState::LoginRequired { .. }) => {
                slot.nudge(Nudge::Retry);
                nudged = true;
            }
            Some(ServerState::Connecting { .. }) | None => {}
        }
        if states.changed().await.is_err() {
            let reason = "the client is shutting down".to_owned();
            return Err(CallError::Unavailable {
                server: server.to_owned(),
                reason,
            });
        }
    }
}

fn failed(server: &str, slot: &Slot, board: &Board, live: &Live, error: ServiceError) -> CallError {
    let server = server.to_owned();
    if let ServiceError::Cancelled { .. } = error {
        return CallError::Cancelled;
    }
    match (describe_call(&error), error) {
        (None, ServiceError::McpError(error)) => CallError::Protocol(error),
        (Some(Failure::Unreachable(reason) | Failure::NoToken(reason) | Failure::TokenFile(reason)), _) => {
            CallError::Unavailable { server, reason }
        }
        (Some(Failure::Refused(reason)), _) => CallError::Refused { server, reason },
        (Some(Failure::Broken(reason)), _) => CallError::Broken { server, reason },
        // It may be about this call only; the connection stays.
        (Some(Failure::LoginRequired(_)), _) if slot.has_own_credentials => CallError::Refused {
            server,
            reason: CREDENTIALS_REFUSED.to_owned(),
        },
        (Some(Failure::LoginRequired(challenge)), _) => {
            // A call that was sent before the last login says nothing about that login.
            if slot.is_current(live) {
                // Published here as well: who hears of the error must not find the server ready.
                board.doubt(&server, &slot.login_advice);
                slot.nudge(Nudge::LoginRequired(challenge));
            }
            let how = board.how_to_log_in(&server);
            let how = how.unwrap_or_else(|| slot.login_advice.clone());
            CallError::LoginRequired { server, how }
        }
        (Some(Failure::Lost(reason)), _) => {
            // The next call would like to know whether the server is there.
            if slot.is_current(live) {
                slot.nudge(Nudge::Retry);
            }
            CallError::Lost { server, reason }
        }
        (None, error) => CallError::Lost {
            server,
            reason: error.to_string(),
        },
    }
}
