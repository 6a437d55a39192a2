//! The life of one connection: connect, take in what the server offers, watch it, and start again when it is lost.
//!
//! An actor owns its connection; senders of requests borrow it from the [`ServerHandle`]. What the connection is
//! for is a [`Purpose`]: tools that are mounted, or a client that is served. An actor ends on shutdown only, or when the
//! first connection fails and [`Persistence`] says so.

use std::{sync::Arc, time::Duration};

use ahma_common::{error_chain, retry::Retry};
use rmcp::{
    RoleClient,
    model::{ServerNotification, SubscriptionFilter, Tool},
    service::{Service, ServiceError},
};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    handle::{Control, LiveConnection, ServerHandle},
    state::ServerState,
};
use crate::{
    config::ServerConfig,
    error::RemoteError,
    oauth::{LoginError, PendingLogin},
    session::{
        CREDENTIALS_REFUSED, ConnectFailure, ConnectReport, Connection, Failure, Step,
        changes::{Change, Changes},
        connect, describe_call,
    },
    settings::{ClientSettings, LoginMode},
    transport::link::LinkEvent,
};

/// Interval at which a server that was given up is tried again without being asked.
const SLOW_RETRY: Duration = Duration::from_secs(60);
/// Logins in a row after which a server that still requires one is left alone.
const MAX_LOGINS: u32 = 3;
/// Refused checks in a row after which a server is connected anew.
const MAX_REFUSALS: u32 = 3;
/// A server that was ready for so long is not one that keeps dying.
const STABLE_AFTER: Duration = Duration::from_secs(10);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(8);

/// The use that is made of a connection.
pub(crate) trait Purpose: Send + Sync + 'static {
    /// Answers what the server asks, and takes what it tells unasked.
    type Service: Service<RoleClient> + Clone;
    /// The connection is checked from time to time while the server announces nothing.
    const IS_POLLED: bool;

    fn service(&self) -> &Self::Service;

    /// The changes that a modern server is asked to announce.
    fn subscription(&self) -> SubscriptionFilter;

    /// Does what an event requires and returns the tools to publish. An error casts doubt on the connection.
    fn on_event(
        &self,
        connection: &LiveConnection,
        event: ServerEvent,
    ) -> impl Future<Output = Result<Arc<[Tool]>, ServiceError>> + Send;
}

/// Something that happened on a connection.
#[derive(Debug)]
pub(crate) enum ServerEvent {
    Connected,
    /// The server forgot the session or was away: it may be another one now.
    Restarted,
    /// The connection may be gone, or nothing has been heard for a while.
    Doubted,
    /// Changes are heard from now on; `again` if earlier ones may have been missed.
    Subscribed {
        again: bool,
    },
    Changed(Box<ServerNotification>),
}

/// The reaction to a failure before the first connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Try again.
    Unlimited,
    /// End with the error; once connected, try again.
    UntilFirstFailure,
}

pub(crate) struct Actor<P> {
    pub(crate) config: ServerConfig,
    pub(crate) settings: Arc<ClientSettings>,
    pub(crate) server: Arc<ServerHandle>,
    pub(crate) controls: mpsc::Receiver<Control>,
    pub(crate) purpose: P,
    pub(crate) persistence: Persistence,
    pub(crate) shutdown: CancellationToken,
    pub(crate) history: ConnectionHistory,
}

/// The earlier connections and logins of an actor.
pub(crate) struct ConnectionHistory {
    retry: Retry,
    /// Start of the last time the server was ready.
    ready_since: Option<Instant>,
    /// Logins in a row after which the server still required one.
    logins: u32,
    /// The failure of the last login: the next one waits until a request needs it.
    login_failed: Option<String>,
}

impl ConnectionHistory {
    pub(crate) fn new(settings: &ClientSettings) -> Self {
        Self {
            retry: Retry::new(settings.retry),
            ready_since: None,
            logins: 0,
            login_failed: None,
        }
    }
}

/// The end of a connection or of an attempt at one.
enum Ended {
    Shutdown,
    NotConnected(RemoteError),
    Lost(String),
    /// The server is there and refuses to be checked.
    Refused(String),
    LoginRequired(String),
}

