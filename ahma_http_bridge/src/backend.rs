//! A child that is there when it is needed: started once, greeted, and started again after a crash.
//!
//! Whoever needs the child while it starts waits for the same start. A child that keeps dying is started
//! less and less often, and callers are told to come back later instead of waiting for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::child::{
    Answer, Audience, BRIDGE, CallFailure, Child, ChildFactory, ChildLimits, Ending, Spawn, Verdict,
};
use crate::envelope::{Envelope, EnvelopeError};

/// The protocol revision the bridge offers to a child it initialises for itself. It is the newest that
/// begins with `initialize`: a child greeted this way answers clients of both eras on one pipe.
pub(crate) const HANDSHAKE_VERSION: &str = "2025-11-25";

/// A child that lived this long was healthy, and its end is not one of a series.
const HEALTHY_LIFE: Duration = Duration::from_secs(5);
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(10);
/// A delay up to this is waited out; a longer one is the caller's to wait.
const PATIENT_DELAY: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restart {
    /// At once, since clients without a request in flight expect its notifications.
    Eager,
    /// With the next request.
    OnDemand,
}

#[derive(Debug)]
pub(crate) struct BackendParams {
    pub(crate) factory: Arc<dyn ChildFactory>,
    pub(crate) spawn: Spawn,
    pub(crate) restart: Restart,
    pub(crate) limits: ChildLimits,
    pub(crate) start_timeout: Duration,
    /// The whole `initialize` request.
    pub(crate) initialize: Box<str>,
    pub(crate) audience: Arc<dyn Audience>,
}

#[derive(Debug)]
pub(crate) struct Backend {
    params: BackendParams,
    current: Mutex<Current>,
    /// Held while starting, so that there is one start at a time.
    attempts: tokio::sync::Mutex<Attempts>,
    /// Cuts a start short.
    stopping: CancellationToken,
}

#[derive(Debug)]
enum Current {
    None,
    Running(Greeted),
    /// No child may be started any more.
    Stopped,
}

/// A child that has answered `initialize`.
#[derive(Debug, Clone)]
pub(crate) struct Greeted {
    pub(crate) child: Arc<Child>,
    /// The `result` of its `initialize`.
    pub(crate) greeting: Arc<str>,
}

#[derive(Debug, Default)]
struct Attempts {
    in_a_row: u32,
    last: Option<Attempt>,
}

#[derive(Debug)]
struct Attempt {
    started: Instant,
    /// How long its child lived, once it is known to be gone. What is waited afterwards is not life.
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

impl Backend {
    pub(crate) fn new(params: BackendParams) -> Arc<Self> {
        Arc::new(Self {
            params,
            current: Mutex::new(Current::None),
            attempts: tokio::sync::Mutex::default(),
            stopping: CancellationToken::new(),
        })
    }

    /// The child if it runs.
    pub(crate) fn running(&self) -> Option<Arc<Child>> {
        match &*self.current() {
            Current::Running(greeted) if greeted.child.is_alive() => Some(Arc::clone(&greeted.child)),
            _ => None,
        }
    }

    /// The child, started if need be.
    pub(crate) async fn child(self: &Arc<Self>) -> Result<Arc<Child>, StartError> {
        match self.running() {
            Some(child) => Ok(child),
            None => Ok(self.greeted().await?.child),
        }
    }

    /// The child and what it said to `initialize`.
    pub(crate) async fn greeted(self: &Arc<Self>) -> Result<Greeted, StartError> {
        if let Some(greeted) = self.current().alive()? {
            return Ok(greeted);
        }
        // The start is a task of its own: a client that goes away must not leave a half-greeted child.
        tokio::spawn(Arc::clone(self).start())
            .await
            .unwrap_or(Err(StartError::Stopped))
    }

    /// Stops the child for good and returns when it is gone.
    pub(crate) async fn stop(&self, failure: CallFailure) {
        let last = std::mem::replace(&mut *self.current(), Current::Stopped);
        self.stopping.cancel();
        if let Current::Running(greeted) = last {
            greeted.child.stop(failure).await;
        }
        // A child that was just being started is gone too once its start is over.
        drop(self.attempts.lock().await);
    }

    /// Boxed, since a start may be followed by a restart, which is a start.
    fn start(self: Arc<Self>) -> BoxFuture<'static, Result<Greeted, StartError>> {
        Box::pin(self.start_in_turn())
    }

