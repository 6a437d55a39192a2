//! Real launchers for tests: a scope, a private directory and the jail of the built binary.

use std::{collections::BTreeMap, path::PathBuf};

use ahma_core::{
    sandbox::{Host, Network, Platform, SandboxSettings, Tier, Toolchains, assemble},
    shell::{Launcher, LauncherSettings, PoolSettings, SeatbeltSettings, TierChoice},
};
use tempfile::TempDir;

/// A launcher and the directories it lives on.
pub(crate) struct TestLauncher {
    pub(crate) launcher: Launcher,
    pub(crate) scope: TempDir,
    pub(crate) private: TempDir,
}

impl TestLauncher {
    pub(crate) fn start(tier: TierChoice) -> Self {
        let (settings, scope, private) = settings(tier);
        let launcher = Launcher::start(settings).unwrap();
        Self {
            launcher,
            scope,
            private,
        }
    }
}

/// The parameters of a launcher, and the directories: scope and private.
pub(crate) fn settings(tier: TierChoice) -> (LauncherSettings, TempDir, TempDir) {
    let [scope, private] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    std::fs::create_dir(private.path().join("tmp")).unwrap();
    let variables: BTreeMap<String, String> = std::env::vars().collect();
    let host = Host {
        platform: Platform::HERE,
        home: variables.get("HOME").map(PathBuf::from),
        path: variables.get("PATH").cloned().unwrap_or_default(),
        variables: variables.clone(),
    };
    let sandbox = SandboxSettings {
        scope: scope.path().to_owned(),
        private: private.path().to_owned(),
        network: Network::Open,
        allow_read: Vec::new(),
        allow_write: Vec::new(),
        allow_tmp: false,
        toolchains: Toolchains::Auto,
        trust_workspace_config: false,
        tools_dir: ".ahma/tools".into(),
        also_protected: Vec::new(),
    };
    let settings = LauncherSettings {
        helper: env!("CARGO_BIN_EXE_ahma_mcp").into(),
        policy: assemble(&sandbox, &host).unwrap(),
        tier,
        proven: None,
        shell: "/bin/bash".into(),
        variables,
        pass_variables: Vec::new(),
        pool: PoolSettings::default(),
        max_processes: 4096,
        max_file_bytes: 1 << 34,
        quarantine: private.path().join("quarantine"),
        seatbelt: match tier {
            TierChoice::Only(Tier::Seatbelt) => SeatbeltSettings {
                stand_in: Some(test_support::sandbox_exec().to_owned()),
                ..SeatbeltSettings::default()
            },
            TierChoice::Only(_) | TierChoice::Highest => SeatbeltSettings::default(),
        },
    };
    (settings, scope, private)
}
