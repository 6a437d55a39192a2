//! The two tasks behind a running child: one listens to it, one looks after its process.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::handle::{Audience, Child, Ending, Heard, Inner};
use super::inbox::{Inbox, MAX_LINE_BYTES};
use super::pending::{CallFailure, Route};
use super::process::{Grace, Process};
use crate::echo::Echo;
use crate::envelope::{Envelope, Kind};

/// The task that reads a child's standard output.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) child: Weak<Child>,
    pub(super) audience: Arc<dyn Audience>,
    pub(super) echo: Option<Echo>,
}

impl Listener {
    pub(super) async fn listen(self, stdout: ChildStdout) {
        let mut inbox = Inbox::new(stdout, MAX_LINE_BYTES);
        loop {
            match inbox.next_line().await {
                Ok(Some(line)) => {
                    let Some(child) = self.child.upgrade() else { return };
                    if let Some(echo) = &self.echo {
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

    fn hear(&self, child: &Arc<Child>, line: &[u8]) {
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
                let answered = number.and_then(|number| child.inner.pending().answer(number));
                match answered {
                    Some(call) => call.finish(&envelope, id, *error_code),
                    None => tracing::debug!(id = id.get(), "the child answered a request that is not open"),
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

    fn hear_notification(&self, child: &Arc<Child>, method: &str, envelope: &Envelope<'_>) {
        let params = envelope.params().unwrap_or_default();
        let meta = params.meta().unwrap_or_default();
        // Clients' tokens are numbers of ours on the pipe; another token is the child's own.
        let is_ours = |token: &&RawValue| token.get().parse::<u64>().is_ok();
        let token = params
            .progress_token
            .filter(|_| method == "notifications/progress")
            .filter(is_ours);
        let route = if let Some(token) = token {
            addressed(child.inner.pending().progress(envelope, token))
        } else if let Some(request) = meta.related_request {
            addressed(child.inner.pending().related(envelope, request))
        } else if let Some(subscription) = meta.subscription_id {
            addressed(child.inner.pending().subscription(envelope, subscription))
        } else {
            Route::Unknown
        };
        match route {
            Route::Settled => {}
            Route::Owner(owner, message) => self.audience.heard(child, Heard::For { owner, message }),
            Route::Unknown => self
                .audience
                .heard(child, Heard::Notification { method, envelope }),
        }
    }
}

/// What is for one client nobody else may see, also when that client is no longer known.
fn addressed(route: Route) -> Route {
    match route {
        Route::Unknown => Route::Settled,
        known => known,
    }
}

/// Output that was written before the end must still be read; a descendant may hold the pipe open for ever.
const LAST_WORDS: Duration = Duration::from_millis(500);

pub(super) async fn supervise(
    mut process: Process,
    inner: Arc<Inner>,
    stop: CancellationToken,
    grace: Duration,
    silent: CancellationToken,
    stderr: ChildStderr,
    ended: watch::Sender<Option<Ending>>,
) {
    let id = process.id();
    let drain = tokio::spawn(read_stderr(stderr, inner.echo.clone(), id));
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
        inner.fail_all(CallFailure::ChildDied);
    }
    let status = process
        .finish(Grace {
            after_eof: grace,
            after_term: grace,
        })
        .await;
    let _ = tokio::time::timeout(LAST_WORDS, silent.cancelled()).await;
    inner.fail_all(CallFailure::ChildDied);
    drain.abort();
    if !asked_for {
        tracing::warn!(pid = id, "the child ended by itself: {}", how_it_ended(status));
    }
    ended.send_replace(Some(Ending { asked_for }));
}

fn how_it_ended(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("exit code {code}"),
        Some((None, Some(signal))) => format!("signal {signal}"),
        Some((None, None)) | None => "nobody knows how".to_owned(),
    }
}

/// A complaint longer than this is shown in pieces.
const MAX_COMPLAINT_BYTES: usize = 16 << 10;

async fn read_stderr(stderr: ChildStderr, echo: Option<Echo>, pid: Option<u32>) {
    let mut inbox = Inbox::new(stderr, MAX_COMPLAINT_BYTES);
    while let Ok(Some(line)) = inbox.next_piece().await {
        match &echo {
            Some(echo) => echo.complained(&line),
            None => tracing::debug!(pid, "{}", String::from_utf8_lossy(&line)),
        }
    }
}

#[cfg(test)]
#[path = "tasks_tests.rs"]
mod tasks_tests;
