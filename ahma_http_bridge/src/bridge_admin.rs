//! The bridge as an operator sees it: sessions, operations of all backends, and the ways to stop them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use ahma_common::contract::{LIST_OPERATIONS, OutputPlace, READ_FINDINGS, READ_OUTPUT, STOP_OPERATIONS};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::auth::Principal;
use crate::bridge::Bridge;
use crate::child::{AskError, Child};
use crate::operations::KnownOperation;
use crate::session::EndReason;

/// A backend answers such a question at once, unless it hangs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// A command has five seconds for its last words.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// Operations to ask the backends for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked<'a> {
    All,
    Open,
    One(&'a str),
}

impl Asked<'_> {
    fn params(self) -> Value {
        match self {
            Self::All => json!({}),
            Self::Open => json!({ "only_open": true }),
            Self::One(id) => json!({ "id": id }),
        }
    }

    /// True if an operation that no backend lists belongs to the answer.
    fn includes(self, operation: &KnownOperation) -> bool {
        match self {
            Self::All => true,
            Self::Open => matches!(operation.report.status.as_str(), "queued" | "running"),
            Self::One(id) => operation.report.id == id,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
    #[error("no server process knows the operation {0}; `ahma_mcp history` has those that ended earlier")]
    UnknownOperation(String),
    #[error("the server process gave no answer: {0}")]
    Backend(String),
}

/// The sentence that a client reads about what an operator did to its work.
pub(crate) fn did(name: &str, deed: &str, reason: Option<&str>) -> String {
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("the operator {name} {deed}: {reason}"),
        None => format!("the operator {name} {deed}"),
    }
}

impl Bridge {
    /// Every open session, oldest first.
    pub(crate) fn described_sessions(&self) -> Vec<Value> {
        let mut sessions = self.sessions.all();
        sessions.retain(|session| session.end_reason().is_none());
        sessions.sort_by_key(|session| session.serial());
        let running: Vec<KnownOperation> = self
            .children()
            .iter()
            .flat_map(|child| child.operations().all())
            .collect();
        let described = sessions.iter().map(|session| {
            let is_own = |operation: &&KnownOperation| operation.session.as_deref() == Some(session.id());
            let mut described = session.described();
            described["operations"] = running.iter().filter(is_own).count().into();
            if self.is_shared() {
                described["scope"] = json!(self.settings.default_scope);
            }
            described
        });
        described.collect()
    }

    /// Operations that a backend knows, and those that ended with their backend.
    pub(crate) async fn described_operations(&self, asked_for: Asked<'_>) -> Vec<Value> {
        let children = self.children();
        let mut known: Vec<KnownOperation> = self.recorder.ended();
        known.extend(children.iter().flat_map(|child| child.operations().all()));
        let mut operations = Vec::new();
        let mut seen = HashSet::new();
        for mut answer in self.lists_of(&children, asked_for).await {
            let Some(listed) = answer["operations"].as_array_mut() else {
                continue;
            };
            for mut operation in listed.drain(..) {
                let id = operation["id"].as_str().unwrap_or_default().to_owned();
                // Whatever two backends say, an operation is there once.
                if seen.contains(&id) {
                    continue;
                }
                let of_bridge = known.iter().find(|known| known.report.id == id);
                operation["session"] = of_bridge.and_then(|known| known.session.as_deref()).into();
                let since = of_bridge.map(|known| known.since.as_str().into());
                operation["since"] = since.unwrap_or_else(|| operation["since"].take());
                if let Some(operation) = operation.as_object_mut() {
                    operation.remove("client");
                }
                seen.insert(id);
                operations.push(operation);
            }
        }
        let gone = known
            .iter()
            .filter(|known| asked_for.includes(known) && !seen.contains(&known.report.id));
        operations.extend(gone.filter_map(|known| serde_json::to_value(known).ok()));
        operations
    }

