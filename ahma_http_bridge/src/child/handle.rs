//! The handle of a running child, and the two tasks behind it: one listens, one looks after the process.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::ChildCommand;
use super::inbox::{Inbox, MAX_LINE_BYTES};
use super::outbox::{Outbox, OutboxError};
use super::pending::{Answer, CallFailure, CallParams, OwnerId, Pending, Reply, Route};
use super::process::{Grace, Process};
use crate::echo::Echo;
use crate::envelope::{Edit, Envelope, Kind, splice};

/// Who hears what a child says without having been asked.
pub(crate) trait Audience: Send + Sync + Debug {
    /// The child has been initialised, for the first time or again after a crash.
    fn greeted(&self, _child: &Child) {}

    /// Must not block: it is called by the task that reads the child's output.
    fn heard(&self, child: &Child, heard: Heard<'_>);
}

#[derive(Debug)]
pub(crate) enum Heard<'a> {
    /// For one client, with its own ids in it.
    For { owner: OwnerId, message: Bytes },
    Notification {
        method: &'a str,
        envelope: &'a Envelope<'a>,
    },
    Request {
        id: &'a RawValue,
        method: &'a str,
        envelope: &'a Envelope<'a>,
    },
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ChildLimits {
    pub(crate) grace: Duration,
    pub(crate) echo: Option<Echo>,
}

/// How a child came to its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) asked_for: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendError {
    #[error("the server process is gone")]
    Gone,
    #[error("the server process does not read its input")]
    Stuck,
}

/// A running stdio MCP server. Dropping the last handle stops it.
#[derive(Debug)]
pub(crate) struct Child {
    inner: Arc<Inner>,
    stop: CancellationToken,
    ended: watch::Receiver<Option<Ending>>,
    id: Option<u32>,
}

#[derive(Debug)]
struct Inner {
    outbox: Outbox,
    pending: Mutex<Pending>,
    next_number: AtomicU64,
    /// Set as soon as the end is certain, before the process is reaped: nobody shall be sent to it any more.
    is_over: AtomicBool,
    echo: Option<Echo>,
}

impl Child {
    pub(crate) fn start(
        command: &ChildCommand,
        limits: ChildLimits,
        audience: Arc<dyn Audience>,
    ) -> std::io::Result<Arc<Self>> {
        let (process, pipes) = Process::start(command)?;
        let inner = Arc::new(Inner {
            outbox: Outbox::new(pipes.stdin),
            pending: Mutex::new(Pending::new()),
            next_number: AtomicU64::new(1),
            is_over: AtomicBool::new(false),
            echo: limits.echo,
        });
        let (ended_tx, ended) = watch::channel(None);
        let stop = CancellationToken::new();
        let child = Arc::new(Self {
            inner: Arc::clone(&inner),
            stop: stop.clone(),
            ended,
            id: process.id(),
        });
        // The listener holds no strong handle, or the last one could never be dropped.
        let silent = CancellationToken::new();
        let last_line_read = silent.clone().drop_guard();
        let listener = Listener {
            child: Arc::downgrade(&child),
            audience,
            echo: limits.echo,
        };
        tokio::spawn(async move {
            listener.listen(pipes.stdout).await;
            drop(last_line_read);
        });
        tokio::spawn(supervise(
            process,
            inner,
            stop,
            limits.grace,
            silent,
            pipes.stderr,
            ended_tx,
        ));
        Ok(child)
    }

    pub(crate) fn process_id(&self) -> Option<u32> {
        self.id
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.inner.is_over.load(Ordering::Acquire) && !self.stop.is_cancelled()
    }

    /// Requests without an answer.
    pub(crate) fn open_calls(&self) -> usize {
        self.inner.pending().unanswered()
    }

    /// Passes a request on under a number of ours. The reply hears of every failure, also of one here.
    pub(crate) fn call(&self, envelope: &Envelope<'_>, params: CallParams) -> Result<u64, CallFailure> {
        let Kind::Request { id, .. } = &envelope.kind else {
            return Err(CallFailure::Cancelled);
        };
        let token = envelope
            .params()
            .and_then(|params| params.meta())
            .ok()
            .and_then(|meta| meta.progress_token);
        let number = self.inner.next_number.fetch_add(1, Ordering::Relaxed);
        self.inner.pending().insert(number, id, token, params)?;
        let mut edits = vec![Edit {
            span: envelope.span(id),
            text: number.to_string(),
        }];
        if let Some(token) = token {
            edits.push(Edit {
                span: envelope.span(token),
                text: number.to_string(),
            });
        }
        let mut line = splice(envelope.text(), edits);
        line.extend_from_slice(b"\n");
        match self.send_line(&line) {
            Ok(()) => Ok(number),
            Err(error) => {
                let failure = match error {
                    SendError::Gone => CallFailure::ChildDied,
                    SendError::Stuck => CallFailure::ChildStuck,
                };
                self.inner.pending().give_up(number, failure);
                Err(failure)
            }
        }
    }

