//! Sets up the sandbox: from settings to a launcher that starts commands in it.
//!
//! [`begin_sandbox`] must be called before any thread exists, because it starts the helper process; the rest may be done in
//! any thread, and is done while clients are greeted. One of many servers starts the helper process later too, as it would
//! replace one that died.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::{Notify, watch};

use super::{
    exit::{Exit, Failure},
    private_dir::PrivateDir,
    sandbox_failures::{
        failed_self_test, no_jail, no_sandbox, reachable_files, readable_secrets, unusable_policy,
    },
    scope::exchanged,
    settings::Settings,
};
use crate::{
    jail::{Jail, program::DEFAULT_PATH},
    mcp::SandboxNote,
    sandbox::{
        Host, Network, Platform, Policy, Probe, SandboxReport, SandboxSettings, Tier, assemble, exposed,
        held, places_of_keys, real_path, sensitive_places,
    },
    shell::{self, Launcher, LauncherSettings, PoolSettings, SeatbeltSettings, TierChoice},
    toolbox::AvailabilityChecker,
};

/// The program of the jail, which is this one. On Linux a link that is valid even after the file was replaced.
fn this_program() -> Result<PathBuf, Failure> {
    match Platform::HERE {
        Platform::Linux => Ok("/proc/self/exe".into()),
        Platform::MacOs => std::env::current_exe()
            .map_err(|error| Failure::internal("the path of this program cannot be found", &error)),
    }
}

/// Processes that one operation may have at once; a large build stays well below.
const MAX_PROCESSES: u32 = 4096;

/// The largest file a command may write.
const MAX_FILE_BYTES: u64 = 16 << 30;

/// Name of the state directory where the usual one is open to commands.
const STATE: &str = "state";

/// Shells in the order they are preferred. By absolute path: PATH may lead into the scope.
const SHELLS: [&str; 4] = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh"];

/// A sandbox that is set up.
#[derive(Debug)]
pub(crate) struct ActiveSandbox {
    pub(crate) launcher: Launcher,
    pub(crate) prober: AvailabilityChecker,
    pub(crate) note: SandboxNote,
    /// For what outlives an operation; out of reach of commands.
    pub(crate) state_dir: PathBuf,
    private: PrivateDir,
}

impl ActiveSandbox {
    /// Runs the self-test.
    pub(crate) async fn prove(&self) -> Result<Vec<Probe>, Failure> {
        let proven = shell::prove(&self.launcher).await;
        proven.map_err(|error| failed_self_test(&error, self.launcher.tier()))
    }

    /// The enforced rules, and the results of the self-test.
    pub(crate) fn report(&self, probes: Vec<Probe>) -> SandboxReport {
        let launcher = &self.launcher;
        let (tier, landlock_abi) = (launcher.tier(), launcher.landlock_abi());
        SandboxReport::new(tier, landlock_abi, launcher.policy(), probes)
    }

    /// A directory for temporary files of this user's servers, out of reach of commands.
    pub(crate) fn own_temp(&self) -> &Path {
        self.private.base()
    }

    /// Ends every process in the sandbox and removes its directory. Waits for checks whose results are still needed.
    pub(crate) async fn shut_down(self) {
        drop(self.end_processes().await);
    }

    /// Ends every process in the sandbox; its directory is empty then, and out of reach of later commands.
    pub(crate) async fn end_processes(self) -> PrivateDir {
        self.prober.ended().await;
        self.launcher.shutdown().await;
        self.private
    }
}

/// A sandbox that is not set up yet.
#[derive(Debug)]
pub(crate) enum PendingSandbox {
    /// Its helper process is loading. Dropping it ends that.
    Loading(Jail),
    /// Nothing of it exists.
    Postponed,
}

/// Starts the helper process, which must be done before there are threads. One of many servers starts none before it needs
/// a sandbox.
pub(crate) fn begin_sandbox(settings: &Settings) -> Result<PendingSandbox, Failure> {
    // Commands run as the same user. This hides our environment and memory from them even if the sandbox fails.
    held::close_process_to_others()
        .map_err(|error| Failure::internal("the process cannot be closed to others", &error))?;
    match settings.sandbox.one_of_many {
        true => Ok(PendingSandbox::Postponed),
        false => start_helper().map(PendingSandbox::Loading),
    }
}

fn start_helper() -> Result<Jail, Failure> {
    Jail::start(&this_program()?).map_err(|error| no_jail(&error))
}

pub(crate) fn start_sandbox(settings: &Settings) -> Result<ActiveSandbox, Failure> {
    begin_sandbox(settings)?.finish(settings)
}

