//! From the user's settings and the machine's facts to a [`Policy`].
//!
//! Only looks at what exists; opens nothing, runs nothing. What lies inside the scope never adds a grant, with one
//! checked exception: a linked git worktree whose administrative directory points back at the scope.

use std::{
    collections::BTreeSet,
    io,
    path::{Component, Path, PathBuf},
};

use super::{
    Access, Grant, Network, Policy,
    environment::CERTIFICATES,
    toolchains::{self, Toolchains},
};

/// What the user asked for.
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
    /// Leave files that act later unprotected.
    pub trust_workspace_config: bool,
    /// The tools directory; protected when it lies in the scope.
    pub tools_dir: PathBuf,
    /// Other files that something outside the sandbox acts on; protected when they lie in the scope.
    pub also_protected: Vec<PathBuf>,
}

/// What the machine is like.
#[derive(Debug, Clone, Default)]
pub struct Host {
    pub home: Option<PathBuf>,
    /// The value of PATH.
    pub path: String,
    /// The environment of the server.
    pub variables: std::collections::BTreeMap<String, String>,
}

/// Why there is no policy.
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
}

/// Programs and libraries.
const SYSTEM: &[&str] = &[
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

/// What programs look up in `/etc`. Never shadow, ssh, sudoers or anything else that holds a secret.
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

/// Names in the scope that programs outside the sandbox act on later.
const PROTECTED: &[&str] = &[
    // Where the next server looks for its tools, whichever directory this one has them from.
    ".ahma/tools",
    ".git",
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    // Makes git take its configuration and hooks from another directory.
    ".git/commondir",
    ".git/info",
    ".gitmodules",
    ".vscode",
    ".idea",
    ".cursor",
    ".claude",
    ".codex",
    ".agents",
    ".mcp.json",
    "mcp.json",
    ".envrc",
    ".husky",
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

    let mut grants: Vec<Grant> = Vec::new();
    let mut grant = |path: PathBuf, access, reason: &str| {
        // The scope is open as it is; a grant for a part of it could only take rights away again.
        let is_outside = path.canonicalize().is_ok_and(|real| !real.starts_with(&scope));
        // PATH may name a directory twice, and a toolchain once more.
        let is_known = |known: &Grant| known.path == path && known.access == access;
        if is_outside && !grants.iter().any(is_known) {
            grants.push(Grant {
                path,
                access,
                reason: reason.to_owned(),
            });
        }
    };
    for path in SYSTEM {
        grant(path.into(), Access::ReadExecute, "system programs and libraries");
    }
    for name in ETC {
        let path = Path::new("/etc").join(name);
        // A link out of `/etc`, as resolv.conf often is: what it points at must be open as well.
        if let Ok(target) = path.canonicalize()
            && target != path
            && !SYSTEM.iter().any(|system| target.starts_with(system))
        {
            grant(target, Access::Read, "system configuration");
        }
        grant(path, Access::Read, "system configuration");
    }
    grant(
        "/sys/devices/system/cpu".into(),
        Access::Read,
        "number of processors",
    );
    if let Some(leaf) = own_cgroup() {
        grant(leaf, Access::Read, "limits of this control group");
    }
    for directory in path_directories(host, &scope) {
        grant(directory, Access::ReadExecute, "a directory on PATH");
    }
    for name in CERTIFICATES {
        if let Some(path) = host
            .variables
            .get(*name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .filter(|path| host.home.as_ref().is_none_or(|home| !home.starts_with(path)))
        {
            grant(path, Access::Read, name);
        }
    }
    let presets = toolchains::presets(&settings.toolchains, host);
    for (path, access, name) in presets.grants {
        grant(path, access, &format!("toolchain {name}"));
    }
    if settings.allow_tmp {
        let real = Path::new("/tmp").canonicalize();
        grant(real.unwrap_or("/tmp".into()), Access::Write, "--allow-tmp");
    }
    for path in worktree_directories(&scope) {
        grant(path.0, path.1, "git directory of this linked worktree");
    }
    for (paths, access, flag) in [
        (&settings.allow_read, Access::ReadExecute, "--allow-read"),
        (&settings.allow_write, Access::Write, "--allow-write"),
    ] {
        for path in paths {
            let real = path.canonicalize().map_err(|source| PolicyError::Path {
                flag,
                path: path.clone(),
                source,
            })?;
            grant(real, access, flag);
        }
    }
    let temp = Path::new("/tmp").canonicalize().unwrap_or("/tmp".into());
    let host_temp = temp.starts_with(&scope) || grants.iter().any(|grant| temp.starts_with(&grant.path));
    let overlays = presets
        .overlays
        .into_iter()
        .filter(|path| {
            let real = path.canonicalize();
            path.is_dir() && real.is_ok_and(|real| !real.starts_with(&scope) && !scope.starts_with(real))
        })
        .collect();
    Ok(Policy {
        protected: protected(settings, &scope),
        scope,
        private: settings.private.clone(),
        host_temp,
        grants,
        overlays,
        network: settings.network.clone(),
    })
}

fn protected(settings: &SandboxSettings, scope: &Path) -> Vec<PathBuf> {
    if settings.trust_workspace_config {
        return Vec::new();
    }
    let mut protected: Vec<PathBuf> = PROTECTED.iter().map(|name| scope.join(name)).collect();
    protected.push(scope.join(&settings.tools_dir));
    protected.extend(settings.also_protected.iter().map(|file| scope.join(file)));
    // Where one of them is a link, what it leads to is acted on as well.
    let real: Vec<PathBuf> = protected
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    protected.extend(real);
    let is_plain = |path: &PathBuf| !path.components().any(|part| part == Component::ParentDir);
    protected.retain(|path| path.starts_with(scope) && path != scope && is_plain(path));
    let mut seen = BTreeSet::new();
    protected.retain(|path| seen.insert(path.clone()));
    protected
}

/// The directories of PATH outside the scope. One that is, or holds, the home directory would open all of it.
fn path_directories(host: &Host, scope: &Path) -> Vec<PathBuf> {
    std::env::split_paths(&host.path)
        .filter(|entry| entry.is_absolute())
        .filter_map(|entry| entry.canonicalize().ok())
        .filter(|entry| !entry.starts_with(scope) && !scope.starts_with(entry))
        .filter(|entry| host.home.as_ref().is_none_or(|home| !home.starts_with(entry)))
        .filter(|entry| !SYSTEM.iter().any(|system| entry.starts_with(system)))
        .collect()
}

fn own_cgroup() -> Option<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new("/sys/fs/cgroup").join(path))
}

