//! The Landlock layer: a policy becomes a ruleset.
//!
//! A rule is bound to an inode, so paths are opened in the view in which commands will see them, that is after the
//! mounts. `/proc/self` is never named: the link is resolved when the rule is made, and would open the helper's own
//! directory instead of the command's.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    path::{Path, PathBuf},
};

use ::landlock::{ABI, Access as _, AccessFs, AccessNet, BitFlags, Scope};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use crate::sandbox::{Access, Network, Policy, Tier};

/// The newest interface whose rights were reviewed here.
const NEWEST: ABI = ABI::V9;

/// Requirements of a tier. The full tier's mounts and namespaces keep what an old interface cannot; the core tier
/// has nothing else that keeps signals and abstract sockets in, which 6 has.
pub(crate) const fn least_abi(tier: Tier) -> i32 {
    match tier {
        Tier::Full => 1,
        Tier::Core => 6,
        Tier::Seatbelt | Tier::Off => 0,
    }
}

/// Since when connections can be allowed by port.
pub(crate) const LEAST_ABI_OF_PORTS: i32 = 4;

/// The rules of a policy, with their paths opened.
///
/// Each operation of the full tier builds a ruleset of its own from them, because it has its own `/proc`, and does so in
/// a process that may not allocate memory. The `landlock` crate builds one too, but allocates and asks for the type of
/// every path each time, so only its names of rights are used here.
#[derive(Debug)]
pub(crate) struct Rules {
    handled: HandledRights,
    paths: Vec<PathRule>,
    ports: Vec<u16>,
}

#[derive(Debug)]
struct PathRule {
    path: PathBuf,
    fd: OwnedFd,
    rights: BitFlags<AccessFs>,
}

/// Access rights that a ruleset denies unless a rule allows them, in the kernel's form.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct HandledRights {
    fs: u64,
    net: u64,
    scoped: u64,
}

/// A rule for everything below a path, as the kernel takes it.
#[repr(C, packed)]
struct PathBeneathAttr {
    allowed: u64,
    parent: i32,
}

/// A rule for a port, as the kernel takes it.
#[repr(C)]
struct NetPortAttr {
    allowed: u64,
    port: u64,
}

const RULE_PATH_BENEATH: i32 = 1;
const RULE_NET_PORT: i32 = 2;

/// A ruleset that the kernel holds.
#[derive(Debug)]
pub(crate) struct Ruleset(OwnedFd);

/// The interface version of the running kernel, 0 where there is none.
pub(crate) fn kernel_abi() -> i32 {
    const VERSION_QUERY: u32 = 1;
    // SAFETY: asks for the version; the kernel takes no pointer.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0usize,
            VERSION_QUERY,
        )
    };
    i32::try_from(answer).unwrap_or(0).max(0)
}

impl Rules {
    /// Opens what `policy` names. A path that does not exist is left out: there is nothing to allow.
    pub(crate) fn open(policy: &Policy, tier: Tier) -> io::Result<Self> {
        let ports = match &policy.network {
            Network::Open | Network::Loopback => None,
            // Without open ports the full tier has a network namespace with nothing in it; this is a second lock.
            Network::Off => Some(Vec::new()),
            Network::Ports(ports) => Some(ports.clone()),
        };
        let mut rules = Self {
            handled: HandledRights::of(kernel_abi(), ports.is_some()),
            paths: Vec::new(),
            ports: ports.unwrap_or_default(),
        };
        rules.add_present(&policy.scope, policy.scope_access)?;
        rules.add(&policy.visible_temp(tier), Access::Write)?;
        for path in &policy.overlays {
            let access = if tier == Tier::Full {
                Access::Write
            } else {
                Access::ReadExecute
            };
            rules.add(path, access)?;
        }
        for grant in &policy.grants {
            match grant.access {
                Access::Write => rules.add_present(&grant.real, Access::Write)?,
                Access::Read | Access::ReadExecute => rules.add_real(&grant.real, grant.access)?,
            }
        }
        for (path, rights) in devices(tier) {
            rules.add_rights(Path::new(path), rights)?;
        }
        match tier {
            Tier::Core => rules.add(Path::new("/proc"), Access::Read)?,
            // The view's own, with nothing in it but what is granted: one rule instead of fifty.
            Tier::Full => rules.add(Path::new("/etc"), Access::Read)?,
            Tier::Seatbelt | Tier::Off => {}
        }
        rules.drop_superfluous();
        Ok(rules)
    }

    /// Adds one path.
    fn add(&mut self, path: &Path, access: Access) -> io::Result<()> {
        self.add_rights(path, rights(access))
    }

    /// Adds a real path that must be there.
    fn add_present(&mut self, path: &Path, access: Access) -> io::Result<()> {
        match open_real(path) {
            Ok(fd) => self.add_opened(path, fd, rights(access)),
            Err(error) => Err(replaced(path, error)),
        }
    }

    /// Adds a real path, unless nothing is there any more.
    fn add_real(&mut self, path: &Path, access: Access) -> io::Result<()> {
        match open_real(path) {
            Ok(fd) => self.add_opened(path, fd, rights(access)),
            Err(error) if is_absence(error) => Ok(()),
            Err(error) => Err(replaced(path, error)),
        }
    }

