//! The handle of a running child: what can be asked of it. Its tasks are in `tasks`, the questions of the bridge itself in `asking`.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ahma_common::envelope::{Edit, Envelope, RpcRequest, splice};
use ahma_common::outbox::{Outbox, OutboxError};
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::ChildCommand;
use super::answer::CallFailure;
use super::client_name;
use super::pending::{BRIDGE, CallParams, ClientId, Pending};
use super::process::start_process;
use super::tasks::{Listener, supervise};
use crate::echo::Echo;
use crate::operations::{BackendOwner, OpenOperations, OperationOwner, OperationRecorder};

/// Input that may wait for a child: several times the largest body that a client may send by default.
const MAX_QUEUED_BYTES: usize = 32 << 20;

/// Receives the messages of a child that answer no request.
pub(crate) trait ChildSink: Send + Sync + Debug {
    /// The owner of an operation that this client started.
    fn operation_owner(&self, _client: Option<ClientId>) -> OperationOwner {
        OperationOwner::default()
    }

    /// The client that has the child to itself.
    fn owner(&self) -> BackendOwner {
        BackendOwner::default()
    }

    /// The child has been initialised, for the first time or again after a crash.
    fn initialized(&self, _child: &Child) {}

    /// Must not block: it is called by the task that reads the child's output.
    fn received(&self, child: &Arc<Child>, message: ChildMessage<'_>);
}

#[derive(Debug)]
pub(crate) enum ChildMessage<'a> {
    /// For one client, with its own ids in it.
    For { client: ClientId, message: Bytes },
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

#[derive(Debug, Clone)]
pub(crate) struct ChildLimits {
    pub(crate) grace: Duration,
    pub(crate) echo: Option<Echo>,
    /// Records operations.
    pub(crate) recorder: Arc<OperationRecorder>,
}

/// The end of a child.
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
    pub(super) inner: Arc<Inner>,
    id: u32,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) outbox: Outbox<pipe::Sender>,
    pub(super) pending: Mutex<Pending>,
    next_number: AtomicU64,
    /// Set as soon as the end is certain, before the process is reaped: no request goes to it any more.
    pub(super) is_over: AtomicBool,
    pub(super) echo: Option<Echo>,
    /// True if each request names its client to the child.
    names_clients: bool,
    /// As the child reports them.
    pub(super) operations: OpenOperations,
    /// Asks for the end.
    pub(super) stop: CancellationToken,
    pub(super) ended: watch::Sender<Option<Ending>>,
}

impl Child {
    pub(crate) fn start(
        command: &ChildCommand,
        limits: ChildLimits,
        sink: Arc<dyn ChildSink>,
    ) -> std::io::Result<Arc<Self>> {
        let (process, pipes) = start_process(command)?;
        let inner = Arc::new(Inner {
            outbox: Outbox::new(pipes.stdin, MAX_QUEUED_BYTES),
            pending: Mutex::new(Pending::new()),
            next_number: AtomicU64::new(1),
            is_over: AtomicBool::new(false),
            echo: limits.echo,
            names_clients: command.keeps_clients_apart,
            operations: OpenOperations::new(limits.recorder),
            stop: CancellationToken::new(),
            ended: watch::Sender::new(None),
        });
        let child = Arc::new(Self {
            inner: Arc::clone(&inner),
            id: process.id(),
        });
        // The listener holds no strong handle, or the last one could never be dropped.
        let silent = CancellationToken::new();
        let last_line_read = silent.clone().drop_guard();
        let listener = Listener {
            child: Arc::downgrade(&child),
            sink: Arc::clone(&sink),
        };
        tokio::spawn(async move {
            listener.listen(pipes.stdout).await;
            drop(last_line_read);
        });
        let supervised = supervise(process, inner, limits.grace, silent, pipes.stderr, sink);
        tokio::spawn(supervised);
        Ok(child)
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.id
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.inner.is_over.load(Ordering::Acquire) && !self.inner.stop.is_cancelled()
    }

    /// Requests without an answer.
    pub(crate) fn open_calls(&self) -> usize {
        self.inner.pending.lock().unanswered()
    }

    /// Operations that have not ended.
    pub(crate) fn operations(&self) -> &OpenOperations {
        &self.inner.operations
    }

