//! A child that is available when it is needed: started once, initialized, and started again after a crash.
//!
//! All requests that need the child while it starts wait for the same start. A child that keeps dying is started
//! less and less often, and callers are told to come back later instead of waiting for it.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{Answer, CallFailure, CallOutcome, Child, ChildFactory, ChildLimits, ChildSink, Ending, Spawn};
use crate::auth::Principal;
use ahma_common::contract::ENV_PRINCIPAL;
use ahma_common::envelope::{Envelope, EnvelopeError};

/// The protocol revision the bridge offers to a child it initialises for itself. It is the newest that
/// begins with `initialize`: a child initialized this way answers clients of both eras on one pipe.
pub(crate) const HANDSHAKE_VERSION: &str = "2025-11-25";

/// A child that lived this long was healthy, and its end is not one of a series.
const HEALTHY_LIFE: Duration = Duration::from_secs(5);
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(10);
/// A delay up to this is waited out; a longer one is the caller's to wait.
const MAX_WAITED_DELAY: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restart {
    /// At once, since clients without a request in flight expect its notifications.
    Eager,
    /// With the next request.
    OnDemand,
}

/// Everything needed to start a child for any purpose.
#[derive(Debug, Clone)]
pub(crate) struct ChildSpawner {
    pub(crate) factory: Arc<dyn ChildFactory>,
    pub(crate) limits: ChildLimits,
    pub(crate) start_timeout: Duration,
    /// The principal of all requests to the child, if it has one client that has authenticated.
    pub(crate) principal: Option<Arc<str>>,
}

/// A child kept available for one purpose.
#[derive(Debug)]
pub(crate) struct Backend {
    spawner: ChildSpawner,
    spawn: Spawn,
    restart: Restart,
    /// The whole `initialize` request.
    initialize: Box<str>,
    sink: Arc<dyn ChildSink>,
    current: Mutex<Current>,
    /// Held while starting, so that there is one start at a time.
    attempts: tokio::sync::Mutex<Attempts>,
    /// Cuts a start short.
    stopping: CancellationToken,
}

#[derive(Debug)]
enum Current {
    None,
    Running(InitializedChild),
    /// No child may be started any more.
    Stopped,
}

/// A child that has answered `initialize`.
#[derive(Debug, Clone)]
pub(crate) struct InitializedChild {
    pub(crate) child: Arc<Child>,
    /// The `result` of its `initialize`.
    pub(crate) initialize_result: Arc<str>,
}

/// The spacing of starts. Not an `ahma_common::retry::Retry`: delays count from the last start, the second start is
/// immediate, and a backend is never given up.
#[derive(Debug, Default)]
struct Attempts {
    in_a_row: u32,
    last: Option<Attempt>,
}

#[derive(Debug)]
struct Attempt {
    started: Instant,
    /// Lifetime of its child, once that is gone. Time waited afterwards does not count.
    lived: Option<Duration>,
}

#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum StartError {
    #[error("the server program cannot be started: {0}")]
    Spawn(String),
    #[error("the server process ended during its start")]
    Died,
    #[error("the server process did not answer `initialize` in time")]
    Silent,
    #[error("the server process refused `initialize`")]
    Refused(Answer),
    #[error("the server process keeps failing; the next start is in {0:?}")]
    Waiting(Duration),
    /// For good, with its session or with the bridge.
    #[error("the server process was stopped")]
    Stopped,
}

impl ChildSpawner {
    /// The same for children of one principal.
    pub(crate) fn of(&self, principal: &Principal) -> Self {
        Self {
            principal: principal.identity(),
            ..self.clone()
        }
    }

    /// A backend whose child starts when it is first needed.
    pub(crate) fn backend(
        &self,
        spawn: Spawn,
        restart: Restart,
        initialize: Box<str>,
        sink: Arc<dyn ChildSink>,
    ) -> Arc<Backend> {
        Arc::new(Backend {
            spawner: self.clone(),
            spawn,
            restart,
            initialize,
            sink,
            current: Mutex::new(Current::None),
            attempts: tokio::sync::Mutex::default(),
            stopping: CancellationToken::new(),
        })
    }