    /// The lists of the backends. At a front end of a cluster each of them knows the whole pool, so that one is enough.
    async fn lists_of(&self, children: &[Arc<Child>], asked_for: Asked<'_>) -> Vec<Value> {
        let params = asked_for.params();
        let mut asked = children.iter().map(|child| async {
            let answer = child
                .ask_about_operations(LIST_OPERATIONS, &params, ANSWER_TIMEOUT)
                .await;
            answer.inspect_err(|error| tracing::debug!(%error, "a backend does not tell of its operations"))
        });
        if self.settings.session_store.is_none() {
            return join_all(asked).await.into_iter().flatten().collect();
        }
        let Some(first) = asked.next() else {
            return Vec::new();
        };
        match first.await {
            Ok(answer) => vec![answer],
            Err(_) => join_all(asked).await.into_iter().flatten().collect(),
        }
    }

    pub(crate) async fn read_output(&self, id: &str, place: OutputPlace) -> Result<Value, AdminError> {
        let mut params = json!(place);
        params["id"] = id.into();
        self.ask_its_backend(READ_OUTPUT, id, &params, ANSWER_TIMEOUT)
            .await
    }

    /// A page of findings, from this index on.
    pub(crate) async fn read_findings(&self, id: &str, from: u64) -> Result<Value, AdminError> {
        let params = json!({ "id": id, "from": from });
        self.ask_its_backend(READ_FINDINGS, id, &params, ANSWER_TIMEOUT)
            .await
    }

    /// Stops an operation for an operator; answers when nothing of it is left. The agent is told why.
    pub(crate) async fn cancel_operation(
        &self,
        operator: &Principal,
        id: &str,
        reason: Option<&str>,
    ) -> Result<Value, AdminError> {
        self.record_admin("cancel", operator, json!({ "operation": id, "reason": reason }));
        let why = did(&operator.name, "cancelled it", reason);
        let params = json!({ "id": id, "reason": why, "end": "cancelled" });
        self.ask_its_backend(STOP_OPERATIONS, id, &params, STOP_TIMEOUT)
            .await
    }

    /// Ends a session for an operator, with all it runs. False if there is none of that id.
    pub(crate) async fn end_session_for(&self, operator: &Principal, id: &str, reason: Option<&str>) -> bool {
        let Some(session) = self.sessions.remove(id) else {
            return false;
        };
        let fields = json!({ "session": id, "reason": reason });
        self.record_admin("end_session", operator, fields);
        let why = did(&operator.name, "ended the session", reason);
        self.end_session(session, EndReason::Operator(why)).await;
        true
    }

    /// Ends the sessions of a principal and stops everything it runs.
    pub(crate) async fn stop_work_of(&self, principal: &str, why: &str) {
        let sessions = self.sessions.all();
        let own = sessions
            .iter()
            .filter(|session| &*session.principal().name == principal);
        join_all(
            own.map(|session| self.end_session(Arc::clone(session), EndReason::Operator(why.to_owned()))),
        )
        .await;
        let children = self.children();
        let params = json!({ "principal": principal, "reason": why, "end": "cancelled" });
        let stops = children
            .iter()
            .map(|child| child.ask_about_operations(STOP_OPERATIONS, &params, STOP_TIMEOUT));
        for error in join_all(stops).await.into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "a backend did not stop the work of a principal");
        }
    }

    /// Asks the backend that has the operation. One that has ended may be in any of them.
    async fn ask_its_backend(
        &self,
        method: &str,
        id: &str,
        params: &Value,
        timeout: Duration,
    ) -> Result<Value, AdminError> {
        let mut children: Vec<Arc<Child>> = self.children();
        children.sort_by_key(|child| !child.operations().contains(id));
        let mut failed = None;
        for child in children {
            match child.ask_about_operations(method, params, timeout).await {
                Ok(answer) => return Ok(answer),
                Err(AskError::Unknown) => {}
                Err(AskError::Failed(reason)) => {
                    failed.get_or_insert(reason);
                    if child.operations().contains(id) {
                        break;
                    }
                }
            }
        }
        // A backend that did not answer may be the one that knows it.
        Err(match failed {
            Some(reason) => AdminError::Backend(reason),
            None => AdminError::UnknownOperation(id.to_owned()),
        })
    }
}
