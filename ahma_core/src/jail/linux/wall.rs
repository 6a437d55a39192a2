//! The sandbox as the jail prepares it once on Linux: the mount view, the Landlock rules, the filters.

use std::{
    io,
    path::{Path, PathBuf},
    rc::Rc,
};

use rustix::process::DumpableBehavior;

use super::{
    cgroup::{DelegatedCgroup, OperationCgroup},
    confine::{CommandFilters, LinuxConfinement},
    family::{LinuxFamily, Reach},
    notified_call,
    process_budget::ProcessBudget,
};
use crate::{
    jail::{
        wall::{Forked, forked},
        wire::{self, Configure},
    },
    sandbox::{
        Access, Network, Policy, Tier,
        linux::{
            landlock::{self, Rules, Ruleset},
            namespaces, privileges,
            seccomp::{self, UnixSockets},
        },
    },
};

/// A prepared sandbox. Copied by fork into every supervisor.
#[derive(Debug)]
pub(in crate::jail) struct LinuxWall {
    pub(super) tier: Tier,
    pub(super) max_processes: u32,
    /// A delegated cgroup: limits and kills an operation without a pid namespace.
    pub(super) cgroup: Option<DelegatedCgroup>,
    /// Shared, because copying them takes a while.
    pub(super) filters: Rc<CommandFilters>,
    /// Paths on which the broker makes calls for commands.
    allowed: AllowedPaths,
    pub(super) rules: Rc<Rules>,
    /// Built ahead where it is the same for every operation.
    ruleset: Option<Ruleset>,
}

impl LinuxWall {
    /// Confines the calling process as far as the jail itself can live with, and prepares the rest.
    pub(in crate::jail) fn build(configure: &Configure) -> Result<Self, String> {
        let Configure { policy, tier, .. } = configure;
        let tier = *tier;
        // What a killed supervisor leaves becomes a child of the jail.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| error.to_string())?;
        let abi = landlock::kernel_abi();
        if abi < landlock::least_abi(tier) {
            return Err(format!(
                "Landlock ABI {} is needed for the {} tier, this kernel has {abi}",
                landlock::least_abi(tier),
                tier.name()
            ));
        }
        if matches!(policy.network, Network::Ports(_)) && abi < landlock::LEAST_ABI_OF_PORTS {
            return Err(format!(
                "a list of ports needs Landlock ABI {}, this kernel has {abi}",
                landlock::LEAST_ABI_OF_PORTS
            ));
        }
        if tier == Tier::Core {
            if policy.network == Network::Loopback {
                return Err(
                    "--network loopback needs a network namespace, which only the full tier has".into(),
                );
            }
            children_are_listed()?;
        }
        if tier == Tier::Full {
            namespaces::enter(policy).map_err(|error| error.to_string())?;
        }
        let text = |error: io::Error| error.to_string();
        // Commands inherit them.
        privileges::lower_limits(configure.max_file_bytes).map_err(text)?;
        let rules = Rules::open(policy, tier).map_err(text)?;
        let ruleset = match tier {
            Tier::Core => Some(rules.build(None).map_err(text)?),
            // The full tier adds each operation's own `/proc`.
            Tier::Full | Tier::Seatbelt | Tier::Off => None,
        };
        if tier != Tier::Off {
            // Abstract ones are closed by Landlock, or are not there in a network namespace of its own.
            let own_network = matches!(policy.network, Network::Loopback | Network::Off);
            // A socket by path leads to a process that may write, also where the path is read-only.
            let is_writer = policy.scope_access == Access::Write;
            let unix_sockets = if tier == Tier::Full && is_writer && (abi >= 6 || own_network) {
                UnixSockets::Allowed
            } else {
                UnixSockets::Denied
            };
            // The jail keeps the capabilities that it has: nothing here is started by exec but commands.
            privileges::empty_bounding_set().map_err(text)?;
            for program in seccomp::inherited_filters(&policy.network, tier, unix_sockets).map_err(text)? {
                seccompiler::apply_filter(&program).map_err(|error| error.to_string())?;
            }
        }
        Ok(Self {
            tier,
            max_processes: configure.max_processes,
            cgroup: match tier {
                Tier::Core => DelegatedCgroup::find(),
                // A pid namespace does the same; without a sandbox a command could leave its cgroup.
                Tier::Full | Tier::Seatbelt | Tier::Off => None,
            },
            filters: Rc::new(CommandFilters {
                command: seccomp::command_filter(),
                notification: seccomp::notification_filter(&notified_call::numbers()).map_err(text)?,
            }),
            allowed: AllowedPaths::of(policy),
            rules: Rc::new(rules),
            ruleset,
        })
    }