    /// Passes a request of the bridge itself on and waits for its answer.
    pub(crate) async fn ask(&self, envelope: &Envelope<'_>, owner: OwnerId, patience: Duration) -> Answer {
        let (tx, answer) = oneshot::channel();
        let params = CallParams {
            reply: Reply::Once(tx),
            owner,
            patience: Some(patience),
            permit: None,
            record: None,
        };
        // A failure to send has reached the receiver already.
        let _ = self.call(envelope, params);
        answer.await.unwrap_or_else(|_| Answer::lost())
    }

    /// Passes on a notification or a response, as it is.
    pub(crate) fn send(&self, message: &str) -> Result<(), SendError> {
        let mut line = splice(message, Vec::new());
        line.extend_from_slice(b"\n");
        self.send_line(&line)
    }

    /// Passes on a client's `notifications/cancelled`; the request ends here whatever the child does.
    pub(crate) fn cancel_named(&self, owner: OwnerId, envelope: &Envelope<'_>) {
        let Ok(params) = envelope.params() else { return };
        let Some(id) = params.request_id else { return };
        let Some(number) = self.inner.pending().number_of(owner, id.get()) else {
            return;
        };
        let mut line = splice(
            envelope.text(),
            vec![Edit {
                span: envelope.span(id),
                text: number.to_string(),
            }],
        );
        line.extend_from_slice(b"\n");
        // A child that is gone has nothing left to cancel.
        let _ = self.send_line(&line);
        self.inner.pending().give_up(number, CallFailure::Cancelled);
    }

    /// Tells the child that nobody waits for this request any more.
    pub(crate) fn cancel(&self, number: u64, reason: &str) {
        if self.inner.pending().give_up(number, CallFailure::Cancelled) {
            self.tell_cancelled(number, reason);
        }
    }

    /// Ends every open request of one client.
    pub(crate) fn cancel_owner(&self, owner: OwnerId, reason: &str) {
        let numbers = self.inner.pending().give_up_owner(owner);
        for number in numbers {
            self.tell_cancelled(number, reason);
        }
    }

    /// Ends the requests that have been silent for too long.
    pub(crate) fn cancel_silent(&self, now: Instant) {
        let numbers = self.inner.pending().give_up_silent(now);
        for number in numbers {
            self.tell_cancelled(number, "no answer in time");
        }
    }

    /// Stops the process and all of its group; returns when they are gone.
    pub(crate) async fn stop(&self, failure: CallFailure) {
        self.inner.pending().close(failure);
        self.stop.cancel();
        self.watch_end().await;
    }

