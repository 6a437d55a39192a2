//! The life of one server: connect, list its tools, watch it, and start again when it is lost.
//!
//! An actor owns its connection; callers borrow the peer from the slot. It ends only on shutdown.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::SubscriptionFilter;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::handler::MountHandler;
use super::state::{Board, Live, Nudge, ServerState, Slot};
use crate::config::ServerConfig;
use crate::oauth::PendingLogin;
use crate::session::changes::{Change, Changes};
use crate::session::request::list_tools;
use crate::session::{
    CREDENTIALS_REFUSED, ConnectError, ConnectReport, Connection, Failure, Step, connect, describe_call,
};
use crate::settings::{ClientSettings, LoginMode};
use crate::transport::link::LinkEvent;

/// How often a server that was given up is tried again without being asked.
const SLOW_RETRY: Duration = Duration::from_secs(60);
/// Nobody logs in for ever.
const MOST_LOGINS: u32 = 3;
/// A server that refuses its tools more often in a row is connected anew.
const MOST_REFUSALS: u32 = 3;
/// A server that was ready for so long is not one that keeps dying.
const STABLE_AFTER: Duration = Duration::from_secs(10);
const LIST_PATIENCE: Duration = Duration::from_secs(60);
const CLOSE_PATIENCE: Duration = Duration::from_secs(8);

pub(super) struct Actor {
    config: ServerConfig,
    settings: Arc<ClientSettings>,
    slot: Arc<Slot>,
    board: Arc<Board>,
    nudges: mpsc::Receiver<Nudge>,
    shutdown: CancellationToken,
    handler: MountHandler,
    /// Failures in a row.
    failures: u32,
    /// When the connection there is, or was last, became ready.
    ready_since: Option<Instant>,
    /// Logins in a row after which the server still wanted one.
    logins: u32,
    /// Why the last login did not come about: the next one waits until somebody asks for it.
    login_failed: Option<String>,
}

/// Why a connection or an attempt at one came to its end.
enum Ended {
    Shutdown,
    Lost(String),
    /// The server is there and does not list its tools.
    Refused(String),
    LoginRequired(String),
}

impl Actor {
    pub(super) fn new(
        config: ServerConfig,
        settings: Arc<ClientSettings>,
        slot: Arc<Slot>,
        board: Arc<Board>,
        nudges: mpsc::Receiver<Nudge>,
        shutdown: CancellationToken,
    ) -> Self {
        let handler = MountHandler::new(crate::CLIENT_NAME);
        Self {
            config,
            settings,
            slot,
            board,
            nudges,
            shutdown,
            handler,
            failures: 0,
            ready_since: None,
            logins: 0,
            login_failed: None,
        }
    }

    pub(super) async fn run(mut self) {
        let mut problem = None;
        loop {
            self.publish(ServerState::Connecting {
                problem: problem.take(),
            });
            match self.live_once().await {
                Ended::Shutdown => return,
                Ended::LoginRequired(challenge) => self.wait_for_login(challenge).await,
                Ended::Lost(reason) | Ended::Refused(reason) => {
                    let ready_since = self.ready_since.take();
                    if ready_since.is_some_and(|since| since.elapsed() >= STABLE_AFTER) {
                        self.failures = 0;
                    }
                    self.wait_before_retry(&reason).await;
                    problem = Some(reason);
                }
            }
            if self.shutdown.is_cancelled() {
                return;
            }
        }
    }

    /// One connection, from the first packet to the last.
    async fn live_once(&mut self) -> Ended {
        let shutdown = self.shutdown.clone();
        let connected = tokio::select! {
            connected = connect(&self.config, &self.settings, &self.handler) => connected,
            () = shutdown.cancelled() => return Ended::Shutdown,
        };
        let connection = match connected {
            Ok(connection) => connection,
            Err(ConnectError::LoginRequired { challenge, .. }) => return Ended::LoginRequired(challenge),
            Err(error) => return Ended::Lost(error.to_string()),
        };
        let Connection {
            peer,
            mut running,
            routes,
            events,
            report,
            ..
        } = connection;
        let live = Live {
            connection: Arc::default(),
            peer,
            routes,
        };
        let ended = tokio::select! {
            ended = self.watch(live, events, report) => ended,
            () = running.closed() => Ended::Lost("the server closed the connection".to_owned()),
        };
        self.slot.set_live(None);
        running.close(CLOSE_PATIENCE).await;
        ended
    }

    /// Keeps the tool list fresh until the connection is lost.
    async fn watch(
        &mut self,
        live: Live,
        mut events: mpsc::Receiver<LinkEvent>,
        report: ConnectReport,
    ) -> Ended {
        let report = Arc::new(report);
        // What was said of an earlier connection has been seen to.
        while self.nudges.try_recv().is_ok() {}
        let wanted = SubscriptionFilter::builder().tools_list_changed().build();
        let mut changes = Changes::of(&live.peer, wanted);
        // A pipe or a stream says itself that it is at its end; requests over HTTP need not leave one open.
        let mut is_heard = report.step != Step::StreamableHttp;
        if let Err(ended) = self.list(&live, &report).await {
            return ended;
        }
        self.ready_since = Some(Instant::now());
        self.logins = 0;
        self.login_failed = None;
        let mut refusals = 0;
        loop {
            let tools_changed = Arc::clone(&self.handler.tools_changed);
            tokio::select! {
                () = self.shutdown.cancelled() => return Ended::Shutdown,
                Some(event) = events.recv() => match event {
                    // With a lost session, listing opens a new one.
                    LinkEvent::SessionRenewed | LinkEvent::SessionLost | LinkEvent::Returned => {}
                    LinkEvent::GaveUp => return Ended::Lost("the server cannot be reached any more".to_owned()),
                },
                Some(nudge) = self.nudges.recv() => match nudge {
                    Nudge::LoginRequired(challenge) => return Ended::LoginRequired(challenge),
                    Nudge::Retry => {}
                },
                () = tools_changed.notified() => {}
                change = changes.next() => match change {
                    Change::Subscribed => is_heard = true,
                    Change::Announced(_) => {}
                    Change::Ended => {
                        is_heard = false;
                        continue;
                    }
                },
                () = tokio::time::sleep(self.settings.relist_every), if !is_heard || refusals > 0 => {}
            }
            match self.list(&live, &report).await {
                Ok(()) => refusals = 0,
                // It may be busy, and the calls that are under way are not to suffer for that.
                Err(Ended::Refused(_)) if refusals < MOST_REFUSALS => refusals += 1,
                Err(ended) => return ended,
            }
        }
    }