impl<P: Purpose> Actor<P> {
    pub(crate) async fn run(mut self) -> Result<(), RemoteError> {
        let mut problem = None;
        while !self.shutdown.is_cancelled() {
            self.server.publish(ServerState::Connecting {
                problem: problem.take(),
            });
            let reason = match self.live_once().await {
                Ended::Shutdown => break,
                Ended::LoginRequired(challenge) => {
                    self.wait_for_login(challenge).await?;
                    continue;
                }
                Ended::NotConnected(error) => self.unless_first(error)?.to_string(),
                Ended::Lost(reason) | Ended::Refused(reason) => reason,
            };
            let ready_since = self.history.ready_since.take();
            if ready_since.is_some_and(|since| since.elapsed() >= STABLE_AFTER) {
                self.history.retry.reset();
            }
            self.wait_before_retry(&reason).await;
            problem = Some(reason);
        }
        Ok(())
    }

    /// Gives the error back unless it ends this actor.
    fn unless_first(&self, error: RemoteError) -> Result<RemoteError, RemoteError> {
        match self.persistence {
            Persistence::Unlimited => Ok(error),
            Persistence::UntilFirstFailure => Err(error),
        }
    }

    /// One connection, from the first packet to the last.
    async fn live_once(&mut self) -> Ended {
        let connected = tokio::select! {
            connected = connect(&self.config, &self.settings, self.purpose.service()) => connected,
            () = self.shutdown.cancelled() => return Ended::Shutdown,
        };
        let connection = match connected {
            Ok(connection) => connection,
            Err(ConnectFailure::LoginRequired { challenge }) => return Ended::LoginRequired(challenge),
            Err(failure) => {
                let advice = self.server.login_advice.clone();
                return Ended::NotConnected(RemoteError::of_connect(failure, &self.config.name, advice));
            }
        };
        let Connection {
            peer,
            mut running,
            routes,
            events,
            report,
            ..
        } = connection;
        let live = LiveConnection {
            identity: Arc::default(),
            peer,
            routes,
        };
        let ended = tokio::select! {
            ended = self.watch(live, events, report) => ended,
            () = running.closed() => Ended::Lost("the server closed the connection".to_owned()),
        };
        self.server.set_live(None);
        running.close(CLOSE_TIMEOUT).await;
        ended
    }

    /// Passes events to the purpose until the connection is lost.
    async fn watch(
        &mut self,
        live: LiveConnection,
        mut link: mpsc::Receiver<LinkEvent>,
        report: ConnectReport,
    ) -> Ended {
        let report = Arc::new(report);
        // Controls that concern an earlier connection.
        while self.controls.try_recv().is_ok() {}
        let mut changes = Changes::of(&live.peer, self.purpose.subscription());
        // A pipe or a stream says itself that it is at its end; requests over HTTP need not leave one open.
        let mut is_heard = report.step != Step::StreamableHttp;
        if let Err(ended) = self.take_in(&live, &report, ServerEvent::Connected).await {
            return ended;
        }
        self.persistence = Persistence::Unlimited;
        self.history.ready_since = Some(Instant::now());
        self.history.logins = 0;
        self.history.login_failed = None;
        let (mut refusals, mut has_missed_changes) = (0, false);
        loop {
            let is_polled = (P::IS_POLLED && !is_heard) || refusals > 0;
            let event = tokio::select! {
                () = self.shutdown.cancelled() => return Ended::Shutdown,
                Some(event) = link.recv() => match event {
                    LinkEvent::SessionRenewed | LinkEvent::Returned => ServerEvent::Restarted,
                    // Any request opens a new one.
                    LinkEvent::SessionLost => ServerEvent::Doubted,
                    LinkEvent::GaveUp => return Ended::Lost("the server cannot be reached any more".to_owned()),
                },
                Some(control) = self.controls.recv() => match control {
                    Control::LogIn(challenge) => return Ended::LoginRequired(challenge),
                    Control::Check => ServerEvent::Doubted,
                },
                change = changes.next() => match change {
                    Change::Subscribed => {
                        is_heard = true;
                        ServerEvent::Subscribed { again: has_missed_changes }
                    }
                    Change::Announced(notification) => ServerEvent::Changed(notification),
                    Change::Ended => {
                        (is_heard, has_missed_changes) = (false, true);
                        continue;
                    }
                },
                () = tokio::time::sleep(self.settings.relist_every), if is_polled => ServerEvent::Doubted,
            };
            match self.take_in(&live, &report, event).await {
                Ok(()) => refusals = 0,
                // It may be busy, and the calls that are under way are not to suffer for that.
                Err(Ended::Refused(_)) if refusals < MAX_REFUSALS => refusals += 1,
                Err(ended) => return ended,
            }
        }
    }

