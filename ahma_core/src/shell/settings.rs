//! Settings of a launcher, and what the jail is told of them.

use std::{collections::BTreeMap, path::PathBuf};

pub use super::pool::PoolSettings;
use crate::{
    jail::{
        VERSION,
        wire::{Configure, SeatbeltConfigure},
    },
    sandbox::{
        Platform, Policy, Tier, environment, real_path,
        seatbelt::{self, ClosedReads},
    },
};

/// Settings of a [`Launcher`](super::Launcher).
#[derive(Debug, Clone)]
pub struct LauncherSettings {
    /// The program to start as the jail, usually `/proc/self/exe`. Its `main` must begin with
    /// [`crate::jail::run_if_asked`].
    pub helper: PathBuf,
    pub policy: Policy,
    pub tier: TierChoice,
    /// A tier that has just been seen working here with the same settings.
    pub proven: Option<Tier>,
    /// Absolute path of the shell.
    pub shell: PathBuf,
    /// The server's environment, of which commands get what [`crate::sandbox::environment`] picks.
    pub variables: BTreeMap<String, String>,
    /// Variables that the user passes on.
    pub pass_variables: Vec<String>,
    pub pool: PoolSettings,
    /// Limit of processes and threads of one operation.
    pub max_processes: u32,
    /// The largest file a command may write.
    pub max_file_bytes: u64,
    /// Directory for what the guard removes.
    pub quarantine: PathBuf,
    pub seatbelt: SeatbeltSettings,
}

/// Settings that only macOS uses, and tests of its way on other systems.
#[derive(Debug, Clone, Default)]
pub struct SeatbeltSettings {
    /// A program that takes the place of `sandbox-exec`.
    pub stand_in: Option<PathBuf>,
    /// Places that commands may not read, whatever opens them.
    pub closed: Vec<PathBuf>,
}

/// By absolute path: PATH may lead into the scope.
const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// The tier to set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TierChoice {
    /// The highest that works here.
    Highest,
    Only(Tier),
}

impl TierChoice {
    /// The tiers to try, in order.
    pub(super) fn candidates(self) -> Vec<Tier> {
        match self {
            Self::Highest => match Platform::HERE {
                Platform::Linux => vec![Tier::Full, Tier::Core],
                Platform::MacOs => vec![Tier::Seatbelt],
            },
            Self::Only(tier) => vec![tier],
        }
    }
}

impl LauncherSettings {
    pub(super) fn configure(&self, tier: Tier) -> Configure {
        let temp = self.policy.visible_temp(tier);
        let environment = environment(
            self.variables.clone(),
            &self.pass_variables,
            &temp,
            Platform::HERE,
        );
        Configure {
            policy: self.policy.clone(),
            tier,
            rehearse: self.proven != Some(tier),
            shell: self.shell.clone(),
            environment: environment.into_iter().collect(),
            max_processes: self.max_processes,
            max_file_bytes: self.max_file_bytes,
            seatbelt: self.seatbelt(tier),
            version: VERSION.to_owned(),
        }
    }

    fn seatbelt(&self, tier: Tier) -> Option<SeatbeltConfigure> {
        let is_used = match tier {
            Tier::Seatbelt => true,
            // Without a sandbox commands are started and ended in the same way.
            Tier::Off => Platform::HERE == Platform::MacOs || self.seatbelt.stand_in.is_some(),
            Tier::Full | Tier::Core => false,
        };
        if !is_used {
            return None;
        }
        // Without links: it is started from inside the sandbox, where `/proc/self/exe` would be another program.
        let program = self.helper.canonicalize().unwrap_or_else(|_| self.helper.clone());
        let home = self.variables.get("HOME").map(PathBuf::from);
        let closed = ClosedReads {
            home: home.map(|home| real_path(&home)),
            sensitive: self.seatbelt.closed.clone(),
        };
        let stand_in = self.seatbelt.stand_in.clone();
        Some(SeatbeltConfigure {
            sandbox_exec: stand_in.unwrap_or_else(|| SANDBOX_EXEC.into()),
            profile: seatbelt::profile(&self.policy, &closed, &program),
            program,
        })
    }
}
