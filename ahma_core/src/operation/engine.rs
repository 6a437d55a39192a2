//! The engine: takes plans, decides which runs, remembers those that ran.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::broadcast;

use crate::{call::CommandPlan, sandbox::HintContext, shell::Launcher};

use super::{
    CallOrigin, ClientId, EngineSettings, Operation, OperationId, Principal,
    cell::RecalledOperation,
    queue::{Queue, QueueAdmission, Ticket},
    remembered::{HeldBytes, Remembered, RememberedLimits},
    run::StopReason,
    spool::Spool,
    task,
};

/// Number of changes that a slow listener may lag before it misses some.
const CHANGES_KEPT: usize = 1024;

/// Less would not hold the line about what a result leaves out.
const MIN_RESULT_BYTES: usize = 1 << 10;

/// Runs operations. Cheap to clone; all clones are the same engine. Must be used inside a tokio runtime.
#[derive(Debug, Clone)]
pub struct Engine {
    pub(super) shared: Arc<EngineCore>,
}

/// State that clones, operations and their tasks share.
#[derive(Debug)]
pub(super) struct EngineCore {
    pub(super) launcher: Launcher,
    pub(super) settings: EngineSettings,
    pub(super) spool: Arc<Spool>,
    registry: Mutex<Registry>,
    changes: broadcast::Sender<OperationChange>,
}

/// Names an operation that is new, begins to run, ends, or is forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationChange {
    pub id: OperationId,
    /// The client it belongs to; for all others nothing has changed.
    pub client: ClientId,
}

#[derive(Debug)]
struct Registry {
    next_ticket: Ticket,
    by_ticket: HashMap<Ticket, Operation>,
    tickets: HashMap<OperationId, Ticket>,
    queue: Queue,
    remembered: Remembered,
    intake: Intake,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intake {
    Open,
    Closed,
}

impl Engine {
    /// Removes spool files of servers that died, and is ready.
    pub fn new(launcher: Launcher, settings: EngineSettings) -> Self {
        let settings = EngineSettings {
            result_bytes: settings.result_bytes.max(MIN_RESULT_BYTES),
            ..settings
        };
        let registry = Registry {
            next_ticket: 0,
            by_ticket: HashMap::new(),
            tickets: HashMap::new(),
            queue: Queue::new(settings.max_operations, settings.max_queued),
            remembered: Remembered::new(RememberedLimits {
                entries: settings.max_remembered,
                bytes: HeldBytes {
                    spooled: settings.remembered_bytes,
                    findings: settings.remembered_finding_bytes,
                },
            }),
            intake: Intake::Open,
        };
        let shared = EngineCore {
            launcher,
            spool: match &settings.keep_output {
                Some(directory) => Spool::kept(directory.clone(), settings.state_dir.clone()),
                None => Spool::new(settings.state_dir.clone()),
            },
            settings,
            registry: Mutex::new(registry),
            changes: broadcast::Sender::new(CHANGES_KEPT),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Facts for a guess about a command's failure.
    pub fn hint_context(&self) -> HintContext<'_> {
        self.shared.launcher.hint_context()
    }

    pub fn settings(&self) -> &EngineSettings {
        &self.shared.settings
    }

    /// Takes a plan. Returns at once: the operation runs or waits in the queue, or has ended if it cannot be taken.
    pub fn start(&self, plan: CommandPlan) -> Operation {
        self.start_for(CallOrigin::default(), plan)
    }

    /// The same, with a note of where the call came from.
    pub fn start_for(&self, origin: CallOrigin, plan: CommandPlan) -> Operation {
        self.start_named(None, origin, plan)
    }

    /// The same under a name that the cluster gave it.
    pub(crate) fn start_named(
        &self,
        id: Option<OperationId>,
        origin: CallOrigin,
        plan: CommandPlan,
    ) -> Operation {
        let mut registry = self.shared.registry.lock();
        let operation = registry.admit(id, origin, plan, &self.shared);
        if let Some(journal) = &self.shared.settings.journal {
            journal.changed(&operation);
        }
        let ticket = operation.cell().ticket;
        if registry.intake == Intake::Closed {
            drop(registry);
            self.shared.end_not_run(&operation, task::NotRun::ShuttingDown);
            return operation;
        }
        let admission = registry.queue.enter(ticket);
        let waiting = registry.queue.waiting();
        drop(registry);
        match admission {
            QueueAdmission::Run => self.shared.spawn(operation.clone()),
            QueueAdmission::Wait => self.shared.announce(&operation),
            QueueAdmission::Refused => self
                .shared
                .end_not_run(&operation, task::NotRun::QueueFull { waiting }),
        }
        operation
    }

    /// An operation that runs, waits, or is remembered.
    pub fn get(&self, id: &str) -> Option<Operation> {
        self.shared.registry.lock().get(id).cloned()
    }

    /// All operations that run, wait, or are remembered; oldest first.
    pub fn operations(&self) -> Vec<Operation> {
        let mut operations: Vec<_> = self.shared.registry.lock().by_ticket.values().cloned().collect();
        operations.sort_unstable_by_key(|operation| operation.cell().ticket);
        operations
    }

    /// An operation of a principal. Those of others do not exist for it.
    pub fn get_for(&self, principal: &Principal, id: &str) -> Option<Operation> {
        self.get(id)
            .filter(|operation| operation.principal() == principal)
    }

    /// Those of one client; oldest first.
    pub fn operations_of(&self, client: &ClientId) -> Vec<Operation> {
        let mut operations = self.operations();
        operations.retain(|operation| operation.client() == client);
        operations
    }

    /// Asks everything that a client started here to stop, without waiting for it. What runs elsewhere belongs to its
    /// principal, who may go on at another front end.
    pub fn stop_all_of(&self, client: &ClientId, reason: &str) {
        let here = self.operations_of(client).into_iter();
        for operation in here.filter(|operation| !operation.runs_elsewhere()) {
            operation.request_stop(StopReason::Cancelled(Some(reason.to_owned())));
        }
    }

    /// Reports every operation that is new, begins to run, ends, or is forgotten. A listener that is too slow learns how many
    /// it missed.
    pub fn changes(&self) -> broadcast::Receiver<OperationChange> {
        self.shared.changes.subscribe()
    }

    /// Stops everything, takes nothing new, and returns when no process is left.
    pub async fn shutdown(&self) {
        let operations = {
            let mut registry = self.shared.registry.lock();
            registry.intake = Intake::Closed;
            let here = registry
                .by_ticket
                .values()
                .filter(|operation| !operation.runs_elsewhere());
            here.cloned().collect::<Vec<_>>()
        };
        for operation in &operations {
            operation.request_stop(StopReason::shutting_down());
        }
        for operation in operations {
            operation.outcome().await;
        }
    }
}

impl EngineCore {
    /// Takes in an operation that is run elsewhere, unless it is known.
    pub(super) fn admit_mirrored(
        self: &Arc<Self>,
        recalled: RecalledOperation,
    ) -> Result<Operation, Operation> {
        let mut registry = self.registry.lock();
        match registry.get(recalled.call.id.as_str()) {
            Some(known) => Err(known.clone()),
            None => Ok(registry.add(|ticket| Operation::mirrored(recalled, ticket, self))),
        }
    }

