//! The task that keeps the toolbox up to date.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
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
    load::{Directory, Source},
    probe::{Answer, Prober},
    shelf::{Shelf, Stock},
    watch::DirectoryWatch,
};
use crate::{
    catalog::{Catalog, CatalogSettings, Tool},
    mtdf::Probe,
};

/// What the toolbox depends on.
#[derive(Debug, Clone)]
pub struct ToolboxSettings {
    pub directory: PathBuf,
    /// Where probes run.
    pub scope: PathBuf,
    pub catalog: CatalogSettings,
    /// Whether programs are looked for; if not, every tool counts as available.
    pub probes: bool,
    /// Whether changes of the directory are followed.
    pub reload: bool,
}

/// Reads the toolbox as it is now, or waits for it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ToolboxHandle {
    toolbox: watch::Receiver<Arc<Toolbox>>,
    again: mpsc::Sender<LookAgain>,
}

/// Asks to look once more for what a tool needs.
#[derive(Debug)]
struct LookAgain {
    tool: String,
    done: oneshot::Sender<()>,
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

    /// The toolbox once all probes have answered, or as it is after `patience`.
    pub async fn settled(&self, patience: Duration) -> Arc<Toolbox> {
        if self.loaded().await.probing > 0 {
            let mut toolbox = self.toolbox.clone();
            let _ = tokio::time::timeout(patience, toolbox.wait_for(|toolbox| toolbox.probing == 0)).await;
        }
        self.current()
    }

    /// The toolbox after another look for what one of its tools lacks. It may have been installed since.
    pub async fn look_again(&self, tool: &str) -> Arc<Toolbox> {
        let (done, answered) = oneshot::channel();
        let tool = tool.to_owned();
        if self.again.send(LookAgain { tool, done }).await.is_ok() {
            // No answer means that the server is shutting down.
            let _ = answered.await;
        }
        self.current()
    }

    /// Tells of every new toolbox.
    pub fn changes(&self) -> watch::Receiver<Arc<Toolbox>> {
        self.toolbox.clone()
    }
}

/// Starts to load the directory and to follow its changes, until `shutdown`.
pub fn open(settings: ToolboxSettings, prober: Prober, shutdown: CancellationToken) -> ToolboxHandle {
    let (tx, toolbox) = watch::channel(Arc::new(Toolbox {
        directory: settings.directory.clone(),
        ..Toolbox::default()
    }));
    let (again, asked_again) = mpsc::channel(1);
    let keeper = Keeper {
        source: Source::new(&settings.directory),
        settings,
        prober,
        shelf: Shelf::default(),
        stock: Stock::default(),
        directory_problem: None,
        catalog: Catalog::default(),
        answers: HashMap::new(),
        probing: JoinSet::new(),
        asked: HashSet::new(),
        at_once: Arc::new(Semaphore::new(PROBES_AT_ONCE)),
        loads: 0,
        asked_again,
        waiting: Vec::new(),
        tx,
    };
    tokio::spawn(async move {
        tokio::select! {
            () = keeper.keep() => {}
            () = shutdown.cancelled() => {}
        }
    });
    ToolboxHandle { toolbox, again }
}

/// Probes wait for disks more than they compute, but a hundred at once would only be in each other's way.
const PROBES_AT_ONCE: usize = 8;

struct Keeper {
    settings: ToolboxSettings,
    source: Source,
    prober: Prober,
    shelf: Shelf,
    stock: Stock,
    directory_problem: Option<String>,
    catalog: Catalog,
    /// What probes have found, each distinct one once.
    answers: HashMap<Arc<Probe>, Answer>,
    probing: JoinSet<(Arc<Probe>, Answer)>,
    /// Probes under way.
    asked: HashSet<Arc<Probe>>,
    at_once: Arc<Semaphore>,
    loads: u64,
    asked_again: mpsc::Receiver<LookAgain>,
    /// Who asked for another look, and waits for what comes of it.
    waiting: Vec<Waiting>,
    tx: watch::Sender<Arc<Toolbox>>,
}

/// Somebody who waits until none of these probes is under way.
struct Waiting {
    probes: Vec<Arc<Probe>>,
    done: oneshot::Sender<()>,
}

impl Keeper {
    async fn keep(mut self) {
        let mut watch = self.settings.reload.then(|| self.watch()).flatten();
        loop {
            if let Some(watch) = &mut watch
                && let Err(error) = watch.arm().await
            {
                tracing::warn!(%error, "changes of the tools directory may go unnoticed");
            }
            self.load().await;
            self.publish();
            self.answer_until_change(watch.as_ref()).await;
        }
    }