    /// Starts a child that has not been sent anything.
    pub(crate) fn start(&self, spawn: &Spawn, sink: Arc<dyn ChildSink>) -> Result<Arc<Child>, StartError> {
        let mut command = self.factory.command(spawn);
        if let Some(principal) = &self.principal {
            command.env.push((ENV_PRINCIPAL.into(), (**principal).into()));
        }
        Child::start(&command, self.limits.clone(), sink)
            .map_err(|error| StartError::Spawn(format!("{}: {error}", command.program.display())))
    }
}

impl Backend {
    /// The child if it runs.
    pub(crate) fn running(&self) -> Option<Arc<Child>> {
        match &*self.current.lock() {
            Current::Running(initialized) if initialized.child.is_alive() => {
                Some(Arc::clone(&initialized.child))
            }
            _ => None,
        }
    }

    /// The child, started if need be.
    pub(crate) async fn child(self: &Arc<Self>) -> Result<Arc<Child>, StartError> {
        match self.running() {
            Some(child) => Ok(child),
            None => Ok(self.initialized().await?.child),
        }
    }

    /// The child and what it said to `initialize`.
    pub(crate) async fn initialized(self: &Arc<Self>) -> Result<InitializedChild, StartError> {
        if let Some(initialized) = self.current.lock().alive()? {
            return Ok(initialized);
        }
        // The start is a task of its own: a client that goes away must not leave a half-initialized child.
        tokio::spawn(Arc::clone(self).start())
            .await
            .unwrap_or(Err(StartError::Stopped))
    }

    /// Stops the child for good and returns when it is gone.
    pub(crate) async fn stop(&self, failure: CallFailure) {
        let last = std::mem::replace(&mut *self.current.lock(), Current::Stopped);
        self.stopping.cancel();
        if let Current::Running(initialized) = last {
            initialized.child.stop(failure).await;
        }
        // A child that was just being started is gone too once its start is over.
        drop(self.attempts.lock().await);
    }

    /// Boxed, since a start may be followed by a restart, which is a start.
    fn start(self: Arc<Self>) -> BoxFuture<'static, Result<InitializedChild, StartError>> {
        Box::pin(self.start_in_turn())
    }

    async fn start_in_turn(self: Arc<Self>) -> Result<InitializedChild, StartError> {
        let mut attempts = self.attempts.lock().await;
        if let Some(initialized) = self.current.lock().alive()? {
            return Ok(initialized);
        }
        let delay = attempts.delay(Instant::now());
        if delay > MAX_WAITED_DELAY {
            return Err(StartError::Waiting(delay));
        }
        // Even a sleep of no length takes a millisecond.
        if !delay.is_zero() {
            let slept = self.stopping.run_until_cancelled(tokio::time::sleep(delay));
            slept.await.ok_or(StartError::Stopped)?;
        }
        attempts.begin(Instant::now());
        let initialized = self.start_once().await.inspect_err(|error| {
            attempts.failed();
            tracing::warn!(%error, spawn = ?self.spawn, "no child");
        })?;
        if !self.install(&initialized) {
            initialized.child.stop(CallFailure::SessionEnded).await;
            return Err(StartError::Stopped);
        }
        if self.restart == Restart::Eager {
            let ended = initialized.child.watch_end();
            tokio::spawn(restart_after(ended, Arc::downgrade(&self)));
        }
        Ok(initialized)
    }

    async fn start_once(&self) -> Result<InitializedChild, StartError> {
        let child = self.spawner.start(&self.spawn, Arc::clone(&self.sink))?;
        let initialized = self
            .stopping
            .run_until_cancelled(initialize_child(
                &child,
                &self.initialize,
                self.spawner.start_timeout,
            ))
            .await;
        let initialize_result = match initialized {
            Some(Ok(initialize_result)) => initialize_result,
            failed => {
                child.stop(CallFailure::ChildDied).await;
                return Err(failed.and_then(Result::err).unwrap_or(StartError::Stopped));
            }
        };
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        child.send(notification).map_err(|_| StartError::Died)?;
        self.sink.initialized(&child);
        tracing::debug!(pid = child.process_id(), spawn = ?self.spawn, "child ready");
        Ok(InitializedChild {
            child,
            initialize_result,
        })
    }

    /// Makes a new child the current one, unless it is not wanted any more.
    fn install(&self, initialized: &InitializedChild) -> bool {
        let mut current = self.current.lock();
        let wanted = !matches!(*current, Current::Stopped);
        if wanted {
            *current = Current::Running(initialized.clone());
        }
        wanted
    }
}