impl PendingSandbox {
    /// Sets it up. Blocks for some milliseconds; may be called in any thread.
    pub(crate) fn finish(self, settings: &Settings) -> Result<ActiveSandbox, Failure> {
        let helper = match self {
            Self::Loading(helper) => helper,
            Self::Postponed => start_helper()?,
        };
        set_up(helper, settings)
    }
}

/// The policy that the settings ask for. Refuses one that exposes files which commands must not reach.
fn checked_policy(settings: &Settings, host: &Host, private: &Path) -> Result<Policy, Failure> {
    let asked = &settings.sandbox;
    let request = SandboxSettings {
        scope: asked.scope.clone(),
        private: private.to_owned(),
        network: asked.network.clone(),
        allow_read: asked.allow_read.clone(),
        allow_write: asked.allow_write.clone(),
        allow_tmp: asked.allow_tmp,
        toolchains: asked.toolchains.clone(),
        trust_workspace_config: asked.trust_workspace_config,
        tools_dir: settings.tools_dir.clone(),
        also_protected: remote_file(settings).into_iter().collect(),
    };
    let policy = assemble(&request, host).map_err(unusable_policy)?;
    // From here on the helper follows no link on the way to the scope.
    if policy.scope != asked.scope {
        return Err(exchanged(&asked.scope, &policy.scope));
    }
    if asked.deny_sensitive_reads
        && let Some(home) = &host.home
        && let Some(found) = exposed(&policy, sensitive_places(home))
    {
        return Err(readable_secrets(&found));
    }
    if runs_confined(settings)
        && let Some(found) = exposed(&policy, asked.out_of_reach.iter().cloned())
    {
        return Err(reachable_files(&found));
    }
    Ok(policy)
}

fn set_up(helper: Jail, settings: &Settings) -> Result<ActiveSandbox, Failure> {
    let asked = &settings.sandbox;
    let open = open_to_commands(settings);
    let private = PrivateDir::create(&private_base(&open)?)?;
    let variables: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let host = Host {
        platform: Platform::HERE,
        home: variables.get("HOME").map(PathBuf::from),
        path: variables.get("PATH").cloned().unwrap_or_default(),
        variables: variables.clone(),
    };
    let policy = checked_policy(settings, &host, private.path())?;
    let state_dir = state_dir(settings, &policy, &open, &private);
    let launcher = LauncherSettings {
        helper: this_program()?,
        policy,
        tier: asked.tier,
        proven: asked.proven,
        shell: shell_path(settings)?,
        variables,
        pass_variables: asked.pass_env.clone(),
        pool: match asked.one_of_many {
            true => PoolSettings::on_demand(),
            false => PoolSettings::default(),
        },
        max_processes: MAX_PROCESSES,
        max_file_bytes: MAX_FILE_BYTES,
        quarantine: state_dir.join("quarantine"),
        seatbelt: SeatbeltSettings {
            stand_in: asked.sandbox_exec.clone(),
            closed: match &host.home {
                Some(home) if asked.deny_sensitive_reads => places_of_keys(home),
                Some(_) | None => Vec::new(),
            },
        },
    };
    let launcher =
        Launcher::start_with(helper, launcher).map_err(|error| no_sandbox(error, &asked.network))?;
    let policy = launcher.policy();
    let note = note(launcher.tier(), &policy.scope, &policy.network);
    Ok(ActiveSandbox {
        prober: AvailabilityChecker::new(launcher.clone()),
        launcher,
        note,
        state_dir,
        private,
    })
}

/// An availability checker for a sandbox that is not set up yet.
pub(crate) fn early_checker(
    settings: &Settings,
    launcher: watch::Receiver<Option<Launcher>>,
    needed: Arc<Notify>,
) -> AvailabilityChecker {
    let search_path = std::env::var("PATH").unwrap_or_else(|_| DEFAULT_PATH.to_owned());
    let checker = AvailabilityChecker::before_sandbox(launcher, needed, search_path);
    // A scope around it would let commands write there.
    let open = open_to_commands(settings);
    let shared = settings.sandbox.shared_checks.clone();
    match shared.filter(|directory| is_closed(directory, &open)) {
        Some(directory) => checker.sharing(directory),
        None => checker,
    }
}

/// The sandbox as clients see it. That of a front end confines nothing: commands run on workers.
pub(crate) fn note_for_clients(settings: &Settings, own: SandboxNote) -> SandboxNote {
    match settings.pool() {
        Some(pool) => SandboxNote {
            warning: None,
            pool: Some(pool),
            ..own
        },
        None => own,
    }
}

