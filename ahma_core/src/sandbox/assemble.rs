//! From the user's settings and the machine's facts to a [`Policy`].
//!
//! Only looks at what exists; opens nothing, runs nothing. What lies where commands can write never decides what is
//! opened, with one checked exception: a linked git worktree whose administrative directory points back at the scope.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::{
    Access, Grant, Network, Platform, Policy,
    environment::CERTIFICATES,
    protected::protected,
    resolved_path::ResolvedPath,
    toolchains::{self, Toolchains},
    worktree::LinkedWorktree,
};

/// The user's settings.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    pub scope: PathBuf,
    /// The server's private directory; see [`Policy::private`].
    pub private: PathBuf,
    pub network: Network,
    pub allow_read: Vec<PathBuf>,
    pub allow_write: Vec<PathBuf>,
    pub allow_tmp: bool,
    pub toolchains: Toolchains,
    /// Leaves the protected names unprotected.
    pub trust_workspace_config: bool,
    /// The tools directory; protected when it lies in the scope.
    pub tools_dir: PathBuf,
    /// Other files that something outside the sandbox acts on; protected when they lie in the scope.
    pub also_protected: Vec<PathBuf>,
}

/// Facts about the machine.
#[derive(Debug, Clone, Default)]
pub struct Host {
    pub platform: Platform,
    pub home: Option<PathBuf>,
    /// The value of PATH.
    pub path: String,
    /// The environment of the server.
    pub variables: std::collections::BTreeMap<String, String>,
}

/// Reasons why no policy can be made.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("the sandbox scope {} cannot be used", path.display())]
    Scope { path: PathBuf, source: io::Error },
    #[error("{flag} {} cannot be used", path.display())]
    Path {
        flag: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{flag} {} leads to {} by a link that commands can change", path.display(), end.display())]
    Redirected {
        flag: &'static str,
        path: PathBuf,
        end: PathBuf,
    },
}

/// Directories of programs and libraries.
fn system(platform: Platform) -> &'static [&'static str] {
    match platform {
        Platform::Linux => SYSTEM_OF_LINUX,
        Platform::MacOs => SYSTEM_OF_MACOS,
    }
}

/// Reading is open there nearly everywhere; these are the places that a report is about.
const SYSTEM_OF_MACOS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/opt",
    "/System",
    "/Library",
    "/Applications/Xcode.app",
    "/private/etc",
    "/private/var/db",
    "/private/var/select",
    "/nix/store",
];

const SYSTEM_OF_LINUX: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/snap",
];

/// Entries of `/etc` that programs look up. Never shadow, ssh, sudoers or anything else that holds a secret.
const ETC: &[&str] = &[
    "alternatives",
    "bash.bashrc",
    "bindresvport.blacklist",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "default/locale",
    "fonts",
    "gai.conf",
    "gitattributes",
    "gitconfig",
    "group",
    "host.conf",
    "hostname",
    "hosts",
    "inputrc",
    "java-17-openjdk",
    "java-21-openjdk",
    "java-11-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "login.defs",
    "lsb-release",
    "machine-id",
    "magic",
    "magic.mime",
    "manpath.config",
    "maven",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pip.conf",
    "pki/ca-trust",
    "pki/java",
    "pki/nssdb",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "profile",
    "profile.d",
    "protocols",
    "python3",
    "resolv.conf",
    "rpc",
    "services",
    "shells",
    // Not the whole directory: `ssl/private` holds keys that root can read.
    "ssl/ca-bundle.pem",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
];

/// Computes the policy.
pub fn assemble(settings: &SandboxSettings, host: &Host) -> Result<Policy, PolicyError> {
    let scope = settings
        .scope
        .canonicalize()
        .and_then(|path| {
            if path.is_dir() {
                Ok(path)
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        })
        .map_err(|source| PolicyError::Scope {
            path: settings.scope.clone(),
            source,
        })?;

    let worktree = LinkedWorktree::of(&scope);
    let presets = toolchains::presets(&settings.toolchains, host);
    let temp = Path::new("/tmp").canonicalize().unwrap_or("/tmp".into());
    let mut grants = Grants::new(&scope, settings, worktree.as_ref(), host);
    grants.add_system(host.platform);
    for directory in path_directories(host, &scope) {
        grants.add_discovered(directory, Access::ReadExecute, "a directory on PATH");
    }
    for name in CERTIFICATES {
        if let Some(path) = host.variables.get(*name) {
            grants.add_discovered(path.into(), Access::Read, name);
        }
    }
    for (path, access, name) in presets.grants {
        grants.add_discovered(path, access, &format!("toolchain {name}"));
    }
    if settings.allow_tmp {
        grants.add(temp.clone(), Access::Write, "--allow-tmp");
    }
    for (path, access) in worktree.iter().flat_map(LinkedWorktree::parts) {
        grants.add(path, access, "git directory of this linked worktree");
    }
    for path in &settings.allow_read {
        grants.add_requested(path, Access::ReadExecute, "--allow-read")?;
    }
    for path in &settings.allow_write {
        grants.add_requested(path, Access::Write, "--allow-write")?;
    }
    let overlays = presets
        .overlays
        .into_iter()
        .filter(|path| path.is_dir() && grants.may_open(path).is_some_and(|real| !scope.starts_with(real)))
        .collect();
    let grants = grants.list;
    let host_temp = temp.starts_with(&scope) || grants.iter().any(|grant| temp.starts_with(&grant.path));
    let worktree = worktree.map(|worktree| worktree.own);
    Ok(Policy {
        protected: protected(settings, &scope, worktree.as_deref()),
        scope,
        worktree,
        scope_access: Access::Write,
        private: settings.private.clone(),
        host_temp,
        grants,
        overlays,
        network: settings.network.clone(),
    })
}

/// The grants, as they come together.
struct Grants<'a> {
    scope: &'a Path,
    home: Option<PathBuf>,
    /// Directories that commands can write to: no link there may decide what is opened.
    writable: Vec<PathBuf>,
    list: Vec<Grant>,
}