impl Current {
    fn alive(&self) -> Result<Option<InitializedChild>, StartError> {
        match self {
            Self::Stopped => Err(StartError::Stopped),
            Self::Running(initialized) if initialized.child.is_alive() => Ok(Some(initialized.clone())),
            Self::Running(_) | Self::None => Ok(None),
        }
    }
}

impl Attempts {
    /// Delay of the next start, once the last child is gone.
    fn delay(&mut self, now: Instant) -> Duration {
        let Some(last) = &mut self.last else {
            return Duration::ZERO;
        };
        let since_start = now.saturating_duration_since(last.started);
        let lived = *last.lived.get_or_insert(since_start);
        if lived >= HEALTHY_LIFE || self.in_a_row < 2 {
            return Duration::ZERO;
        }
        let doubled = FIRST_DELAY
            .saturating_mul(1 << (self.in_a_row - 2).min(16))
            .min(MAX_DELAY);
        doubled.saturating_sub(since_start)
    }

    fn begin(&mut self, now: Instant) {
        let healthy = self
            .last
            .as_ref()
            .is_none_or(|last| last.lived.is_some_and(|lived| lived >= HEALTHY_LIFE));
        self.in_a_row = if healthy { 1 } else { self.in_a_row + 1 };
        self.last = Some(Attempt {
            started: now,
            lived: None,
        });
    }

    /// The start failed, however long it took.
    fn failed(&mut self) {
        if let Some(last) = &mut self.last {
            last.lived = Some(Duration::ZERO);
        }
    }
}

/// Sends `initialize` and gives back its result.
pub(crate) async fn initialize_child(
    child: &Child,
    initialize: &str,
    timeout: Duration,
) -> Result<Arc<str>, StartError> {
    let unreadable = |error: EnvelopeError| StartError::Spawn(error.to_string());
    let envelope = Envelope::parse(initialize.as_bytes()).map_err(unreadable)?;
    let request = envelope.request().map_err(unreadable)?;
    let answer = tokio::time::timeout(timeout, child.ask(request, timeout))
        .await
        .map_err(|_| StartError::Silent)?;
    match answer.outcome {
        CallOutcome::Result => result_of(&answer).ok_or(StartError::Refused(answer)),
        CallOutcome::RpcError(_) => Err(StartError::Refused(answer)),
        CallOutcome::Failed(CallFailure::TimedOut) => Err(StartError::Silent),
        CallOutcome::Failed(_) => Err(StartError::Died),
    }
}

fn result_of(answer: &Answer) -> Option<Arc<str>> {
    let envelope = Envelope::parse(&answer.body).ok()?;
    envelope.result().map(RawValue::get).map(Arc::from)
}

/// The `initialize` of the bridge itself, for a child that serves clients of every kind. It offers no
/// client capability, because a question of a shared child could not be put to any one client.
pub(crate) fn own_initialize() -> Box<str> {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{HANDSHAKE_VERSION}","capabilities":{{}},"clientInfo":{{"name":"ahma_http_bridge","version":"{}"}}}}}}"#,
        env!("CARGO_PKG_VERSION")
    )
    .into()
}

async fn restart_after(ended: impl Future<Output = Ending>, backend: Weak<Backend>) {
    if ended.await.asked_for {
        return;
    }
    while let Some(backend) = backend.upgrade() {
        match backend.initialized().await {
            Ok(_) | Err(StartError::Stopped) => return,
            Err(StartError::Waiting(delay)) => tokio::time::sleep(delay).await,
            Err(_) => {}
        }
    }
}

#[cfg(test)]
#[path = "backend_tests.rs"]
mod tests;