    async fn start_in_turn(self: Arc<Self>) -> Result<Greeted, StartError> {
        let mut attempts = self.attempts.lock().await;
        if let Some(greeted) = self.current().alive()? {
            return Ok(greeted);
        }
        let delay = attempts.delay(Instant::now());
        if delay > PATIENT_DELAY {
            return Err(StartError::Waiting(delay));
        }
        if self
            .stopping
            .run_until_cancelled(tokio::time::sleep(delay))
            .await
            .is_none()
        {
            return Err(StartError::Stopped);
        }
        attempts.begin(Instant::now());
        let greeted = self.start_once().await.inspect_err(|error| {
            attempts.failed();
            tracing::warn!(%error, spawn = ?self.params.spawn, "no child");
        })?;
        if !self.install(&greeted) {
            greeted.child.stop(CallFailure::SessionEnded).await;
            return Err(StartError::Stopped);
        }
        if self.params.restart == Restart::Eager {
            let ended = greeted.child.watch_end();
            tokio::spawn(restart_after(ended, Arc::downgrade(&self)));
        }
        Ok(greeted)
    }

    async fn start_once(&self) -> Result<Greeted, StartError> {
        let BackendParams {
            factory,
            spawn,
            limits,
            start_timeout,
            initialize,
            audience,
            ..
        } = &self.params;
        let command = factory.command(spawn);
        let child = Child::start(&command, limits.clone(), Arc::clone(audience))
            .map_err(|error| StartError::Spawn(format!("{}: {error}", command.program.display())))?;
        let greeted = self
            .stopping
            .run_until_cancelled(greet(&child, initialize, *start_timeout))
            .await;
        let greeting = match greeted {
            Some(Ok(greeting)) => greeting,
            failed => {
                child.stop(CallFailure::ChildDied).await;
                return Err(failed.and_then(Result::err).unwrap_or(StartError::Stopped));
            }
        };
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        child.send(initialized).map_err(|_| StartError::Died)?;
        audience.greeted(&child);
        tracing::debug!(pid = child.process_id(), ?spawn, "child ready");
        Ok(Greeted { child, greeting })
    }

    /// Makes a new child the current one, unless it is not wanted any more.
    fn install(&self, greeted: &Greeted) -> bool {
        let mut current = self.current();
        let wanted = !matches!(*current, Current::Stopped);
        if wanted {
            *current = Current::Running(greeted.clone());
        }
        wanted
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Current {
    fn alive(&self) -> Result<Option<Greeted>, StartError> {
        match self {
            Self::Stopped => Err(StartError::Stopped),
            Self::Running(greeted) if greeted.child.is_alive() => Ok(Some(greeted.clone())),
            Self::Running(_) | Self::None => Ok(None),
        }
    }
}

impl Attempts {
    /// How long the next start has to wait. Asked when the last child, if any, is gone.
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

    /// The start came to nothing, however long it took.
    fn failed(&mut self) {
        if let Some(last) = &mut self.last {
            last.lived = Some(Duration::ZERO);
        }
    }
}

/// Sends `initialize` and gives back its result.
pub(crate) async fn greet(
    child: &Child,
    initialize: &str,
    patience: Duration,
) -> Result<Arc<str>, StartError> {
    let unreadable = |error: EnvelopeError| StartError::Spawn(error.to_string());
    let envelope = Envelope::parse(initialize.as_bytes()).map_err(unreadable)?;
    let request = envelope.request().map_err(unreadable)?;
    let answer = tokio::time::timeout(patience, child.ask(request, BRIDGE, patience))
        .await
        .map_err(|_| StartError::Silent)?;
    match answer.verdict {
        Verdict::Result => result_of(&answer).ok_or(StartError::Refused(answer)),
        Verdict::RpcError(_) => Err(StartError::Refused(answer)),
        Verdict::Failed(CallFailure::TimedOut) => Err(StartError::Silent),
        Verdict::Failed(_) | Verdict::Refused(_) => Err(StartError::Died),
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
        match backend.greeted().await {
            Ok(_) | Err(StartError::Stopped) => return,
            Err(StartError::Waiting(delay)) => tokio::time::sleep(delay).await,
            Err(_) => {}
        }
    }
}

#[cfg(test)]
#[path = "backend_tests.rs"]
mod backend_tests;
