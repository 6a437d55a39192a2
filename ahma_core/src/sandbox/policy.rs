//! The policy: what a command may read, write, run and reach, as data.
//!
//! It is computed once at start-up from the user's settings and is the same for every tier and platform. Nothing in
//! here enforces anything, and nothing inside the scope can widen it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything that is allowed. All else is closed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// Canonical; read and executed freely, and written but for [`Policy::protected`].
    pub scope: PathBuf,
    /// [`Access::Write`], except in a sandbox that only reads.
    pub scope_access: Access,
    /// The server's private directory on the host, 0700: temporary files, overlays, the mount point of the view.
    pub private: PathBuf,
    /// Paths that are open in addition to the scope and the temporary directory.
    pub grants: Vec<Grant>,
    /// The host's `/tmp` is open, or a part of what is, so the private one stands at its own place.
    pub host_temp: bool,
    /// Directories that commands may write, while the host's copy stays as it is. Read-only without namespaces.
    pub overlays: Vec<PathBuf>,
    /// The administrative directory of the scope, outside of it, if it is a linked git worktree.
    pub worktree: Option<PathBuf>,
    /// Files and directories in the scope, or in [`Policy::worktree`], that programs outside the sandbox would act on
    /// later.
    pub protected: Vec<PathBuf>,
    pub network: Network,
}

/// One path and what may be done with it and everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// As it was named, for people; links may be on the way.
    pub path: PathBuf,
    /// The path without links when the policy was made. This is what is opened, also when the sandbox is set up again: a
    /// link that has changed since does not decide.
    pub real: PathBuf,
    pub access: Access,
    /// For the report and for hints: why it is open.
    pub reason: String,
}

impl Grant {
    /// The reason for what every command needs of the system.
    pub(super) const OF_SYSTEM: &str = "system programs and libraries";
}

/// Access that a [`Grant`] gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    Read,
    ReadExecute,
    /// As the scope: everything but device nodes and device ioctls.
    Write,
}

/// Access of commands to the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    Open,
    /// Own loopback only; nothing leaves. Needs the full tier.
    Loopback,
    Off,
    /// TCP connections to these ports only.
    Ports(Vec<u16>),
}

/// Strength with which a policy is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Namespaces, mounts, Landlock, seccomp, no capabilities.
    Full,
    /// Landlock, seccomp, no capabilities.
    Core,
    /// Seatbelt, by `sandbox-exec`.
    Seatbelt,
    /// Nothing. Only on the user's explicit word.
    Off,
}

impl Tier {
    /// The name used on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Full => "full",
            Tier::Core => "core",
            Tier::Seatbelt => "seatbelt",
            Tier::Off => "off",
        }
    }
}

impl Policy {
    /// The commands' temporary directory on the host.
    pub fn temp(&self) -> PathBuf {
        self.private.join("tmp")
    }

    /// The same policy for commands that only read: nothing outside `private` can be written, nothing is reached over a
    /// network or a socket. The guard has nothing to do.
    #[must_use]
    pub fn read_only(&self, private: PathBuf) -> Self {
        let grants = self.grants.iter().cloned().map(|grant| Grant {
            access: grant.access.min(Access::ReadExecute),
            ..grant
        });
        Self {
            scope_access: Access::ReadExecute,
            private,
            grants: grants.collect(),
            worktree: None,
            protected: Vec::new(),
            network: Network::Off,
            ..self.clone()
        }
    }

    /// The real paths that commands can change on the host.
    pub fn writable(&self) -> impl Iterator<Item = PathBuf> {
        let grants = self.grants.iter().filter(|grant| grant.access == Access::Write);
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let others = grants.map(|grant| grant.path.clone()).chain([self.temp()]);
        // The scope is real already.
        let scope = (self.scope_access == Access::Write).then(|| self.scope.clone());
        scope.into_iter().chain(others.map(real))
    }

    /// The temporary directory as commands see it under `tier`.
    pub fn visible_temp(&self, tier: Tier) -> PathBuf {
        match tier {
            Tier::Full if !self.host_temp => PathBuf::from("/tmp"),
            Tier::Full | Tier::Core | Tier::Seatbelt | Tier::Off => self.temp(),
        }
    }
}
