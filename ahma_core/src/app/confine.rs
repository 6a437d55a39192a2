//! Puts the wall up: from settings to a launcher behind which commands run.
//!
//! Must be called before any thread exists, because the helper process is started from here.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    exit::{Exit, Failure, chain},
    places::PrivateDir,
    settings::Settings,
};
use crate::{
    mcp::SandboxNote,
    sandbox::{Host, Network, PolicyError, Probe, SandboxSettings, Tier, assemble},
    shell::{self, Launcher, LauncherSettings, PoolSettings, StartError},
};

/// Processes that one operation may have at once; a large build stays well below.
const MAX_PROCESSES: u32 = 4096;

/// The largest file a command may write.
const MAX_FILE_BYTES: u64 = 16 << 30;

/// Shells in the order they are preferred. By absolute path: PATH may lead into the scope.
const SHELLS: [&str; 4] = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh"];

/// A standing wall.
#[derive(Debug)]
pub(crate) struct Wall {
    pub(crate) launcher: Launcher,
    pub(crate) note: SandboxNote,
    /// For what outlives an operation; out of reach of commands.
    pub(crate) state_dir: PathBuf,
    private: PrivateDir,
}

impl Wall {
    /// Tries to get out from behind the wall. A wall that leaks ends the start.
    pub(crate) async fn prove(&self) -> Result<Vec<Probe>, Failure> {
        shell::prove(&self.launcher).await.map_err(|error| {
            Failure::new(Exit::MissingPrerequisite, chain(&error)).with_hint(
                "please report this with the output of uname -a; --sandbox-tier core tries another way, and \
                 --no-sandbox runs commands without a sandbox",
            )
        })
    }

    /// Ends every process behind the wall and removes its directory.
    pub(crate) async fn take_down(self) {
        self.launcher.shutdown().await;
        drop(self.private);
    }
}

pub(crate) fn confine(settings: &Settings) -> Result<Wall, Failure> {
    // Commands run as the same user; this keeps our environment and memory from them whatever else may fail.
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(|error| Failure::internal("the process cannot be closed to others", &error))?;
    let asked = &settings.sandbox;
    let private = PrivateDir::create(&std::env::temp_dir())?;
    let state_dir = state_dir(settings, &private);
    let variables: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let host = Host {
        home: variables.get("HOME").map(PathBuf::from),
        path: variables.get("PATH").cloned().unwrap_or_default(),
        variables: variables.clone(),
    };
    let request = SandboxSettings {
        scope: asked.scope.clone(),
        private: private.path().to_owned(),
        network: asked.network.clone(),
        allow_read: asked.allow_read.clone(),
        allow_write: asked.allow_write.clone(),
        allow_tmp: asked.allow_tmp,
        toolchains: asked.toolchains.clone(),
        trust_workspace_config: asked.trust_workspace_config,
        tools_dir: settings.tools_dir.clone(),
    };
    let policy = assemble(&request, &host).map_err(unusable_policy)?;
    let launcher = Launcher::start(LauncherSettings {
        helper: "/proc/self/exe".into(),
        policy,
        tier: asked.tier,
        shell: shell_path(settings)?,
        variables,
        pass_variables: asked.pass_env.clone(),
        pool: PoolSettings::default(),
        max_processes: MAX_PROCESSES,
        max_file_bytes: MAX_FILE_BYTES,
        quarantine: state_dir.join("quarantine"),
    })
    .map_err(no_wall)?;
    let note = note(&launcher);
    Ok(Wall {
        launcher,
        note,
        state_dir,
        private,
    })
}

/// Commands must not reach what others printed, so a home that is open to them is no place for it.
fn state_dir(settings: &Settings, private: &PrivateDir) -> PathBuf {
    let open = std::iter::once(&settings.sandbox.scope)
        .chain(&settings.sandbox.allow_read)
        .chain(&settings.sandbox.allow_write);
    let is_closed = |directory: &PathBuf| !open.clone().any(|path| directory.starts_with(path));
    settings
        .state_dir
        .clone()
        .filter(is_closed)
        .unwrap_or_else(|| private.base().join("state"))
}

fn shell_path(settings: &Settings) -> Result<PathBuf, Failure> {
    match &settings.execution.shell {
        Some(shell) if shell.is_file() => Ok(shell.clone()),
        Some(shell) => Err(
            Failure::user(format!("--shell {} does not exist", shell.display()))
                .with_hint("leave it out, or give the absolute path of bash or sh"),
        ),
        None => SHELLS
            .iter()
            .map(Path::new)
            .find(|shell| shell.is_file())
            .map(Path::to_owned)
            .ok_or_else(|| {
                Failure::new(Exit::MissingPrerequisite, "neither bash nor /bin/sh was found")
                    .with_hint("install bash, or give the absolute path of a shell with --shell")
            }),
    }
}

fn unusable_policy(error: PolicyError) -> Failure {
    Failure::user(chain(&error)).with_hint("give a path that exists and that you can read")
}

fn no_wall(error: StartError) -> Failure {
    match &error {
        StartError::NoTier { .. } => Failure::new(Exit::MissingPrerequisite, chain(&error)).with_hint(
            "a kernel with Landlock is needed: 6.2 where user namespaces are allowed, 6.12 elsewhere; inside another sandbox that you \
             trust, --no-sandbox or AHMA_NO_SANDBOX=1 runs commands without one",
        ),
        StartError::Jail(_) => Failure::internal("the helper process that starts commands does not work", &error),
    }
}

fn note(launcher: &Launcher) -> SandboxNote {
    let tier = launcher.tier();
    let policy = launcher.policy();
    SandboxNote {
        tier: tier.name().to_owned(),
        scope: policy.scope.clone(),
        network: match &policy.network {
            _ if tier == Tier::Off => "open".to_owned(),
            Network::Open => "open".to_owned(),
            Network::Loopback => "loopback".to_owned(),
            Network::Off => "off".to_owned(),
            Network::Ports(ports) => {
                let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
                format!("ports {}", ports.join(", "))
            }
        },
        warning: (tier == Tier::Off).then(|| {
            "NO SANDBOX: commands run with all rights of the user who started the server".to_owned()
        }),
    }
}
