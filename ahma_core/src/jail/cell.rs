//! What the jail prepares once: the view, the rules, the filters, the words of `execve`.

use std::{ffi::CString, io, os::unix::ffi::OsStrExt, path::PathBuf};

use ::landlock::RulesetCreated;
use seccompiler::BpfProgram;

use super::wire::Configure;
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

/// What a waiting shell does: it reads what is to be prepared, which leaves the user's text as the first argument, and
/// then runs that text. Not while it still reads the file, so that lines are counted from the text's own first and
/// messages begin with the name of the shell, as after `bash -c`. And not without the second argument, which says that
/// the text is whole: half of one, from a server that died while it wrote, must never run. Nothing but a
/// space is put before the text, which would show up in the shell's complaints about it; the space keeps a dash from being
/// an option of `eval`.
pub(crate) const READ_SCRIPT: &str = ". /dev/fd/9; [ \"$2\" = . ] || { \
    echo \"ahma_mcp: the server went away before it had said what to run\" >&2; exit 126; }; _script=$1; shift 2; eval \" $_script\"";

/// A prepared wall and shell. Cloned by fork into every owner.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) tier: Tier,
    pub(super) scope: PathBuf,
    pub(super) shell: CString,
    pub(super) arguments: Vec<CString>,
    pub(super) environment: Vec<CString>,
    pub(super) max_processes: u32,
    /// `None` where the kernel would count processes that are not ours.
    pub(super) process_limit: Option<u64>,
    /// What the jail cannot put on itself.
    pub(super) filter: BpfProgram,
    /// Calls that the owner is asked about, in the core tier.
    pub(super) asked: BpfProgram,
    /// Where the owner then agrees.
    pub(super) places: Places,
    rules: Rules,
    /// Built ahead where nothing in it changes from one operation to the next.
    ruleset: Option<RulesetCreated>,
}

impl Cell {
    /// Builds the wall around the calling process as far as the jail itself can stand inside it.
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
            let unix_sockets = match tier {
                Tier::Full if abi >= 6 => UnixSockets::Allowed,
                _ => UnixSockets::Denied,
            };
            // The jail keeps the capabilities that it has: nothing here is started by exec but commands.
            privileges::empty_bounding_set().map_err(text)?;
            for program in seccomp::inherited(&policy.network, tier, unix_sockets).map_err(text)? {
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
            // Outside a user namespace the kernel would count every process of this user. Inside one it counts those
            // of all operations; where each has a limit of its own, its owner raises this one.
            process_limit: (tier == Tier::Full).then_some(u64::from(configure.max_processes)),
            filter: seccomp::for_commands(),
            asked: seccomp::asked().map_err(text)?,
            places: Places::of(policy),
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

/// What Landlock opens to commands, by real paths.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) writable: Vec<PathBuf>,
    pub(super) readable: Vec<PathBuf>,
}

impl Places {
    fn of(policy: &Policy) -> Self {
        let temp = policy.temp();
        let own = [&temp];
        let granted = |allows: fn(Access) -> bool| {
            let grants = policy.grants.iter().filter(move |grant| allows(grant.access));
            grants.map(|grant| &grant.path)
        };
        // The scope is real already; a link by now is somebody's attempt to have another directory opened.
        let real = |paths: &mut dyn Iterator<Item = &PathBuf>| {
            let others = paths.filter_map(|path| path.canonicalize().ok());
            std::iter::once(policy.scope.clone()).chain(others).collect()
        };
        Self {
            writable: real(&mut own.into_iter().chain(granted(|access| access == Access::Write))),
            readable: real(&mut own.into_iter().chain(granted(|_| true)).chain(&policy.overlays)),
        }
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
