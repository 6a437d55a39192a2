//! The Landlock layer: a policy becomes a ruleset.
//!
//! A rule is bound to an inode, so paths are opened in the view in which commands will see them, that is after the
//! mounts. `/proc/self` is never named: the link is resolved when the rule is made, and would open the helper's own
//! directory instead of the command's.

use std::{io, os::fd::OwnedFd, path::Path};

use ::landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
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

/// The paths of a policy, opened.
#[derive(Debug)]
pub(crate) struct Rules {
    paths: Vec<(OwnedFd, BitFlags<AccessFs>)>,
    ports: Option<Vec<u16>>,
    tier: Tier,
}

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
        let mut rules = Self {
            paths: Vec::new(),
            ports: match &policy.network {
                Network::Open | Network::Loopback => None,
                Network::Off => Some(Vec::new()),
                Network::Ports(ports) => Some(ports.clone()),
            },
            tier,
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
        if tier == Tier::Core {
            rules.add(Path::new("/proc"), Access::Read)?;
        }
        Ok(rules)
    }

    /// Adds one path.
    pub(crate) fn add(&mut self, path: &Path, access: Access) -> io::Result<()> {
        self.add_rights(path, rights(access))
    }

    /// Adds a real path that must be there.
    fn add_present(&mut self, path: &Path, access: Access) -> io::Result<()> {
        match open_real(path) {
            Ok(fd) => self.add_opened(fd, rights(access)),
            Err(error) => Err(replaced(path, error)),
        }
    }

    /// Adds a real path, unless nothing is there any more.
    fn add_real(&mut self, path: &Path, access: Access) -> io::Result<()> {
        match open_real(path) {
            Ok(fd) => self.add_opened(fd, rights(access)),
            Err(error) if is_absence(error) => Ok(()),
            Err(error) => Err(replaced(path, error)),
        }
    }

    fn add_rights(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(fd) => self.add_opened(fd, rights),
            Err(error) if is_absence(error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn add_opened(&mut self, fd: OwnedFd, mut rights: BitFlags<AccessFs>) -> io::Result<()> {
        if FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) != FileType::Directory {
            rights &= AccessFs::from_file(NEWEST);
        }
        self.paths.push((fd, rights));
        Ok(())
    }

    /// Builds the ruleset. It refuses rather than leave out what the tier promises.
    pub(crate) fn build(&self) -> Result<RulesetCreated, RulesetError> {
        let promised = match self.tier {
            Tier::Core => ABI::V6,
            Tier::Full | Tier::Seatbelt | Tier::Off => ABI::V1,
        };
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(promised))?;
        if self.tier == Tier::Core {
            ruleset = ruleset.scope(Scope::from_all(ABI::V6))?;
        }
        // Without open ports the full tier has a network namespace with nothing in it; this is a second lock.
        let is_second_lock = self.tier == Tier::Full && self.ports.as_ref().is_some_and(Vec::is_empty);
        if is_second_lock {
            ruleset = ruleset.set_compatibility(CompatLevel::BestEffort);
        }
        if self.ports.is_some() {
            ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4))?;
        }
        let mut ruleset = ruleset
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?
            .create()?;
        for (fd, rights) in &self.paths {
            ruleset = ruleset.add_rule(PathBeneath::new(fd, *rights))?;
        }
        for port in self.ports.iter().flatten() {
            ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
        Ok(ruleset)
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
