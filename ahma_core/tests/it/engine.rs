//! A real engine on a real launcher, in directories that go away.

#![expect(clippy::unwrap_used, reason = "in a helper of tests, a panic is the report")]

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use ahma_core::{
    call::{Command, CommandPlan, ExecutionMode, Lifetime, Program, Sequence, SequenceStep, Work},
    operation::{Engine, EngineSettings, Operation},
    sandbox::Tier,
    shell::{Launcher, TierChoice},
};
use tempfile::TempDir;

use crate::launchers::TestLauncher;

pub(crate) struct TestEngine {
    pub(crate) engine: Engine,
    launcher: Launcher,
    scope: TempDir,
    private: TempDir,
    state: TempDir,
}

impl TestEngine {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// An engine whose settings are changed by `adjust`.
    pub(crate) fn with(adjust: impl FnOnce(&mut EngineSettings)) -> Self {
        Self::in_tier(TierChoice::Highest, adjust)
    }

    /// An engine whose commands can see and signal their owner.
    pub(crate) fn unconfined() -> Self {
        Self::in_tier(TierChoice::Only(Tier::Off), |_| {})
    }

    fn in_tier(tier: TierChoice, adjust: impl FnOnce(&mut EngineSettings)) -> Self {
        let TestLauncher {
            launcher,
            scope,
            private,
        } = TestLauncher::start(tier);
        let state = tempfile::tempdir().unwrap();
        tokio::spawn(launcher.clone().keep_pools_filled());
        let mut settings = EngineSettings::new(state.path());
        adjust(&mut settings);
        let engine = Engine::new(launcher.clone(), settings);
        Self {
            engine,
            launcher,
            scope,
            private,
            state,
        }
    }

    pub(crate) fn scope(&self) -> &Path {
        self.scope.path()
    }

    pub(crate) fn temp(&self) -> PathBuf {
        self.private.path().join("tmp")
    }

    pub(crate) fn plan(&self, work: Work) -> CommandPlan {
        CommandPlan {
            tool: "test".into(),
            work,
            mode: ExecutionMode::Asynchronous,
            timeout: Duration::from_secs(600),
            lifetime: Lifetime::Finite,
            directory: self.scope().to_owned(),
        }
    }

    /// Starts a shell script.
    pub(crate) fn start(&self, text: &str) -> Operation {
        self.engine.start(self.plan(Work::Command(script(text))))
    }

    pub(crate) fn start_with_timeout(&self, text: &str, timeout: Duration) -> Operation {
        let plan = self.plan(Work::Command(script(text)));
        self.engine.start(CommandPlan { timeout, ..plan })
    }

    pub(crate) fn start_sequence(&self, steps: Vec<SequenceStep>, delay: Duration) -> Operation {
        self.engine
            .start(self.plan(Work::Sequence(Sequence { steps, delay })))
    }

    pub(crate) fn start_sequence_for(&self, steps: Vec<SequenceStep>, timeout: Duration) -> Operation {
        let delay = Duration::ZERO;
        let plan = self.plan(Work::Sequence(Sequence { steps, delay }));
        self.engine.start(CommandPlan { timeout, ..plan })
    }

    /// Names of everything below the state directory that holds output.
    pub(crate) fn spool_files(&self) -> Vec<String> {
        let mut names = Vec::new();
        for run_dir in std::fs::read_dir(self.state.path()).unwrap() {
            let Ok(files) = std::fs::read_dir(run_dir.unwrap().path()) else {
                continue;
            };
            names.extend(files.map(|file| file.unwrap().file_name().into_string().unwrap()));
        }
        names.retain(|name| name.starts_with("op_"));
        names
    }

    pub(crate) async fn shutdown(self) {
        self.engine.shutdown().await;
        self.launcher.shutdown().await;
    }
}

pub(crate) fn script(text: &str) -> Command {
    Command::new(Program::Script(text.to_owned()))
}

pub(crate) fn step(label: &str, text: &str) -> SequenceStep {
    SequenceStep {
        label: label.into(),
        description: None,
        command: script(text),
        skip: None,
        continue_on_failure: false,
        parallel: false,
    }
}

/// Waits until `condition` gives a value.
#[track_caller]
pub(crate) fn eventually<T>(
    what: &'static str,
    mut condition: impl FnMut() -> Option<T>,
) -> impl Future<Output = T> {
    let deadline = Instant::now() + test_support::TEST_TIMEOUT;
    async move {
        loop {
            if let Some(value) = condition() {
                return value;
            }
            assert!(Instant::now() < deadline, "gave up waiting for {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Processes on this machine whose environment holds `MARK=marker`.
pub(crate) fn marked_processes(marker: &str) -> Vec<i32> {
    let needle = format!("MARK={marker}");
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
                environ
                    .split(|byte| *byte == 0)
                    .any(|word| word == needle.as_bytes())
            })
        })
        .collect()
}