    fn add_rights(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            // A link lies elsewhere than its name says.
            Ok(fd) => self.add_opened(&path.canonicalize()?, fd, rights),
            Err(error) if is_absence(error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn add_opened(&mut self, path: &Path, fd: OwnedFd, mut rights: BitFlags<AccessFs>) -> io::Result<()> {
        if FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) != FileType::Directory {
            rights &= AccessFs::from_file(NEWEST);
        }
        let path = path.to_owned();
        self.paths.push(PathRule { path, fd, rights });
        Ok(())
    }

    /// Drops rules that add nothing to one for a directory above: the kernel looks all the way up, through mounts too.
    fn drop_superfluous(&mut self) {
        let mut at = 0;
        while at < self.paths.len() {
            let PathRule { path, rights, .. } = &self.paths[at];
            let is_covered = |(other, above): (usize, &PathRule)| {
                let is_above = path.starts_with(&above.path) && (*path != above.path || other < at);
                other != at && is_above && above.rights.contains(*rights)
            };
            if self.paths.iter().enumerate().any(is_covered) {
                self.paths.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Builds the ruleset, in the full tier with a rule for the `/proc` that the caller has mounted. Allocates no memory.
    pub(crate) fn build(&self, own_proc: Option<&Path>) -> io::Result<Ruleset> {
        let ruleset = self.handled.create_ruleset()?;
        for PathRule { fd, rights, .. } in &self.paths {
            self.allow(&ruleset, fd, *rights)?;
        }
        if let Some(path) = own_proc {
            let proc = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            self.allow(&ruleset, &proc, rights(Access::Read))?;
        }
        for port in &self.ports {
            let rule = NetPortAttr {
                allowed: AccessNet::ConnectTcp as u64,
                port: u64::from(*port),
            };
            ruleset.add_rule(RULE_NET_PORT, &rule)?;
        }
        Ok(ruleset)
    }

    fn allow(&self, ruleset: &Ruleset, fd: &OwnedFd, rights: BitFlags<AccessFs>) -> io::Result<()> {
        let rule = PathBeneathAttr {
            // A kernel takes no rights that it does not know.
            allowed: rights.bits() & self.handled.fs,
            parent: fd.as_raw_fd(),
        };
        ruleset.add_rule(RULE_PATH_BENEATH, &rule)
    }
}

impl HandledRights {
    /// All that a kernel with this interface can forbid. What a tier promises is checked before.
    fn of(kernel_abi: i32, ports: bool) -> Self {
        let abi = ABI::from(kernel_abi);
        Self {
            fs: AccessFs::from_all(abi).bits(),
            net: if ports { AccessNet::from_all(abi).bits() } else { 0 },
            scoped: Scope::from_all(abi).bits(),
        }
    }

    fn create_ruleset(&self) -> io::Result<Ruleset> {
        // SAFETY: the structure has the size that is passed with it.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_landlock_create_ruleset,
                &raw const *self,
                size_of::<Self>(),
                0,
            )
        };
        match RawFd::try_from(fd) {
            // SAFETY: the descriptor is new and not owned elsewhere.
            Ok(fd) if fd >= 0 => Ok(Ruleset(unsafe { OwnedFd::from_raw_fd(fd) })),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Ruleset {
    fn add_rule<T>(&self, kind: i32, rule: &T) -> io::Result<()> {
        // SAFETY: the structure is that of the kind.
        let result = unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                self.0.as_raw_fd(),
                kind,
                &raw const *rule,
                0,
            )
        };
        done(result)
    }

    /// The same ruleset by another descriptor.
    pub(crate) fn duplicate(&self) -> io::Result<Self> {
        Ok(Self(rustix::io::fcntl_dupfd_cloexec(&self.0, 3)?))
    }

    /// Restricts the calling thread, for good. It must have `no_new_privs`.
    pub(crate) fn restrict_self(&self) -> io::Result<()> {
        // SAFETY: takes a descriptor and a number.
        done(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.0.as_raw_fd(), 0) })
    }
}

fn done(result: libc::c_long) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Opens a path that was free of links when the policy was made; a link by now is an attempt to have another
/// directory opened.
fn open_real(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

fn replaced(path: &Path, error: Errno) -> io::Error {
    let text = format!(
        "{} was replaced while the sandbox was put up: {error}",
        path.display()
    );
    io::Error::new(io::Error::from(error).kind(), text)
}

fn is_absence(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::ACCESS | Errno::NOTDIR)
}

fn rights(access: Access) -> BitFlags<AccessFs> {
    match access {
        Access::Read => AccessFs::ReadFile | AccessFs::ReadDir,
        Access::ReadExecute => AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute,
        Access::Write => {
            let never = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
            AccessFs::from_all(NEWEST) & !never
        }
    }
}

/// Devices that every program expects, and what may be done with them.
fn devices(tier: Tier) -> Vec<(&'static str, BitFlags<AccessFs>)> {
    let use_freely = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let mut devices = vec![
        ("/dev/null", use_freely),
        ("/dev/zero", use_freely),
        ("/dev/full", use_freely),
        ("/dev/random", AccessFs::ReadFile.into()),
        ("/dev/urandom", AccessFs::ReadFile.into()),
    ];
    if tier == Tier::Full {
        // These are the view's own instances; on the host they would be other people's terminals and memory.
        let terminal = use_freely | AccessFs::ReadDir | AccessFs::IoctlDev;
        devices.extend([
            ("/dev/tty", terminal),
            ("/dev/pts", terminal),
            ("/dev/shm", rights(Access::Write)),
        ]);
    }
    devices
}