impl<'a> Grants<'a> {
    fn new(
        scope: &'a Path,
        settings: &SandboxSettings,
        worktree: Option<&LinkedWorktree>,
        host: &Host,
    ) -> Self {
        let asked = settings.allow_write.iter().cloned();
        let temp = settings.allow_tmp.then(|| "/tmp".into());
        let git = worktree.map(|worktree| worktree.own.clone());
        let others = asked.chain(temp).chain(git);
        Self {
            scope,
            home: host.home.as_ref().and_then(|home| home.canonicalize().ok()),
            writable: std::iter::once(scope.to_owned())
                .chain(others.filter_map(|path| path.canonicalize().ok()))
                .collect(),
            list: Vec::new(),
        }
    }

    /// The real path, if it may be opened. The scope is open anyway; a grant for a part of it could only take rights away.
    fn may_open(&self, path: &Path) -> Option<PathBuf> {
        let resolved = ResolvedPath::of(path)?;
        let is_open = resolved.end.starts_with(self.scope);
        (!is_open && !resolved.has_link_in(&self.writable)).then_some(resolved.end)
    }

    fn add(&mut self, path: PathBuf, access: Access, reason: &str) {
        // PATH may name a directory twice, and a toolchain once more.
        let is_known = |known: &Grant| known.path == path && known.access == access;
        if let Some(real) = self.may_open(&path)
            && !self.list.iter().any(is_known)
        {
            self.list.push(Grant {
                path,
                real,
                access,
                reason: reason.to_owned(),
            });
        }
    }

    /// Adds what every command needs of the system.
    fn add_system(&mut self, platform: Platform) {
        for path in system(platform) {
            self.add(path.into(), Access::ReadExecute, Grant::OF_SYSTEM);
        }
        if platform == Platform::Linux {
            self.add_configuration();
        }
    }

    fn add_configuration(&mut self) {
        for name in ETC {
            let path = Path::new("/etc").join(name);
            // A link out of `/etc`, as resolv.conf often is: what it points at must be open as well.
            if let Ok(target) = path.canonicalize()
                && target != path
                && !SYSTEM_OF_LINUX.iter().any(|system| target.starts_with(system))
            {
                self.add(target, Access::Read, "system configuration");
            }
            self.add(path, Access::Read, "system configuration");
        }
        self.add(
            "/sys/devices/system/cpu".into(),
            Access::Read,
            "number of processors",
        );
        if let Some(leaf) = own_cgroup() {
            self.add(leaf, Access::Read, "limits of this control group");
        }
    }

    /// Adds what only the surroundings name. One that is, or holds, the home directory would open all of it.
    fn add_discovered(&mut self, path: PathBuf, access: Access, reason: &str) {
        let real = path.canonicalize().unwrap_or_default();
        let holds_home = self.home.as_ref().is_some_and(|home| home.starts_with(&real));
        if path.is_absolute() && !holds_home {
            self.add(path, access, reason);
        }
    }

    /// Adds what the user asked for.
    fn add_requested(&mut self, path: &Path, access: Access, flag: &'static str) -> Result<(), PolicyError> {
        let unusable = |source| PolicyError::Path {
            flag,
            path: path.to_owned(),
            source,
        };
        let resolved = std::path::absolute(path)
            .and_then(|path| ResolvedPath::of(&path).ok_or_else(|| Errno::NOENT.into()))
            .map_err(unusable)?;
        if resolved.has_link_in(&self.writable) && !resolved.end.starts_with(self.scope) {
            return Err(PolicyError::Redirected {
                flag,
                path: path.to_owned(),
                end: resolved.end,
            });
        }
        self.add(resolved.end, access, flag);
        Ok(())
    }
}

/// The directories of PATH that are not open anyway, and do not hold the scope.
fn path_directories(host: &Host, scope: &Path) -> Vec<PathBuf> {
    let is_extra = |entry: &PathBuf| {
        entry.canonicalize().is_ok_and(|real| {
            !scope.starts_with(&real)
                && !system(host.platform)
                    .iter()
                    .any(|system| real.starts_with(system))
        })
    };
    std::env::split_paths(&host.path).filter(is_extra).collect()
}

/// The control group of this process. The root group has no limits, and all other groups below it.
fn own_cgroup() -> Option<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    (!path.is_empty()).then(|| Path::new("/sys/fs/cgroup").join(path))
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