/// The note for clients before the sandbox is set up. Its tier may turn out to be another, which makes no difference to them.
pub(crate) fn expected_note(settings: &Settings) -> SandboxNote {
    let asked = &settings.sandbox;
    let tier = match asked.tier {
        TierChoice::Only(tier) => tier,
        TierChoice::Highest => asked.proven.unwrap_or(match Platform::HERE {
            Platform::Linux => Tier::Full,
            Platform::MacOs => Tier::Seatbelt,
        }),
    };
    note(tier, &asked.scope, &asked.network)
}

/// The file of remote servers, which names programs that run outside the sandbox.
fn remote_file(settings: &Settings) -> Option<PathBuf> {
    let _ = settings;
    #[cfg(feature = "client")]
    return settings.remote.file.as_ref().map(|file| file.path.clone());
    #[cfg(not(feature = "client"))]
    None
}

fn runs_confined(settings: &Settings) -> bool {
    let asked = &settings.sandbox;
    !asked.deferred && asked.tier != TierChoice::Only(Tier::Off)
}

/// Paths that the user opened to commands. Empty where no command is confined, or none runs.
fn open_to_commands(settings: &Settings) -> Vec<PathBuf> {
    let asked = &settings.sandbox;
    if !runs_confined(settings) {
        return Vec::new();
    }
    let temp = asked.allow_tmp.then(|| PathBuf::from("/tmp"));
    std::iter::once(&asked.scope)
        .chain(&asked.allow_read)
        .chain(&asked.allow_write)
        .chain(&temp)
        .map(|path| real_path(path))
        .collect()
}

fn is_closed(directory: &Path, open: &[PathBuf]) -> bool {
    let directory = real_path(directory);
    !open.iter().any(|path| directory.starts_with(path))
}

/// Parent of the private directory: the usual temporary directory, unless that is open to commands.
fn private_base(open: &[PathBuf]) -> Result<PathBuf, Failure> {
    let temp = std::env::temp_dir();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let alternatives = [Some("/var/tmp".into()), runtime].into_iter().flatten();
    std::iter::once(temp.clone())
        .chain(alternatives.filter(|place| place.is_absolute() && place.is_dir()))
        .find(|place| is_closed(place, open))
        .ok_or_else(|| {
            Failure::user(format!(
                "the server's own files would be open to commands: {} lies in what they may read or write",
                temp.display()
            ))
            .with_hint(
                "set TMPDIR to a directory outside of it, or open less with --allow-read and --allow-write",
            )
        })
}

/// The directory for state. Commands must not reach the output of others, so it is not in a home that is open to them.
fn state_dir(settings: &Settings, policy: &Policy, open: &[PathBuf], private: &PrivateDir) -> PathBuf {
    let is_out_of_reach = |directory: &PathBuf| {
        let is_granted = || exposed(policy, [directory.clone()]).is_some();
        is_closed(directory, open) && !(runs_confined(settings) && is_granted())
    };
    let usual = settings.state_dir.clone();
    usual.filter(is_out_of_reach).unwrap_or_else(|| {
        let lasting = lasting_bases().into_iter().find(|place| is_closed(place, open));
        let own = lasting.and_then(|place| PrivateDir::create_base(&place).ok());
        own.unwrap_or_else(|| private.base().to_owned()).join(STATE)
    })
}

/// Directories for state that has no place in the home directory, first those that survive a restart of the machine.
fn lasting_bases() -> Vec<PathBuf> {
    let chosen = std::env::var_os("TMPDIR").map(|chosen| vec![chosen.into()]);
    let mut places = chosen.unwrap_or_else(|| vec!["/var/tmp".into(), "/tmp".into()]);
    places.retain(|place: &PathBuf| place.is_absolute() && place.is_dir());
    places
}

/// All state directories in which servers of this user keep a history.
pub(crate) fn history_places(settings: &Settings) -> Vec<PathBuf> {
    let elsewhere = lasting_bases().into_iter().filter_map(|place| {
        let base = PrivateDir::base_in(&place);
        PrivateDir::is_own(&base).then(|| base.join(STATE))
    });
    settings.state_dir.clone().into_iter().chain(elsewhere).collect()
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

fn note(tier: Tier, scope: &Path, network: &Network) -> SandboxNote {
    SandboxNote {
        tier: tier.name().to_owned(),
        scope: scope.to_owned(),
        network: match network {
            Network::Open => "open".to_owned(),
            _ if tier == Tier::Off => "open".to_owned(),
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
        pool: None,
    }
}
