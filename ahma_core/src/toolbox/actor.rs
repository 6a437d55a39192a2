//! The task that keeps the toolbox up to date, and the handle to it.

use std::{
    collections::{HashMap, HashSet},
    io,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{Semaphore, mpsc, oneshot, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    Toolbox, Unavailable,
    availability::{AvailabilityChecker, Lack, Question},
    file_cache::{FileCache, LoadedTools},
    load::ToolsDirectory,
    watch::DirectoryWatch,
};
use crate::{
    catalog::{Catalog, CatalogSettings, Tool},
    mtdf::{AvailabilityCheck, ToolSource},
};

/// Settings of the toolbox.
#[derive(Debug, Clone)]
pub struct ToolboxSettings {
    pub directory: PathBuf,
    /// Directory in which availability checks run.
    pub scope: PathBuf,
    pub catalog: CatalogSettings,
    /// Check availability; if not, every tool counts as available.
    pub probes: bool,
    /// Follow changes of the directory.
    pub reload: bool,
    /// Keep the texts of the files, to announce them to others.
    pub keep_sources: bool,
}

/// Reads the toolbox as it is now, or waits for it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ToolboxHandle {
    pub(super) toolbox: watch::Receiver<Arc<Toolbox>>,
    pub(super) again: mpsc::Sender<Recheck>,
}

/// A request to check again what a tool needs.
#[derive(Debug)]
pub(super) struct Recheck {
    tool: String,
    pub(super) done: oneshot::Sender<()>,
}

impl ToolboxHandle {
    pub fn current(&self) -> Arc<Toolbox> {
        self.toolbox.borrow().clone()
    }

    /// The toolbox once it is loaded.
    pub async fn loaded(&self) -> Arc<Toolbox> {
        let current = self.current();
        if current.loads > 0 {
            return current;
        }
        let _ = self.toolbox.clone().wait_for(|toolbox| toolbox.loads > 0).await;
        self.current()
    }

    /// The toolbox once all availability checks are done, or as it is after `timeout`.
    pub async fn settled(&self, timeout: Duration) -> Arc<Toolbox> {
        if self.loaded().await.probing > 0 {
            let mut toolbox = self.toolbox.clone();
            let _ = tokio::time::timeout(timeout, toolbox.wait_for(|toolbox| toolbox.probing == 0)).await;
        }
        self.current()
    }

    /// The toolbox after another check of what one of its tools lacks. It may have been installed since.
    pub async fn recheck(&self, tool: &str) -> Arc<Toolbox> {
        let (done, answered) = oneshot::channel();
        let tool = tool.to_owned();
        if self.again.send(Recheck { tool, done }).await.is_ok() {
            // No answer means that the server is shutting down.
            let _ = answered.await;
        }
        self.current()
    }

    /// Notifies of every new toolbox.
    pub fn changes(&self) -> watch::Receiver<Arc<Toolbox>> {
        self.toolbox.clone()
    }
}

/// Starts to load the directory and to follow its changes, until `shutdown`.
pub fn open(
    settings: ToolboxSettings,
    checker: AvailabilityChecker,
    shutdown: CancellationToken,
) -> ToolboxHandle {
    let (tx, toolbox) = watch::channel(Arc::new(Toolbox {
        directory: settings.directory.clone(),
        ..Toolbox::default()
    }));
    let (again, rechecks) = mpsc::channel(1);
    let actor = ToolboxActor {
        source: ToolsDirectory::new(&settings.directory),
        settings,
        checker,
        cache: FileCache::default(),
        loaded: LoadedTools::default(),
        directory_problem: None,
        sources: Arc::default(),
        catalog: Catalog::default(),
        answers: HashMap::new(),
        probing: JoinSet::new(),
        unasked: Vec::new(),
        asked: HashSet::new(),
        at_once: Arc::new(Semaphore::new(MAX_CONCURRENT_CHECKS)),
        loads: 0,
        rechecks,
        waiting: Vec::new(),
        tx,
    };
    tokio::spawn(shutdown.run_until_cancelled_owned(actor.run()));
    ToolboxHandle { toolbox, again }
}

/// Time before a server runs availability checks and watches its directory. Many sessions are over sooner, and both take
/// longer than all else in them. A person who edits a tool file takes longer than that from the start of a server.
const START_DELAY: Duration = Duration::from_secs(1);

/// Checks use the processor as much as the disk, and must leave room for a client's first call.
const MAX_CONCURRENT_CHECKS: usize = 4;