    /// Waits for the end, however it comes, without keeping the child alive.
    pub(crate) fn watch_end(&self) -> impl Future<Output = Ending> + Send + use<> {
        let mut ended = self.ended.clone();
        async move {
            let ending = ended
                .wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|ending| *ending);
            // The supervisor never goes without a word, except with the whole runtime.
            ending.unwrap_or(Ending { asked_for: true })
        }
    }

    fn tell_cancelled(&self, number: u64, reason: &str) {
        let reason = serde_json::Value::from(reason);
        let _ = self.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number},"reason":{reason}}}}}"#
        ));
    }

    fn send_line(&self, line: &[u8]) -> Result<(), SendError> {
        if let Some(echo) = self.inner.echo {
            echo.sent(line);
        }
        self.inner.outbox.send(line).map_err(|error| match error {
            OutboxError::Closed => SendError::Gone,
            OutboxError::Full => SendError::Stuck,
        })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Inner {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answer {
    /// For a reply that vanished without a word, which only happens when the runtime is being torn down.
    pub(crate) fn lost() -> Self {
        let failure = CallFailure::SessionEnded;
        let body = crate::envelope::error_message(None, failure.rpc_code(), &failure.to_string());
        Self {
            body,
            verdict: super::Verdict::Failed(failure),
        }
    }
}

/// The task that reads a child's standard output.
#[derive(Debug)]
struct Listener {
    child: std::sync::Weak<Child>,
    audience: Arc<dyn Audience>,
    echo: Option<Echo>,
}

impl Listener {
    async fn listen(self, stdout: ChildStdout) {
        let mut inbox = Inbox::new(stdout, MAX_LINE_BYTES);
        loop {
            match inbox.next_line().await {
                Ok(Some(line)) => {
                    let Some(child) = self.child.upgrade() else { return };
                    if let Some(echo) = self.echo {
                        echo.received(&line);
                    }
                    self.hear(&child, &line);
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::error!(%error, "the child's output cannot be read any further");
                    return;
                }
            }
        }
    }

    fn hear(&self, child: &Child, line: &[u8]) {
        let envelope = match Envelope::parse(line) {
            Ok(envelope) => envelope,
            Err(error) => {
                if !line.trim_ascii().is_empty() {
                    tracing::warn!(%error, bytes = line.len(), "the child wrote a line that is no message");
                }
                return;
            }
        };
        match &envelope.kind {
            Kind::Response { id, error_code } => {
                let number = id.get().parse::<u64>().ok();
                let delivered = number
                    .is_some_and(|number| child.inner.pending().answer(number, &envelope, id, *error_code));
                if !delivered {
                    tracing::debug!(id = id.get(), "the child answered a request that is not open");
                }
            }
            Kind::Notification { method } => self.hear_notification(child, method, &envelope),
            Kind::Request { id, method } => {
                self.audience.heard(
                    child,
                    Heard::Request {
                        id,
                        method,
                        envelope: &envelope,
                    },
                );
            }
        }
    }

    fn hear_notification(&self, child: &Child, method: &str, envelope: &Envelope<'_>) {
        let params = envelope.params().unwrap_or_default();
        let route = if let Some(token) = params
            .progress_token
            .filter(|_| method == "notifications/progress")
        {
            child.inner.pending().progress(envelope, token)
        } else if let Some(subscription) = params.meta().ok().and_then(|meta| meta.subscription_id) {
            match child.inner.pending().subscription(envelope, subscription) {
                // A subscription that is over: nobody else may see what it was told.
                Route::Unknown => Route::Delivered,
                route => route,
            }
        } else {
            Route::Unknown
        };
        match route {
            Route::Delivered => {}
            Route::Owner(owner, message) => self.audience.heard(child, Heard::For { owner, message }),
            Route::Unknown => self
                .audience
                .heard(child, Heard::Notification { method, envelope }),
        }
    }
}

/// Output that was written before the end must still be read; a descendant may hold the pipe open for ever.
const LAST_WORDS: Duration = Duration::from_millis(500);

async fn supervise(
    mut process: Process,
    inner: Arc<Inner>,
    stop: CancellationToken,
    grace: Duration,
    silent: CancellationToken,
    stderr: ChildStderr,
    ended: watch::Sender<Option<Ending>>,
) {
    let id = process.id();
    let drain = tokio::spawn(read_stderr(stderr, inner.echo, id));
    let asked_for = tokio::select! {
        () = process.exited() => false,
        () = silent.cancelled() => false,
        () = inner.outbox.flush() => false,
        () = stop.cancelled() => true,
    };
    inner.is_over.store(true, Ordering::Release);
    inner.outbox.close();
    if silent.is_cancelled() {
        // It can say nothing more, even if it takes its time to exit.
        inner.pending().close(CallFailure::ChildDied);
    }
    let status = process
        .finish(Grace {
            after_eof: grace,
            after_term: grace,
        })
        .await;
    let _ = tokio::time::timeout(LAST_WORDS, silent.cancelled()).await;
    inner.pending().close(CallFailure::ChildDied);
    drain.abort();
    if !asked_for {
        tracing::warn!(pid = id, ?status, "the child ended by itself");
    }
    ended.send_replace(Some(Ending { asked_for }));
}

async fn read_stderr(stderr: ChildStderr, echo: Option<Echo>, pid: Option<u32>) {
    let mut inbox = Inbox::new(stderr, MAX_LINE_BYTES);
    while let Ok(Some(line)) = inbox.next_line().await {
        match echo {
            Some(echo) => echo.complained(&line),
            None => tracing::debug!(pid, "{}", String::from_utf8_lossy(&line)),
        }
    }
}