    /// Takes in what probes find until the directory changes.
    async fn answer_until_change(&mut self, watch: Option<&DirectoryWatch>) {
        let changed = async {
            match watch {
                Some(watch) => watch.changed().await,
                None => std::future::pending().await,
            }
        };
        // One future for the whole time: a new one would forget a change that is still settling.
        let mut changed = std::pin::pin!(changed);
        loop {
            tokio::select! {
                () = &mut changed => return,
                Some(LookAgain { tool, done }) = self.asked_again.recv() => {
                    let probes = self.look_again(&tool);
                    self.waiting.push(Waiting { probes, done });
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

    fn watch(&self) -> Option<DirectoryWatch> {
        DirectoryWatch::new(self.settings.directory.clone())
            .inspect_err(|error| tracing::warn!(%error, "changes of the tools directory will go unnoticed"))
            .ok()
    }

    async fn load(&mut self) {
        let found = self.source.read().await;
        self.directory_problem = match &found {
            Directory::Files(_) => None,
            Directory::Missing => Some("it does not exist".to_owned()),
            Directory::Unreadable(reason) => Some(format!("it cannot be read: {reason}")),
        };
        let files = match found {
            Directory::Files(files) => files,
            Directory::Missing | Directory::Unreadable(_) => Vec::new(),
        };
        let mut shelf = std::mem::take(&mut self.shelf);
        // A thousand files take a while to check; answers to clients must not wait for that.
        let restocked = tokio::task::spawn_blocking(move || {
            let stock = shelf.restock(files);
            (shelf, stock)
        });
        match restocked.await {
            Ok((shelf, stock)) => (self.shelf, self.stock) = (shelf, stock),
            Err(error) => tracing::error!(%error, "tool files could not be checked"),
        }
        self.catalog = Catalog::build(&self.stock.tools, self.settings.catalog);
        self.loads += 1;
        self.log(&self.settings.directory);
        self.ask_probes();
    }

    fn log(&self, directory: &Path) {
        let directory = directory.display();
        match &self.directory_problem {
            Some(problem) => tracing::warn!(%directory, "no tool files: {problem}"),
            None => {
                tracing::info!(%directory, files = self.stock.tools.len(), tools = self.catalog.len(), "tool files loaded")
            }
        }
        for problem in &self.stock.problems {
            tracing::warn!("{problem}");
        }
        for file in &self.stock.stale {
            tracing::warn!(file, "the last good version of the file stays in use");
        }
    }

    /// Asks what is not known, and what was missing, which may have been installed since. Until new answers come, the old
    /// ones hold.
    fn ask_probes(&mut self) {
        if !self.settings.probes {
            return;
        }
        let wanted = self.catalog.tools().flat_map(|tool| tool.probes.clone());
        let wanted: HashSet<_> = wanted.collect();
        self.answers.retain(|probe, _| wanted.contains(probe));
        for probe in wanted {
            if self.answers.get(&probe).is_none_or(Result::is_err) {
                self.ask(probe);
            }
        }
    }

    /// Gives the probes whose answers will say more.
    fn look_again(&mut self, tool: &str) -> Vec<Arc<Probe>> {
        let probes = self.catalog.get(tool).map(|tool| tool.probes.clone());
        let probes = probes.unwrap_or_default();
        for probe in &probes {
            if self.answers.get(probe).is_some_and(Result::is_err) {
                self.ask(probe.clone());
            }
        }
        probes
    }

    fn ask(&mut self, probe: Arc<Probe>) {
        if !self.asked.insert(probe.clone()) {
            return;
        }
        let (prober, scope, at_once) = (
            self.prober.clone(),
            self.settings.scope.clone(),
            self.at_once.clone(),
        );
        self.probing.spawn(async move {
            let _turn = at_once.acquire().await;
            let answer = prober.ask(&scope, &probe).await;
            (probe, answer)
        });
    }

    fn answer_waiting(&mut self) {
        let asked = &self.asked;
        let is_answered = |waiting: &mut Waiting| !waiting.probes.iter().any(|probe| asked.contains(probe));
        for Waiting { done, .. } in self.waiting.extract_if(.., is_answered) {
            // Whoever asked may be gone.
            let _ = done.send(());
        }
    }

    /// Whether it changes what is known; a tool counts as available until its probe says otherwise.
    fn note(&mut self, probe: Arc<Probe>, answer: Answer) -> bool {
        self.asked.remove(&probe);
        let before = self.answers.get(&probe).unwrap_or(&Ok(()));
        if *before == answer {
            self.answers.insert(probe, answer);
            return false;
        }
        if let Err(reason) = &answer {
            let tools = self.catalog.tools().filter(|tool| tool.probes.contains(&probe));
            let tools: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
            tracing::warn!("not available: {}: {reason}", tools.join(", "));
        }
        self.answers.insert(probe, answer);
        true
    }

    fn publish(&self) {
        let reason = |tool: &Tool| {
            tool.probes
                .iter()
                .find_map(|probe| self.answers.get(probe)?.as_ref().err().cloned())
        };
        let unavailable: Vec<Unavailable> = (self.catalog.tools())
            .filter_map(|tool| Some(Unavailable::new(tool, reason(tool)?)))
            .collect();
        let missing: HashSet<&str> = unavailable.iter().map(|tool| tool.tool.as_str()).collect();
        let toolbox = Toolbox {
            offered: self
                .catalog
                .filtered(|tool| !missing.contains(tool.name.as_str())),
            catalog: self.catalog.clone(),
            problems: self.stock.problems.clone(),
            stale: self.stock.stale.clone(),
            directory: self.settings.directory.clone(),
            directory_problem: self.directory_problem.clone(),
            probing: self
                .asked
                .iter()
                .filter(|probe| !self.answers.contains_key(*probe))
                .count(),
            loads: self.loads,
            unavailable,
        };
        self.tx.send_replace(Arc::new(toolbox));
    }
}
