//! The two tasks behind a running child: one reads its output, one supervises its process.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ahma_common::contract::NOTIFY_OPERATION;
use ahma_common::envelope::{Envelope, Kind};
use ahma_common::lines::{Line, LineReader};
use ahma_common::process::{ChildProcess, Grace};
use serde_json::value::RawValue;
use tokio::process::{ChildStderr, ChildStdout};
use tokio_util::sync::CancellationToken;

use super::answer::CallFailure;
use super::client_name::named;
use super::handle::{Child, ChildMessage, ChildSink, Ending, Inner};
use super::pending::{Delivery, Named};
use crate::echo::Echo;

/// Longest message of a child. One that goes on without a line feed is not speaking MCP.
const MAX_LINE_BYTES: usize = 64 << 20;

/// The task that reads a child's standard output.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) child: Weak<Child>,
    pub(super) sink: Arc<dyn ChildSink>,
}

impl Listener {
    pub(super) async fn listen(self, stdout: ChildStdout) {
        let mut lines = LineReader::new(stdout, MAX_LINE_BYTES);
        loop {
            match lines.next().await {
                Ok(Line::Text(line)) => {
                    let Some(child) = self.child.upgrade() else { return };
                    if let Some(echo) = &child.inner.echo {
                        echo.received(&line);
                    }
                    self.hear(&child, &line);
                }
                Ok(Line::End) => return,
                Ok(Line::TooLong) => {
                    tracing::error!(
                        "the child wrote a line of more than {MAX_LINE_BYTES} bytes; nothing more is read"
                    );
                    return;
                }
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
                let answered = number.and_then(|number| child.inner.pending.lock().answer(number));
                match answered {
                    Some(call) => call.finish(&envelope, id, *error_code),
                    None => tracing::debug!(id = id.get(), "the child answered a request that is not open"),
                }
            }
            Kind::Notification { method } => self.hear_notification(child, method, &envelope),
            Kind::Request { id, method } => {
                self.sink.received(
                    child,
                    ChildMessage::Request {
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
        if method == NOTIFY_OPERATION {
            let news = envelope.params_object().map(RawValue::get);
            let news = news
                .and_then(|news| serde_json::from_str(news).ok())
                .unwrap_or_default();
            let client = meta.client.and_then(named);
            return child
                .operations()
                .hear(&news, || self.sink.operation_owner(client));
        }
        // Clients' tokens are numbers of ours on the pipe; another token is the child's own.
        let is_ours = |token: &&RawValue| token.get().parse::<u64>().is_ok();
        let token = params
            .progress_token
            .filter(|_| method == "notifications/progress")
            .filter(is_ours);
        let about = token.map(|token| (token, Named::ProgressToken));
        let about = about.or(meta.related_request.map(|request| (request, Named::Request)));
        let about = about.or(meta.subscription_id.map(|id| (id, Named::Subscription)));
        let Some((value, about)) = about else {
            return self
                .sink
                .received(child, ChildMessage::Notification { method, envelope });
        };
        // A message for one client must not reach another one, even if that client is no longer known.
        let delivery = child.inner.pending.lock().deliver(envelope, value, about);
        if let Delivery::Client(client, message) = delivery {
            self.sink.received(child, ChildMessage::For { client, message });
        }
    }
}

/// Output that was written before the end must still be read; a descendant may hold the pipe open for ever.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// Reports the end also if the task that waits for it panics: others wait for the report without a limit.
struct ReportedEnd<'a>(&'a Inner);

impl Drop for ReportedEnd<'_> {
    fn drop(&mut self) {
        self.0.ended.send_if_modified(|ended| {
            let is_missing = ended.is_none();
            ended.get_or_insert(Ending { asked_for: true });
            is_missing
        });
    }
}

pub(super) async fn supervise(
    process: ChildProcess,
    inner: Arc<Inner>,
    grace: Duration,
    silent: CancellationToken,
    stderr: ChildStderr,
    sink: Arc<dyn ChildSink>,
) {
    let id = process.id();
    let _reported = ReportedEnd(&inner);
    let drain = tokio::spawn(read_stderr(stderr, inner.echo.clone(), id));
    let asked_for = tokio::select! {
        () = process.exited() => false,
        () = silent.cancelled() => false,
        () = inner.outbox.run() => false,
        () = inner.stop.cancelled() => true,
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
    let _ = tokio::time::timeout(LAST_OUTPUT_TIMEOUT, silent.cancelled()).await;
    inner.fail_all(CallFailure::ChildDied);
    drain.abort();
    let how = how_it_ended(status);
    if !asked_for {
        tracing::warn!(pid = id, "the child ended by itself: {how}");
        inner.operations.recorder.backend_died(id, &how, &sink.owner());
    }
    let why = if asked_for {
        "its session or the server ended".to_owned()
    } else {
        format!("the server process ended: {how}")
    };
    inner.operations.lost(&why);
    inner.ended.send_replace(Some(Ending { asked_for }));
}

fn how_it_ended(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("exit code {code}"),
        Some((None, Some(signal))) => format!("signal {signal}"),
        Some((None, None)) | None => "unknown status".to_owned(),
    }
}

/// A longer line of standard error is shown in pieces.
const MAX_STDERR_LINE_BYTES: usize = 16 << 10;

async fn read_stderr(stderr: ChildStderr, echo: Option<Echo>, pid: u32) {
    let mut lines = LineReader::new(stderr, MAX_STDERR_LINE_BYTES);
    while let Ok(Some(line)) = lines.next_piece().await {
        match &echo {
            Some(echo) => echo.complained(&line),
            None => tracing::debug!(pid, "{}", String::from_utf8_lossy(&line)),
        }
    }
}

#[cfg(test)]
#[path = "tasks_tests.rs"]
mod tests;
