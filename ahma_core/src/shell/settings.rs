//! Settings of a launcher, and what the jail is told of them.

use std::{collections::BTreeMap, path::PathBuf};

pub use super::pool::PoolSettings;
use crate::{
    jail::wire::Configure,
    sandbox::{Policy, Tier, environment},
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
}

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
            Self::Highest => vec![Tier::Full, Tier::Core],
            Self::Only(tier) => vec![tier],
        }
    }
}

impl LauncherSettings {
    pub(super) fn configure(&self, tier: Tier) -> Configure {
        let temp = self.policy.visible_temp(tier);
        let environment = environment(self.variables.clone(), &self.pass_variables, &temp);
        Configure {
            policy: self.policy.clone(),
            tier,
            rehearse: self.proven != Some(tier),
            shell: self.shell.clone(),
            environment: environment.into_iter().collect(),
            max_processes: self.max_processes,
            max_file_bytes: self.max_file_bytes,
        }
    }
}