struct ToolboxActor {
    settings: ToolboxSettings,
    source: ToolsDirectory,
    checker: AvailabilityChecker,
    cache: FileCache,
    loaded: LoadedTools,
    directory_problem: Option<String>,
    sources: Arc<Vec<ToolSource>>,
    catalog: Catalog,
    /// Results of availability checks, each distinct one once.
    answers: HashMap<Arc<AvailabilityCheck>, Result<(), Lack>>,
    probing: JoinSet<(Arc<AvailabilityCheck>, Result<(), Lack>)>,
    /// Checks that are to be made.
    unasked: Vec<Arc<AvailabilityCheck>>,
    /// Checks under way.
    asked: HashSet<Arc<AvailabilityCheck>>,
    at_once: Arc<Semaphore>,
    loads: u64,
    rechecks: mpsc::Receiver<Recheck>,
    /// Requests for another check that wait for its result.
    waiting: Vec<PendingRecheck>,
    tx: watch::Sender<Arc<Toolbox>>,
}

/// A request that waits until none of these checks is under way.
struct PendingRecheck {
    probes: Vec<Arc<AvailabilityCheck>>,
    done: oneshot::Sender<()>,
}

impl ToolboxActor {
    async fn run(mut self) {
        let version = self.source.version().await;
        self.load().await;
        if !self.settings.reload {
            self.ask_unknown();
            return self.answer_until(std::future::pending()).await;
        }
        self.answer_until(tokio::time::sleep(START_DELAY)).await;
        self.ask_unknown();
        let mut watch = match DirectoryWatch::new(self.settings.directory.clone()) {
            Ok(watch) => watch,
            Err(error) => {
                tracing::warn!(%error, "changes of the tools directory will go unnoticed");
                return self.answer_until(std::future::pending()).await;
            }
        };
        // Changes so far are found by reading again.
        arm(&mut watch).await;
        if self.source.version().await != version {
            self.load().await;
            self.ask_unknown();
        }
        loop {
            self.answer_until(watch.changed()).await;
            arm(&mut watch).await;
            self.load().await;
            self.ask_unknown();
        }
    }

    /// Takes in results of availability checks until something happens, such as a change of the directory.
    async fn answer_until(&mut self, changed: impl Future<Output = ()>) {
        // One future for the whole time: a new one would forget a change that is still settling.
        let mut changed = std::pin::pin!(changed);
        loop {
            tokio::select! {
                () = &mut changed => return,
                Some(Recheck { tool, done }) = self.rechecks.recv() => {
                    let probes = self.recheck(&tool);
                    self.waiting.push(PendingRecheck { probes, done });
                    self.answer_waiting();
                }
                Some(answered) = self.probing.join_next() => {
                    let mut answered = Some(answered);
                    let mut news = false;
                    while let Some(answer) = answered {
                        if let Ok((probe, answer)) = answer {
                            news |= self.note(probe, answer);
                        }
                        answered = self.probing.try_join_next();
                    }
                    if news || self.probing.is_empty() {
                        self.publish();
                    }
                    self.answer_waiting();
                }
            }
        }
    }

    async fn load(&mut self) {
        let found = self.source.read().await;
        self.directory_problem = found.as_ref().err().map(|error| match error.kind() {
            io::ErrorKind::NotFound => "it does not exist".to_owned(),
            _ => format!("it cannot be read: {error}"),
        });
        let files = found.unwrap_or_default();
        let mut cache = std::mem::take(&mut self.cache);
        // A thousand files take a while to check; answers to clients must not wait for that.
        let refreshed = tokio::task::spawn_blocking(move || {
            let loaded = cache.refresh(files);
            (cache, loaded)
        });
        match refreshed.await {
            Ok((cache, mut loaded)) => {
                let sources = std::mem::take(&mut loaded.sources);
                if self.settings.keep_sources {
                    self.sources = Arc::new(sources);
                }
                (self.cache, self.loaded) = (cache, loaded);
            }
            Err(error) => tracing::error!(%error, "tool files could not be checked"),
        }
        self.catalog = Catalog::build(&self.loaded.tools, self.settings.catalog);
        self.loads += 1;
        self.log();
        if self.settings.probes {
            self.look_for_programs().await;
        }
        self.publish();
    }

    fn log(&self) {
        let directory = self.settings.directory.display();
        match &self.directory_problem {
            Some(problem) => tracing::warn!(%directory, "no tool files: {problem}"),
            None => {
                tracing::info!(%directory, files = self.loaded.tools.len(), tools = self.catalog.len(), "tool files loaded")
            }
        }
        for problem in &self.loaded.problems {
            tracing::warn!("{problem}");
        }
        for file in &self.loaded.stale {
            tracing::warn!(file, "the last good version of the file stays in use");
        }
    }

