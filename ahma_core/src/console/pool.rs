//! A pool, on the pages of its front ends: what runs in it, and its workers.
//!
//! A front end writes no history. Its server processes are asked instead, as for the admin API.

use std::time::Duration;

use ahma_common::words::counted;
use ahma_http_bridge::Operator;
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    layout::{
        self,
        Head::{Number, Text},
        nothing, number, span, table, text,
    },
    now::progress,
    routes::Console,
};
use crate::operation::{LivingWorker, OperationState};

/// An operation as the admin API tells of it.
#[derive(Debug, Deserialize)]
pub(super) struct PooledOperation {
    pub(super) id: String,
    pub(super) status: OperationState,
    pub(super) tool: String,
    /// Nothing but the bridge may remember it, and that knows less.
    #[serde(default)]
    pub(super) command: String,
    pub(super) directory: Option<String>,
    pub(super) principal: Option<String>,
    pub(super) worker: Option<String>,
    pub(super) percent: Option<f64>,
    pub(super) phase: Option<String>,
    pub(super) elapsed_ms: Option<u64>,
    pub(super) cpu_ms: Option<u64>,
    pub(super) max_rss_bytes: Option<u64>,
    pub(super) output_lines: Option<u64>,
    pub(super) output_bytes: Option<u64>,
    pub(super) exit_code: Option<i64>,
    pub(super) reason: Option<String>,
}

impl PooledOperation {
    pub(super) fn progress(&self) -> Markup {
        progress(self.percent, self.phase.as_deref())
    }

    pub(super) fn took(&self) -> Markup {
        let elapsed = self.elapsed_ms.filter(|_| self.status != OperationState::Queued);
        html! { @match elapsed { Some(millis) => { (span(Duration::from_millis(millis))) }, None => "–" } }
    }

    pub(super) fn principal(&self) -> Markup {
        text(self.principal.as_deref().unwrap_or("–"))
    }

    pub(super) fn worker(&self) -> Markup {
        text(self.worker.as_deref().unwrap_or("–"))
    }

    fn row(&self) -> Markup {
        html! {
            tr id={ "row-" (self.id) } {
                td { (layout::state(self.status.as_str())) }
                td.main { (layout::operation_link(&self.id, &self.command)) }
                td { (text(&self.tool)) }
                td { (self.principal()) }
                td { (self.worker()) }
                td { (self.progress()) }
                (number("For", &self.took()))
            }
        }
    }
}

/// The pool as it is now.
pub(super) struct PoolParts {
    open: Vec<PooledOperation>,
    workers: Vec<LivingWorker>,
    has_backends: bool,
}

impl PoolParts {
    /// Nothing on a server that is no front end.
    pub(super) async fn read(console: &Console, operator: &Operator) -> Option<Self> {
        let (workforce, server) = console.pool.as_ref().zip(operator.server.as_ref())?;
        let open = server.open_operations().await.into_iter();
        let mut open: Vec<PooledOperation> = open
            .filter_map(|operation| serde_json::from_value(operation).ok())
            .collect();
        // Of either kind the newest first, as they come.
        open.sort_by_key(|operation| operation.status == OperationState::Queued);
        Some(Self {
            open,
            workers: workforce.workers(),
            has_backends: server.has_backends(),
        })
    }

    pub(super) fn operations(&self) -> Markup {
        let is_queued = |operation: &&PooledOperation| operation.status == OperationState::Queued;
        let queued = self.open.iter().filter(is_queued).count();
        let head = [
            Text("Status"),
            Text("Command"),
            Text("Tool"),
            Text("Client"),
            Text("Worker"),
            Text("Progress"),
            Number("For"),
        ];
        html! {
            @if !self.has_backends {
                (nothing("The operations of the pool are shown while a session is open here."))
            } @else if self.open.is_empty() {
                (nothing("Nothing runs in the pool. What a client starts at any front end appears here by itself."))
            } @else {
                p.count { (counted((self.open.len() - queued) as u64, "running operation")) ", " (queued) " queued" }
                (table("Operations", &head, &html! { @for operation in &self.open { (operation.row()) } }))
            }
        }
    }

    pub(super) fn workers(&self) -> Markup {
        let head = [
            Text("Worker"),
            Text("Host"),
            Text("Labels"),
            Number("Running"),
            Number("At most"),
            Text("Status"),
            Text("Version"),
        ];
        html! {
            @if self.workers.is_empty() { (nothing("No worker is alive.")) } @else {
                (table("Workers", &head, &html! {
                    @for worker in &self.workers {
                        tr id={ "worker-" (worker.name) } {
                            td.main { (text(&worker.name)) }
                            td { (text(&worker.host)) }
                            td { (text(&worker.labels.join(" "))) }
                            (number("Running", &html! { (worker.running) }))
                            (number("At most", &html! { (worker.slots) }))
                            td { @if worker.is_draining { "takes nothing new" } @else { "takes work" } }
                            td { (text(&worker.version)) }
                        }
                    }
                }))
            }
        }
    }
}

/// The sentence on a page that reads the history alone.
pub(super) fn missing_here(console: &Console) -> Markup {
    html! {
        @if console.pool.is_some() {
            p.hint { "This page has what servers of this machine ran by themselves, and nothing of the pool; the page Now shows what runs there." }
        }
    }
}
