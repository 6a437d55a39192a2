//! Requests to one server, with an exact answer when they fail, and the messages its actor takes.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rmcp::{
    RoleClient,
    model::{ClientRequest, ProgressNotificationParam, ProtocolVersion, ServerResult},
    service::{Peer, ServiceError},
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::state::{ServerState, Snapshot, StateBoard};
use crate::{
    config::{HttpEndpoint, ServerConfig},
    error::RemoteError,
    session::{CREDENTIALS_REFUSED, Failure, describe_call, progress::ProgressRoutes, request::request},
    settings::{ClientSettings, LoginMode},
};

/// Longest wait of a request for a server that is being connected.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest wait of a refused request for the login link that would help it.
const LINK_TIMEOUT: Duration = Duration::from_secs(5);

/// A message to an actor.
#[derive(Debug)]
pub(crate) enum Control {
    /// A request needs the server, or was lost, or its tools changed: look now.
    Check,
    /// A request was answered with this challenge.
    LogIn(String),
}

/// One server, as senders of requests see it. Its actor owns the connection.
#[derive(Debug)]
pub(crate) struct ServerHandle {
    name: String,
    /// The user brings the credentials: a login would change nothing.
    pub(super) has_own_credentials: bool,
    /// The instruction to log in where no link is shown.
    pub(super) login_advice: String,
    login: LoginMode,
    board: Arc<StateBoard>,
    live: Mutex<Option<LiveConnection>>,
    controls: mpsc::Sender<Control>,
}

/// A connection that can be used.
#[derive(Debug, Clone)]
pub(crate) struct LiveConnection {
    /// Distinguishes one connection from the next.
    pub(super) identity: Arc<()>,
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) routes: ProgressRoutes,
}

impl LiveConnection {
    pub(crate) fn is_modern(&self) -> bool {
        let info = self.peer.peer_info();
        info.is_some_and(|info| info.protocol_version >= ProtocolVersion::NO_INITIALIZE)
    }
}

impl ServerHandle {
    /// The handle, and the messages that its actor is to take.
    pub(crate) fn new(
        config: &ServerConfig,
        settings: &ClientSettings,
        board: Arc<StateBoard>,
    ) -> (Arc<Self>, mpsc::Receiver<Control>) {
        // One waiting message is as good as ten.
        let (controls, received) = mpsc::channel(1);
        let endpoint = config.http.as_ref();
        let handle = Self {
            name: config.name.clone(),
            has_own_credentials: endpoint.is_some_and(HttpEndpoint::has_own_credentials),
            login_advice: settings.login_command.advice(&config.name),
            login: settings.login,
            board,
            live: Mutex::default(),
            controls,
        };
        (Arc::new(handle), received)
    }

    /// The connection, waited for while it is being made. An idle actor is woken for it.
    pub(crate) async fn connection(&self) -> Result<LiveConnection, RemoteError> {
        let ready = tokio::time::timeout(CONNECT_TIMEOUT, self.until_ready(self.board.subscribe())).await;
        ready.unwrap_or_else(|_| Err(self.unavailable("it is still being connected")))?;
        self.live()
            .ok_or_else(|| self.unavailable("the connection was just lost"))
    }

    async fn until_ready(&self, mut states: watch::Receiver<Snapshot>) -> Result<(), RemoteError> {
        let mut has_woken = false;
        loop {
            match states.borrow_and_update().get(&self.name) {
                Some(ServerState::Ready { .. }) => return Ok(()),
                Some(ServerState::Connecting { .. }) | None => {}
                Some(state @ ServerState::LoginRequired { link: Some(_), .. }) => {
                    return Err(self.trouble(state));
                }
                Some(state) if has_woken => return Err(self.trouble(state)),
                Some(ServerState::Failed { .. } | ServerState::LoginRequired { .. }) => {
                    self.send(Control::Check);
                    has_woken = true;
                }
            }
            if states.changed().await.is_err() {
                return Err(self.unavailable("the client is shutting down"));
            }
        }
    }

    /// Sends a request. Cancelling, or dropping the future, cancels it at the server.
    pub(crate) async fn request(
        &self,
        connection: &LiveConnection,
        message: ClientRequest,
        progress: Option<mpsc::Sender<ProgressNotificationParam>>,
        cancel: &CancellationToken,
    ) -> Result<ServerResult, RemoteError> {
        match request(&connection.peer, &connection.routes, message, progress, cancel).await {
            Ok(result) => Ok(result),
            Err(error) => Err(self.failed(connection, error).await),
        }
    }

