//! The sandbox as the jail prepares it once: the mount view, the Landlock rules, the filters, the arguments of `execve`.

use std::{ffi::CString, io, os::unix::ffi::OsStrExt, path::PathBuf};

use ::landlock::RulesetCreated;
use seccompiler::BpfProgram;

use super::{
    linux::{cgroup::DelegatedCgroup, notified_call},
    wire::Configure,
};
use crate::sandbox::{
    Access, Network, Policy, Tier,
    linux::{
        landlock::{self, Rules},
        namespaces, privileges,
        seccomp::{self, UnixSockets},
    },
};

/// The descriptor on which a shell reads its script. One digit, because `dash` takes no more in a redirection.
pub(crate) const SCRIPT_FD: i32 = 9;

/// The script of an idle shell: it reads its instructions, which leave the user's text as the first argument, and then
/// runs that text. Not while it still reads them, so that lines are counted from the text's own first and messages begin
/// with the name of the shell, as after `bash -c`. And not without the second argument, which shows that the text is
/// complete: half of one, from a server that died while writing, must never run. Anything put before the text would show
/// up in error messages; the space keeps a leading dash from being an option of `eval`.
pub(crate) const READ_SCRIPT: &str = ". /dev/fd/9; [ \"$2\" = . ] || { \
    echo \"ahma_mcp: the server went away before it had said what to run\" >&2; exit 126; }; _script=$1; shift 2; eval \" $_script\"";

/// A prepared sandbox and shell. Copied by fork into every supervisor.
#[derive(Debug)]
pub(super) struct PreparedSandbox {
    pub(super) tier: Tier,
    pub(super) scope: PathBuf,
    pub(super) shell: CString,
    pub(super) arguments: Vec<CString>,
    pub(super) environment: Vec<CString>,
    pub(super) max_processes: u32,
    /// A delegated cgroup: limits and kills an operation without a pid namespace.
    pub(super) cgroup: Option<DelegatedCgroup>,
    /// `RLIMIT_NPROC` of commands; `None` where the kernel would count unrelated processes.
    pub(super) process_limit: Option<u64>,
    /// The filter that the jail cannot put on itself.
    pub(super) command_filter: BpfProgram,
    /// Calls that the broker answers in the core tier.
    pub(super) notification_filter: BpfProgram,
    /// Paths on which the broker makes them.
    pub(super) allowed: AllowedPaths,
    rules: Rules,
    /// Built ahead where it is the same for every operation.
    ruleset: Option<RulesetCreated>,
}

impl PreparedSandbox {
    /// Confines the calling process as far as the jail itself can live with, and prepares the rest.
    pub(super) fn build(configure: &Configure) -> Result<Self, String> {
        let Configure { policy, tier, .. } = configure;
        let tier = *tier;
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
            Tier::Core => Some(rules.build().map_err(|error| error.to_string())?),
            // The full tier adds each operation's own `/proc`.
            Tier::Full | Tier::Off => None,
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
            scope: policy.scope.clone(),
            shell: c_string(configure.shell.as_os_str().as_bytes())?,
            arguments: arguments(configure)?,
            environment: configure
                .environment
                .iter()
                .map(|(name, value)| c_string(format!("{name}={value}").as_bytes()))
                .collect::<Result<_, _>>()?,
            max_processes: configure.max_processes,
            cgroup: match tier {
                Tier::Core => DelegatedCgroup::find(),
                // A pid namespace does the same; without a sandbox a command could leave its cgroup.
                Tier::Full | Tier::Off => None,
            },
            process_limit: None,
            command_filter: seccomp::command_filter(),
            notification_filter: seccomp::notification_filter(&notified_call::numbers()).map_err(text)?,
            allowed: AllowedPaths::of(policy),
            rules,
            ruleset,
        })
    }

    /// The ruleset for one operation. In the full tier the caller has mounted its `/proc` before.
    pub(super) fn ruleset(&mut self) -> io::Result<Option<RulesetCreated>> {
        match (self.tier, &self.ruleset) {
            (Tier::Off, _) => Ok(None),
            (_, Some(ready)) => Ok(Some(ready.try_clone()?)),
            (_, None) => {
                self.rules.add(std::path::Path::new("/proc"), Access::Read)?;
                Ok(Some(self.rules.build().map_err(io::Error::other)?))
            }
        }
    }
}

/// Real paths that Landlock opens to commands.
#[derive(Debug, Clone)]
pub(super) struct AllowedPaths {
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

fn arguments(configure: &Configure) -> Result<Vec<CString>, String> {
    let name = configure.shell.file_name().unwrap_or(configure.shell.as_os_str());
    [name.as_bytes(), b"-c", READ_SCRIPT.as_bytes(), name.as_bytes()]
        .into_iter()
        .map(c_string)
        .collect()
}

fn c_string(bytes: &[u8]) -> Result<CString, String> {
    CString::new(bytes).map_err(|_| format!("{} holds a NUL byte", String::from_utf8_lossy(bytes)))
}