    /// Passes a request on under a number of ours. Its reply gets every failure, including one that happens here.
    pub(crate) fn call(&self, request: RpcRequest<'_>, params: CallParams) -> Result<u64, CallFailure> {
        let envelope = request.envelope;
        let read = envelope.params().and_then(|fields| Ok((fields.meta()?, fields)));
        let client = params.client;
        let (principal, program) = (params.principal.clone(), params.program.clone());
        let tools = params.tools.clone();
        let token = read.as_ref().ok().and_then(|(meta, _)| meta.progress_token);
        let number = self.inner.next_number.fetch_add(1, Ordering::Relaxed);
        let inserted = self.inner.pending.lock().insert(number, request, token, params);
        inserted.map_err(|(call, failure)| {
            call.fail(failure);
            failure
        })?;
        let fail = |failure| {
            self.inner.fail(number, failure);
            Err(failure)
        };
        if client != BRIDGE && client_name::is_for_the_bridge(request.method) {
            return fail(CallFailure::NotForClients);
        }
        let Ok((meta, fields)) = read else {
            // The child might read it otherwise, and find another client's token or name in it.
            return fail(CallFailure::Unreadable);
        };
        let mut edits = vec![envelope.edit(request.id, number.to_string())];
        if self.inner.names_clients {
            let names = client_name::Names {
                client,
                principal: principal.as_deref(),
                program: program.as_deref(),
                tools: tools.as_deref(),
            };
            match names.edits(envelope, &fields, &meta) {
                Some(names) => edits.extend(names),
                None => return fail(CallFailure::Unreadable),
            }
        } else if tools.is_some() {
            // The child would not know of the limit.
            return fail(CallFailure::CannotLimit);
        }
        if let Some(token) = token {
            edits.push(envelope.edit(token, number.to_string()));
        }
        match self.send_edited(envelope.text(), edits) {
            Ok(()) => Ok(number),
            Err(SendError::Gone) => fail(CallFailure::ChildDied),
            Err(SendError::Stuck) => fail(CallFailure::ChildStuck),
        }
    }

    /// Passes on a notification or a response, as it is.
    pub(crate) fn send(&self, message: &str) -> Result<(), SendError> {
        self.send_edited(message, Vec::new())
    }

    /// Passes on a client's `notifications/cancelled`; the request ends here whatever the child does.
    pub(crate) fn cancel_named(&self, client: ClientId, envelope: &Envelope<'_>) {
        let Ok(params) = envelope.params() else { return };
        let Some(id) = params.request_id else { return };
        let Some(number) = self.inner.pending.lock().number_of(client, id.get()) else {
            return;
        };
        // A child that is gone has nothing left to cancel.
        let _ = self.send_edited(envelope.text(), vec![envelope.edit(id, number.to_string())]);
        self.inner.fail(number, CallFailure::Cancelled);
    }

    /// Cancels a request, at the child too.
    pub(crate) fn cancel(&self, number: u64, failure: CallFailure, reason: &str) {
        if self.inner.fail(number, failure) {
            self.tell_cancelled(number, reason);
        }
    }

    /// Ends every open request of one client that is gone, and what it started if the child knows what that is.
    pub(crate) fn cancel_client(&self, client: ClientId, reason: &str) {
        let calls = self.inner.pending.lock().give_up_client(client);
        for (number, call) in calls {
            call.fail(CallFailure::SessionEnded);
            self.tell_cancelled(number, reason);
        }
        if self.inner.names_clients {
            // A child that is gone has nothing left to end.
            let _ = self.send(&client_name::gone(client, reason));
        }
    }

    /// Ends the requests that have been silent for too long.
    pub(crate) fn cancel_silent(&self, now: Instant) {
        let calls = self.inner.pending.lock().give_up_silent(now);
        for (number, call) in calls {
            call.fail(CallFailure::TimedOut);
            self.tell_cancelled(number, "no answer in time");
        }
    }

    /// Stops the process and all of its group; returns when they are gone.
    pub(crate) async fn stop(&self, failure: CallFailure) {
        self.inner.fail_all(failure);
        self.inner.stop.cancel();
        self.watch_end().await;
    }

    /// Waits for the end, however it comes, without keeping the child alive.
    pub(crate) fn watch_end(&self) -> impl Future<Output = Ending> + Send + use<> {
        let mut ended = self.inner.ended.subscribe();
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
        let reason = Value::from(reason);
        let _ = self.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number},"reason":{reason}}}}}"#
        ));
    }

    fn send_edited(&self, message: &str, edits: Vec<Edit>) -> Result<(), SendError> {
        let mut line = splice(message, edits);
        line.extend_from_slice(b"\n");
        if let Some(echo) = &self.inner.echo {
            echo.sent(&line);
        }
        self.inner.outbox.send(&line).map_err(|error| match error {
            OutboxError::Closed => SendError::Gone,
            OutboxError::Full => SendError::Stuck,
        })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.inner.stop.cancel();
    }
}

impl Inner {
    /// Ends a call. `false` if it is no longer open.
    fn fail(&self, number: u64, failure: CallFailure) -> bool {
        // Finished when the lock is free again.
        let call = self.pending.lock().give_up(number);
        call.map(|call| call.fail(failure)).is_some()
    }

    /// Ends every open call: the child is over.
    pub(super) fn fail_all(&self, failure: CallFailure) {
        let calls = self.pending.lock().close(failure);
        calls.into_iter().for_each(|call| call.fail(failure));
    }
}