    /// The error of a failed request; the actor is notified if it concerns the connection.
    pub(crate) async fn failed(&self, connection: &LiveConnection, error: ServiceError) -> RemoteError {
        let server = self.name.clone();
        let failure = match (describe_call(&error), error) {
            (_, ServiceError::Cancelled { .. }) => return RemoteError::Cancelled,
            (None, ServiceError::McpError(error)) => return RemoteError::Protocol(error),
            (None, error) => Failure::Lost(error.to_string()),
            (Some(failure), _) => failure,
        };
        match failure {
            Failure::Unreachable(reason) | Failure::NoToken(reason) | Failure::TokenFile(reason) => {
                RemoteError::Unavailable { server, reason }
            }
            Failure::Refused(reason) => RemoteError::Refused { server, reason },
            Failure::Broken(reason) => RemoteError::Broken { server, reason },
            // It may be about this request only; the connection stays.
            Failure::LoginRequired(_) if self.has_own_credentials => RemoteError::Refused {
                server,
                reason: CREDENTIALS_REFUSED.to_owned(),
            },
            Failure::LoginRequired(challenge) => {
                // A request that was sent before the last login says nothing about that login.
                if self.is_current(connection) {
                    // Published here as well: the caller that gets the error must not find the server ready.
                    self.board.doubt(&self.name, &self.login_advice);
                    self.send(Control::LogIn(challenge));
                }
                let how = self.how_to_log_in().await;
                RemoteError::LoginRequired { server, how }
            }
            Failure::Lost(reason) => {
                // The next request needs to know whether the server is there.
                if self.is_current(connection) {
                    self.send(Control::Check);
                }
                RemoteError::Lost { server, reason }
            }
        }
    }

    /// The link, if one is offered soon; otherwise the advice.
    async fn how_to_log_in(&self) -> String {
        let mut states = self.board.subscribe();
        if self.login != LoginMode::Never {
            let undecided = ServerState::login_required(&self.login_advice);
            let decided = states.wait_for(|states| states.get(&self.name) != Some(&undecided));
            let _ = tokio::time::timeout(LINK_TIMEOUT, decided).await;
        }
        let state = states.borrow().get(&self.name).cloned();
        let how = state.and_then(|state| state.how_to_log_in());
        how.unwrap_or_else(|| self.login_advice.clone())
    }

    /// The reason why the server cannot be asked now; none if it is connected.
    pub(crate) fn current_trouble(&self) -> Option<RemoteError> {
        match self.board.subscribe().borrow().get(&self.name)? {
            ServerState::Ready { .. } => None,
            state => Some(self.trouble(state)),
        }
    }

    fn trouble(&self, state: &ServerState) -> RemoteError {
        match state {
            ServerState::LoginRequired { .. } => RemoteError::LoginRequired {
                server: self.name.clone(),
                how: state.how_to_log_in().unwrap_or_default(),
            },
            ServerState::Failed { reason } => self.unavailable(reason),
            ServerState::Connecting { .. } | ServerState::Ready { .. } => {
                self.unavailable("it is still being connected")
            }
        }
    }

    fn unavailable(&self, reason: &str) -> RemoteError {
        RemoteError::Unavailable {
            server: self.name.clone(),
            reason: reason.to_owned(),
        }
    }

    pub(crate) fn states(&self) -> watch::Receiver<Snapshot> {
        self.board.subscribe()
    }

    pub(crate) fn live(&self) -> Option<LiveConnection> {
        self.live.lock().clone()
    }

    fn is_current(&self, connection: &LiveConnection) -> bool {
        let live = self.live.lock();
        live.as_ref()
            .is_some_and(|live| Arc::ptr_eq(&live.identity, &connection.identity))
    }

    pub(super) fn set_live(&self, live: Option<LiveConnection>) {
        *self.live.lock() = live;
    }

    pub(super) fn publish(&self, state: ServerState) {
        self.board.publish(&self.name, state);
    }

    pub(super) fn control(&self) -> mpsc::Sender<Control> {
        self.controls.clone()
    }

    fn send(&self, control: Control) {
        let _ = self.controls.try_send(control);
    }
}
