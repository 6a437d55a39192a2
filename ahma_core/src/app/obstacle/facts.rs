//! A snapshot of what decides whether user namespaces and Landlock can be used.

use std::{fs, path::Path, str::FromStr};

use crate::sandbox::landlock_abi;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::app) struct MachineFacts {
    /// 0 where Landlock cannot be used.
    pub(super) landlock_abi: i32,
    /// The output of `uname -r`.
    pub(super) kernel_release: String,
    /// The kernel's list, separated by commas; none where it cannot be read.
    pub(super) security_modules: Option<String>,
    pub(super) is_root: bool,
    pub(super) max_user_namespaces: Option<u64>,
    /// Only kernels of Debian and Ubuntu have this setting.
    pub(super) unprivileged_userns_clone: Option<u64>,
    /// Only AppArmor 4 has this setting.
    pub(super) apparmor_restricts_userns: Option<u64>,
    /// The AppArmor profile of this process, or `unconfined`.
    pub(super) apparmor_label: Option<String>,
    pub(super) container: Option<Container>,
    /// Another program has put a seccomp filter on this process.
    pub(super) is_filtered: bool,
}

/// Program that made the container of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::app) enum Container {
    Docker,
    Podman,
    Kubernetes,
    Other,
}

impl MachineFacts {
    pub(in crate::app) fn read() -> Self {
        let release = rustix::system::uname();
        let label = text("/proc/self/attr/apparmor/current").or_else(|| text("/proc/self/attr/current"));
        let status = text("/proc/self/status").unwrap_or_default();
        Self {
            landlock_abi: landlock_abi(),
            kernel_release: release.release().to_string_lossy().into_owned(),
            security_modules: text("/sys/kernel/security/lsm"),
            is_root: rustix::process::geteuid().is_root(),
            max_user_namespaces: number("/proc/sys/user/max_user_namespaces"),
            unprivileged_userns_clone: number("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor_restricts_userns: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            apparmor_label: label,
            container: container(),
            is_filtered: status.lines().any(|line| line == "Seccomp:\t2"),
        }
    }
}

fn container() -> Option<Container> {
    let named = std::env::var("container")
        .ok()
        .or_else(|| text("/run/systemd/container"));
    match named.as_deref() {
        _ if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() => Some(Container::Kubernetes),
        Some("podman") => Some(Container::Podman),
        _ if Path::new("/run/.containerenv").exists() => Some(Container::Podman),
        _ if Path::new("/.dockerenv").exists() => Some(Container::Docker),
        Some("docker") => Some(Container::Docker),
        // Set by WSL too, which is no container in this sense.
        Some("wsl") | None => None,
        Some(_) => Some(Container::Other),
    }
}

fn text(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim_end_matches(['\n', '\0']).to_owned())
}

fn number<T: FromStr>(path: &str) -> Option<T> {
    text(path)?.trim().parse().ok()
}