    /// Makes once what every supervisor will make for itself. A tier that fails only there would be taken for one that
    /// works, and then refuse every command.
    pub(in crate::jail) fn rehearse(&mut self) -> Result<(), String> {
        use crate::jail::child;
        if self.tier != Tier::Full {
            return Ok(());
        }
        let text = |error: io::Error| error.to_string();
        let (ours, theirs) = wire::pair().map_err(text)?;
        let pid = match self.fork_supervisor().map_err(text)? {
            Forked::Supervisor => child::never_return(|| {
                let done = self.make_own_proc_and_ruleset().map_err(text);
                wire::send(&theirs, &done.map(drop), &[]).ok();
            }),
            Forked::Jail(pid) => pid,
        };
        drop(theirs);
        let done = wire::receive_short::<Result<(), String>>(&ours).map_err(text)?;
        rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()).ok();
        match done {
            Some((done, _)) => done,
            None => Err("the first process of a pid namespace died".to_owned()),
        }
    }

    /// Keeps others of the same user from looking into this process.
    pub(in crate::jail) fn seal(&self) -> io::Result<()> {
        Ok(rustix::process::set_dumpable_behavior(
            DumpableBehavior::NotDumpable,
        )?)
    }

    /// Forks the process that becomes a supervisor, in the full tier as the first one of a new pid namespace.
    pub(in crate::jail) fn fork_supervisor(&self) -> io::Result<Forked> {
        let namespaces = if self.tier == Tier::Full {
            libc::CLONE_NEWPID | libc::CLONE_NEWNS
        } else {
            0
        };
        // SAFETY: without CLONE_VM and with no new stack this is fork with namespaces; the process has one thread, so its
        // copy may run any code.
        forked(unsafe { libc::syscall(libc::SYS_clone, namespaces | libc::SIGCHLD, 0, 0, 0, 0) })
    }

    /// Makes what one operation needs besides what the jail has prepared. Called by its supervisor.
    pub(in crate::jail) fn open_operation(&mut self) -> io::Result<(LinuxFamily, LinuxConfinement)> {
        let ruleset = self.make_own_proc_and_ruleset()?;
        let mut cgroup = None;
        let mut process_limit = None;
        let (reach, budget) = if self.tier == Tier::Full {
            let (budget, limit) = ProcessBudget::of_namespace(self.max_processes);
            process_limit = Some(limit);
            (Reach::Namespace, budget)
        } else {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
            if let Some(parent) = &self.cgroup {
                cgroup = Some(parent.create(rustix::process::getpid(), self.max_processes)?);
                (Reach::Tree, ProcessBudget::Kernel)
            } else {
                (Reach::Tree, ProcessBudget::of_tree(self.max_processes))
            }
        };
        if self.tier == Tier::Core {
            // The broker must not be able to do more than the command.
            privileges::drop_capabilities()?;
        }
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        let (from_command, to_supervisor) = match self.tier {
            Tier::Core => {
                let (ours, theirs) = wire::pair()?;
                (Some((ours, self.allowed.clone())), Some(theirs))
            }
            Tier::Full | Tier::Seatbelt | Tier::Off => (None, None),
        };
        let confinement = LinuxConfinement {
            cgroup: cgroup.as_ref().map(OperationCgroup::path).map(Path::to_owned),
            process_limit,
            ruleset,
            filters: (self.tier != Tier::Off).then(|| Rc::clone(&self.filters)),
            to_supervisor,
        };
        Ok((LinuxFamily::new(reach, cgroup, budget, from_command), confinement))
    }

    fn make_own_proc_and_ruleset(&self) -> io::Result<Option<Ruleset>> {
        match (self.tier, &self.ruleset) {
            (Tier::Full, _) => {
                namespaces::mount_own_proc().map_err(|error| {
                    io::Error::new(error.kind(), format!("cannot mount a /proc of its own: {error}"))
                })?;
                Ok(Some(self.rules.build(Some(Path::new("/proc")))?))
            }
            (_, Some(ready)) => Ok(Some(ready.duplicate()?)),
            (_, None) => Ok(None),
        }
    }
}

/// Real paths that Landlock opens to commands.
#[derive(Debug, Clone)]
pub(in crate::jail) struct AllowedPaths {
    pub(super) writable: Vec<PathBuf>,
    pub(super) readable: Vec<PathBuf>,
}

impl AllowedPaths {
    fn of(policy: &Policy) -> Self {
        let temp = policy.temp();
        let own = [&temp];
        let granted = |allows: fn(Access) -> bool| {
            let grants = policy.grants.iter().filter(move |grant| allows(grant.access));
            grants.map(|grant| &grant.path)
        };
        // The scope is real already; a link in its place by now is an attempt to have another directory opened.
        let real = |paths: &mut dyn Iterator<Item = &PathBuf>| {
            let others = paths.filter_map(|path| path.canonicalize().ok());
            others.collect::<Vec<_>>()
        };
        let mut writable = real(&mut own.into_iter().chain(granted(|access| access == Access::Write)));
        let mut readable = real(&mut own.into_iter().chain(granted(|_| true)).chain(&policy.overlays));
        readable.push(policy.scope.clone());
        if policy.scope_access == Access::Write {
            writable.push(policy.scope.clone());
        }
        Self { writable, readable }
    }
}

/// Sweeping in the core tier reads these files; a kernel without them would leave processes behind.
fn children_are_listed() -> Result<(), String> {
    let pid = rustix::process::getpid();
    let path = format!("/proc/self/task/{}/children", pid.as_raw_nonzero());
    std::fs::read(&path)
        .map(drop)
        .map_err(|error| format!("cannot read {path}, which the core tier needs: {error}"))
}