    /// Asks for the tools and publishes them.
    async fn list(&mut self, live: &Live, report: &Arc<ConnectReport>) -> Result<(), Ended> {
        let listing = list_tools(&live.peer, &live.routes, &self.shutdown);
        let error = match tokio::time::timeout(LIST_PATIENCE, listing).await {
            Ok(Ok(tools)) => {
                self.slot.set_live(Some(live.clone()));
                self.publish(ServerState::Ready {
                    report: Arc::clone(report),
                    tools: tools.into(),
                });
                return Ok(());
            }
            Ok(Err(error)) => error,
            Err(_) => return Err(Ended::Lost("the server does not list its tools".to_owned())),
        };
        if self.shutdown.is_cancelled() {
            return Err(Ended::Shutdown);
        }
        Err(match describe_call(&error) {
            Some(Failure::LoginRequired(_)) if self.slot.has_own_credentials => {
                Ended::Refused(CREDENTIALS_REFUSED.to_owned())
            }
            Some(Failure::LoginRequired(challenge)) => Ended::LoginRequired(challenge),
            Some(Failure::Refused(reason) | Failure::Broken(reason)) => Ended::Refused(reason),
            Some(failure) => Ended::Lost(failure.reason().to_owned()),
            None => Ended::Refused(format!("the server does not list its tools: {error}")),
        })
    }

    /// Backoff while retries are left; then the server counts as failed, and a call or a minute brings a new try.
    async fn wait_before_retry(&mut self, reason: &str) {
        let delay = self.settings.retry.delay(self.failures);
        self.failures = self.failures.saturating_add(1);
        let wait = match delay {
            Some(delay) => {
                tracing::info!(server = self.config.name, reason, ?delay, "will connect again");
                self.publish(ServerState::Connecting {
                    problem: Some(reason.to_owned()),
                });
                delay
            }
            None => {
                tracing::warn!(server = self.config.name, reason, "remote server failed");
                self.publish(ServerState::Failed {
                    reason: reason.to_owned(),
                });
                SLOW_RETRY
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            Some(_) = self.nudges.recv() => {}
            () = self.shutdown.cancelled() => {}
        }
    }

    /// Returns when there is reason to believe that a login has happened, or to look again.
    async fn wait_for_login(&mut self, challenge: String) {
        self.publish(ServerState::login_required(&self.slot.login_advice));
        let Some(endpoint) = self.config.http.clone() else {
            return;
        };
        let settings = Arc::clone(&self.settings);
        let pending = PendingLogin::new(&endpoint, &settings).await;
        let reason = match self.reason_not_to_log_in() {
            Some(reason) => reason,
            None => {
                let logged_in = tokio::select! {
                    logged_in = pending.log_in(challenge, |link| self.offer(link)) => logged_in,
                    () = self.shutdown.cancelled() => return,
                };
                let Err(error) = logged_in else {
                    self.logins += 1;
                    return;
                };
                let reason = format!("{}; {}", crate::error_chain(&error), self.slot.login_advice);
                tracing::warn!(server = self.config.name, reason, "login failed");
                self.login_failed = Some(reason.clone());
                // Whoever asked before this was known is told of it below.
                while self.nudges.try_recv().is_ok() {}
                reason
            }
        };
        self.publish(ServerState::LoginRequired { link: None, reason });
        tokio::select! {
            () = pending.made_elsewhere() => {
                self.logins = 0;
                self.login_failed = None;
            }
            // Somebody is there who can log in.
            Some(_) = self.nudges.recv() => self.login_failed = None,
            // The server may have changed its mind.
            () = tokio::time::sleep(SLOW_RETRY) => {}
            () = self.shutdown.cancelled() => {}
        }
    }

    fn reason_not_to_log_in(&self) -> Option<String> {
        let advice = &self.slot.login_advice;
        if self.logins >= MOST_LOGINS {
            let times = self.logins;
            return Some(format!("the server still refuses after {times} logins; {advice}"));
        }
        match self.settings.login {
            LoginMode::Never => Some(advice.clone()),
            LoginMode::Browser | LoginMode::Link => self.login_failed.clone(),
        }
    }

    /// Shows where to log in.
    fn offer(&self, link: &Url) {
        tracing::info!(server = self.config.name, %link, "log in with a browser");
        self.publish(ServerState::LoginRequired {
            link: Some(link.clone()),
            reason: "open the link to log in".to_owned(),
        });
    }

    fn publish(&self, state: ServerState) {
        self.board.publish(&self.config.name, state);
    }
}