    /// Hands one event to the purpose and publishes that the server is ready.
    async fn take_in(
        &mut self,
        live: &LiveConnection,
        report: &Arc<ConnectReport>,
        event: ServerEvent,
    ) -> Result<(), Ended> {
        let taken = tokio::select! {
            taken = self.purpose.on_event(live, event) => taken,
            () = self.shutdown.cancelled() => return Err(Ended::Shutdown),
        };
        let error = match taken {
            Ok(tools) => {
                self.server.set_live(Some(live.clone()));
                self.server.publish(ServerState::Ready {
                    report: Arc::clone(report),
                    tools,
                });
                return Ok(());
            }
            Err(error) => error,
        };
        Err(match describe_call(&error) {
            Some(Failure::LoginRequired(_)) if self.server.has_own_credentials => {
                Ended::Refused(CREDENTIALS_REFUSED.to_owned())
            }
            Some(Failure::LoginRequired(challenge)) => Ended::LoginRequired(challenge),
            Some(Failure::Refused(reason) | Failure::Broken(reason)) => Ended::Refused(reason),
            Some(failure) => Ended::Lost(failure.reason().to_owned()),
            None => Ended::Refused(format!("the server does not list its tools: {error}")),
        })
    }

    /// Backoff while retries are left; then the server counts as failed, and a request or a minute brings a new try.
    async fn wait_before_retry(&mut self, reason: &str) {
        let wait = match self.history.retry.failed() {
            Some(delay) => {
                tracing::info!(server = self.config.name, reason, ?delay, "will connect again");
                self.server.publish(ServerState::Connecting {
                    problem: Some(reason.to_owned()),
                });
                delay
            }
            None => {
                tracing::warn!(server = self.config.name, reason, "remote server failed");
                self.server.publish(ServerState::Failed {
                    reason: reason.to_owned(),
                });
                SLOW_RETRY
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            Some(_) = self.controls.recv() => {}
            () = self.shutdown.cancelled() => {}
        }
    }

    /// Returns when there is reason to believe that a login has happened, or to look again.
    async fn wait_for_login(&mut self, challenge: String) -> Result<(), RemoteError> {
        let advice = self.server.login_advice.clone();
        self.server.publish(ServerState::login_required(&advice));
        let Some(endpoint) = self.config.http.clone() else {
            return Ok(());
        };
        let pending = PendingLogin::new(&endpoint, self.settings.tokens.clone()).await;
        let server = self.config.name.clone();
        let reason = match self.reason_not_to_log_in() {
            Some(how) => {
                self.unless_first(RemoteError::LoginRequired {
                    server,
                    how: how.clone(),
                })?;
                how
            }
            None => {
                let Err(source) = self.log_in(&pending, challenge).await else {
                    self.history.logins += 1;
                    return Ok(());
                };
                let reason = format!("{}; {advice}", error_chain(&source));
                self.unless_first(RemoteError::Login {
                    server,
                    source: Box::new(source),
                })?;
                tracing::warn!(server = self.config.name, reason, "login failed");
                self.history.login_failed = Some(reason.clone());
                // Requests that came before this was known get the state that is published below.
                while self.controls.try_recv().is_ok() {}
                reason
            }
        };
        self.server
            .publish(ServerState::LoginRequired { link: None, reason });
        tokio::select! {
            () = pending.made_elsewhere() => {
                self.history.logins = 0;
                self.history.login_failed = None;
            }
            // A request needs the server, so a user may be there to log in.
            Some(_) = self.controls.recv() => self.history.login_failed = None,
            // The server may have changed its mind.
            () = tokio::time::sleep(SLOW_RETRY) => {}
            () = self.shutdown.cancelled() => {}
        }
        Ok(())
    }

    /// Logs in with a link for the user; returns early on shutdown.
    async fn log_in(&self, pending: &PendingLogin<'_>, challenge: String) -> Result<(), LoginError> {
        let offer = |link: &Url| {
            tracing::info!(server = self.config.name, %link, "log in with a browser");
            self.server.publish(ServerState::LoginRequired {
                link: Some(link.clone()),
                reason: "open the link to log in".to_owned(),
            });
        };
        tokio::select! {
            logged_in = pending.log_in(self.settings.login.browser(), challenge, offer) => logged_in,
            () = self.shutdown.cancelled() => Ok(()),
        }
    }

    fn reason_not_to_log_in(&self) -> Option<String> {
        let advice = &self.server.login_advice;
        if self.history.logins >= MAX_LOGINS {
            let times = self.history.logins;
            return Some(format!("the server still refuses after {times} logins; {advice}"));
        }
        match self.settings.login {
            LoginMode::Never => Some(advice.clone()),
            LoginMode::Browser | LoginMode::Link => self.history.login_failed.clone(),
        }
    }
}