    pub(super) fn queue_position(&self, ticket: Ticket) -> Option<usize> {
        self.registry.lock().queue.position(ticket)
    }

    /// Ends an operation that was asked to stop, if it is still waiting.
    pub(super) fn abandon(&self, operation: &Operation) {
        let waited = self.registry.lock().queue.abandon(operation.cell().ticket);
        if waited {
            self.end_not_run(operation, task::NotRun::Stopped);
        }
    }

    /// An operation that ran has its outcome: its place goes to the next in line.
    pub(super) fn release(self: &Arc<Self>, operation: &Operation) {
        let next = {
            let mut registry = self.registry.lock();
            let next = registry.queue.leave();
            next.and_then(|ticket| registry.by_ticket.get(&ticket)).cloned()
        };
        if let Some(next) = next {
            self.spawn(next);
        }
        self.remember(operation);
    }

    fn spawn(self: &Arc<Self>, operation: Operation) {
        // Before it is announced: what has a place runs.
        let begun = operation.cell().begin();
        self.announce(&operation);
        // Tracked by the operation: it gets its outcome as the last thing the task does, whatever happens.
        tokio::spawn(task::run(operation, begun, Arc::clone(self)));
    }

    fn end_not_run(&self, operation: &Operation, why: task::NotRun) {
        task::end_not_run(operation, why);
        self.remember(operation);
    }

    /// Remembers an ended operation, and forgets others for it.
    pub(super) fn remember(&self, operation: &Operation) {
        let held = HeldBytes {
            spooled: operation.output().spooled_bytes(),
            findings: operation.cell().spare_finding_bytes(),
        };
        if let Some(journal) = &self.settings.journal {
            journal.changed(operation);
        }
        let (forgotten, shortened) = self.registry.lock().remember(operation, held);
        self.announce(operation);
        for operation in shortened {
            operation.cell().forget_spare_findings();
            self.announce(&operation);
        }
        // Spool files are deleted here, not under the lock.
        for operation in forgotten {
            self.announce(&operation);
        }
    }

    pub(super) fn announce(&self, operation: &Operation) {
        // No listener is not an error.
        let _ = self.changes.send(OperationChange {
            id: operation.id().clone(),
            client: operation.client().clone(),
        });
    }
}

impl Registry {
    fn admit(
        &mut self,
        id: Option<OperationId>,
        origin: CallOrigin,
        plan: CommandPlan,
        shared: &Arc<EngineCore>,
    ) -> Operation {
        let mut id = id.unwrap_or_else(OperationId::random);
        while self.tickets.contains_key(&id) {
            id = OperationId::random();
        }
        self.add(|ticket| Operation::queued((id, ticket), origin, plan, shared))
    }

    /// Keeps an operation under the next ticket.
    fn add(&mut self, make: impl FnOnce(Ticket) -> Operation) -> Operation {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let operation = make(ticket);
        self.tickets.insert(operation.id().clone(), ticket);
        self.by_ticket.insert(ticket, operation.clone());
        operation
    }

    fn get(&self, id: &str) -> Option<&Operation> {
        self.by_ticket.get(self.tickets.get(id)?)
    }

    /// Gives those that are forgotten, and those that have to lose findings.
    fn remember(&mut self, operation: &Operation, held: HeldBytes) -> (Vec<Operation>, Vec<Operation>) {
        let Self {
            remembered,
            by_ticket,
            tickets,
            ..
        } = self;
        let seen = |ticket: Ticket| {
            by_ticket
                .get(&ticket)
                .is_none_or(|operation| operation.cell().is_seen())
        };
        let evictions = remembered.push(operation.cell().ticket, held, seen);
        let forgotten: Vec<_> = evictions
            .forgotten
            .iter()
            .filter_map(|ticket| by_ticket.remove(ticket))
            .collect();
        for operation in &forgotten {
            tickets.remove(operation.id());
        }
        let shortened = evictions.shortened.iter();
        let shortened = shortened
            .filter_map(|ticket| by_ticket.get(ticket).cloned())
            .collect();
        (forgotten, shortened)
    }
}