/// The parts of the common git directory that a linked worktree writes, and those it reads.
fn worktree_directories(scope: &Path) -> Vec<(PathBuf, Access)> {
    let link = scope.join(".git");
    let linked = || -> Option<(PathBuf, PathBuf)> {
        let text = std::fs::read_to_string(&link).ok()?;
        // Both paths may be relative, each to where it is written.
        let own = scope
            .join(text.strip_prefix("gitdir:")?.trim())
            .canonicalize()
            .ok()?;
        // Without the link back, a planted `.git` file could open any directory.
        let back = std::fs::read_to_string(own.join("gitdir")).ok()?;
        let back = own.join(back.trim()).canonicalize().ok()?;
        let common = own.parent()?.parent()?.to_owned();
        (back == link && own.parent()?.ends_with("worktrees")).then_some((own, common))
    };
    let Some((own, common)) = linked() else {
        return Vec::new();
    };
    let mut directories = vec![(own, Access::Write)];
    directories
        .extend(["objects", "refs", "logs", "packed-refs"].map(|name| (common.join(name), Access::Write)));
    directories
        .extend(["config", "hooks", "info", "HEAD", "shallow"].map(|name| (common.join(name), Access::Read)));
    // A git directory made up by a command could have links in it that lead anywhere.
    directories.retain(|(path, _)| path.canonicalize().is_ok_and(|real| real == *path));
    directories
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