    /// Looks for programs that are not known, and for those that were missing, which may have been installed since. The
    /// checks that run them come later; until those end, earlier results remain valid.
    async fn look_for_programs(&mut self) {
        let wanted = self.catalog.tools().flat_map(|tool| tool.probes.clone());
        let wanted: HashSet<_> = wanted.collect();
        self.answers.retain(|probe, _| wanted.contains(probe));
        let unknown = |probe: &Arc<_>| self.answers.get(probe).is_none_or(Result::is_err);
        let unknown: Vec<_> = wanted.into_iter().filter(unknown).collect();
        let missing = self
            .checker
            .missing_programs(&self.settings.scope, unknown.clone())
            .await;
        self.unasked.clear();
        for probe in unknown {
            if let Some(lack) = missing.get(&probe) {
                self.note(probe, Err(lack.clone()));
                continue;
            }
            if let Some(Err(Lack::Program(_))) = self.answers.get(&probe) {
                self.answers.remove(&probe);
            }
            match probe.command() {
                Some(_) => self.unasked.push(probe),
                None => _ = self.answers.insert(probe, Ok(())),
            }
        }
    }

    /// Starts the checks of the programs that were found.
    fn ask_unknown(&mut self) {
        for probe in std::mem::take(&mut self.unasked) {
            self.ask(probe);
        }
    }

    /// Returns the checks whose results will say more.
    fn recheck(&mut self, tool: &str) -> Vec<Arc<AvailabilityCheck>> {
        let probes = self.catalog.get(tool).map(|tool| tool.probes.clone());
        let probes = probes.unwrap_or_default();
        for probe in &probes {
            if self.answers.get(probe).is_some_and(Result::is_err) {
                self.ask(probe.clone());
            }
        }
        probes
    }

    fn ask(&mut self, probe: Arc<AvailabilityCheck>) {
        if !self.asked.insert(probe.clone()) {
            return;
        }
        let question = match self.answers.contains_key(&probe) {
            true => Question::Again,
            false => Question::First,
        };
        let (checker, at_once) = (self.checker.clone(), self.at_once.clone());
        let scope = self.settings.scope.clone();
        self.probing.spawn(async move {
            let _turn = at_once.acquire().await;
            let answer = checker.ask(&scope, &probe, question).await;
            (probe, answer)
        });
    }

    fn answer_waiting(&mut self) {
        let asked = &self.asked;
        let is_answered =
            |waiting: &mut PendingRecheck| !waiting.probes.iter().any(|probe| asked.contains(probe));
        for PendingRecheck { done, .. } in self.waiting.extract_if(.., is_answered) {
            // The request may be gone.
            let _ = done.send(());
        }
    }

    /// True if it changes what is known; a tool counts as available until its check fails.
    fn note(&mut self, probe: Arc<AvailabilityCheck>, answer: Result<(), Lack>) -> bool {
        self.asked.remove(&probe);
        let before = self.answers.get(&probe).unwrap_or(&Ok(()));
        if *before == answer {
            self.answers.insert(probe, answer);
            return false;
        }
        if let Err(lack) = &answer {
            let tools = self.catalog.tools().filter(|tool| tool.probes.contains(&probe));
            let tools: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
            tracing::warn!("not available: {}: {}", tools.join(", "), lack.reason());
        }
        self.answers.insert(probe, answer);
        true
    }

    /// Reasons why the tool is not available, as far as they are known.
    fn lacks<'a>(&'a self, tool: &'a Tool) -> impl Iterator<Item = &'a Lack> {
        let answers = tool.probes.iter().filter_map(|probe| self.answers.get(probe));
        answers.filter_map(|answer| answer.as_ref().err())
    }

    fn publish(&self) {
        let pending = self.asked.iter().chain(&self.unasked);
        let unanswered = pending.filter(|probe| !self.answers.contains_key(*probe));
        let toolbox = Toolbox {
            present: self
                .catalog
                .filtered(|tool| !self.lacks(tool).any(|lack| matches!(lack, Lack::Program(_)))),
            offered: self.catalog.filtered(|tool| self.lacks(tool).next().is_none()),
            unavailable: (self.catalog.tools())
                .filter_map(|tool| Some(Unavailable::new(tool, self.lacks(tool).next()?)))
                .collect(),
            catalog: self.catalog.clone(),
            problems: self.loaded.problems.clone(),
            stale: self.loaded.stale.clone(),
            sources: Arc::clone(&self.sources),
            directory: self.settings.directory.clone(),
            directory_problem: self.directory_problem.clone(),
            probing: unanswered.count(),
            loads: self.loads,
        };
        self.tx.send_replace(Arc::new(toolbox));
    }
}

async fn arm(watch: &mut DirectoryWatch) {
    if let Err(error) = watch.arm().await {
        tracing::warn!(%error, "changes of the tools directory may go unnoticed");
    }
}
