//! Judges the facts of a machine: the obstacle that they point to, and its remedy.

use std::fmt;

use super::facts::{Container, MachineFacts};

/// The oldest Linux with Landlock.
const FIRST_WITH_LANDLOCK: (u32, u32) = (5, 13);

/// The interface version with which the sandbox needs no namespaces.
const ABI_WITHOUT_NAMESPACES: i32 = 6;

const ABI_OF_PORT_RULES: i32 = 4;

/// Most likely cause that keeps the full tier from working.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::app) enum Obstacle {
    /// The kernel is older than Landlock.
    OldKernel,
    /// WSL was started without Landlock, or with an old kernel.
    Wsl,
    /// The kernel was started without Landlock, or built without it.
    LandlockOff,
    /// The container's seccomp filter refuses Landlock's system calls.
    LandlockFiltered(Container),
    /// The kernel grants no process a user namespace.
    NoUserNamespaces,
    /// The kernel makes user namespaces for root only.
    UserNamespacesForRoot,
    /// AppArmor keeps user namespaces from programs without a profile.
    AppArmor,
    /// The container forbids namespaces or mounts.
    Contained(Container),
    /// Another sandbox does.
    OuterSandbox,
    Unknown,
}

impl Obstacle {
    /// Judges a machine on which the full tier does not work.
    pub(in crate::app) fn of(facts: &MachineFacts) -> Self {
        if facts.landlock_abi == 0 {
            return Self::of_landlock(facts);
        }
        let is_restricted = facts.apparmor_restricts_userns.is_some_and(|value| value != 0);
        let has_no_profile = facts.apparmor_label.as_deref() == Some("unconfined");
        if facts.max_user_namespaces == Some(0) {
            Self::NoUserNamespaces
        } else if facts.unprivileged_userns_clone == Some(0) && !facts.is_root {
            Self::UserNamespacesForRoot
        } else if is_restricted && has_no_profile && !facts.is_root {
            Self::AppArmor
        } else if let Some(container) = facts.container {
            Self::Contained(container)
        } else if facts.is_wsl() {
            Self::Wsl
        } else if facts.is_filtered {
            Self::OuterSandbox
        } else {
            Self::Unknown
        }
    }

    fn of_landlock(facts: &MachineFacts) -> Self {
        let modules = facts.security_modules.as_deref();
        let is_on = modules.is_some_and(|modules| modules.split(',').any(|module| module == "landlock"));
        if facts.kernel_version() < FIRST_WITH_LANDLOCK {
            Self::OldKernel
        } else if facts.is_wsl() {
            Self::Wsl
        } else if let Some(container) = facts.container
            && (is_on || modules.is_none())
        {
            Self::LandlockFiltered(container)
        } else if is_on && facts.is_filtered {
            Self::OuterSandbox
        } else {
            Self::LandlockOff
        }
    }

    fn reason_and_remedy(self) -> (&'static str, &'static str) {
        match self {
            Self::OldKernel => (
                "the kernel is older than Landlock",
                "start a kernel with Landlock: Linux 5.13 or newer",
            ),
            Self::Wsl => (
                "the kernel of WSL is old, or Landlock is switched off in it",
                "in Windows, run `wsl --update` and `wsl --shutdown`: its newest kernel has all that is needed; if \
                 kernelCommandLine in .wslconfig has a list lsm=, add landlock to it",
            ),
            Self::LandlockOff => (
                "the kernel was started without Landlock",
                "add landlock to the list lsm= of the kernel's command line and restart; \
                 cat /sys/kernel/security/lsm shows the list of today",
            ),
            Self::LandlockFiltered(_) => (
                "the container does not let programs use Landlock",
                "update the container's runtime: since 2022 (Docker 23, containerd 1.6, Podman 4.2) its system call \
                 filter lets programs confine themselves with Landlock",
            ),
            Self::NoUserNamespaces => (
                "no user namespaces are allowed here (user.max_user_namespaces is 0)",
                "allow as many as are needed, one for each server: sudo sysctl user.max_user_namespaces=64 (and the \
                 same line in /etc/sysctl.d to keep it); Linux 6.12 and newer start without",
            ),
            Self::UserNamespacesForRoot => (
                "only root may make user namespaces here (kernel.unprivileged_userns_clone is 0)",
                "Debian's setting for them, on by default since Debian 11, is off: \
                 sudo sysctl kernel.unprivileged_userns_clone=1 (and the same line in /etc/sysctl.d to keep it); \
                 Linux 6.12 and newer start without",
            ),
            Self::AppArmor => (
                "AppArmor keeps user namespaces from programs without a profile",
                "give this program, and no other, a profile that allows them:\n\
                 ahma_mcp doctor --apparmor-profile | sudo tee /etc/apparmor.d/ahma_mcp\n\
                 sudo apparmor_parser --replace /etc/apparmor.d/ahma_mcp",
            ),
            Self::Contained(container) => (
                "the container does not let programs make namespaces or mounts",
                match container {
                    Container::Docker => {
                        "start this container with --security-opt seccomp=unconfined --security-opt \
                         apparmor=unconfined --security-opt systempaths=unconfined, which lets programs in it make \
                         namespaces and gives them no more rights on the machine; on Linux 6.12 and newer no flag is \
                         needed"
                    }
                    Container::Podman => {
                        "start this container with --security-opt seccomp=unconfined --security-opt unmask=ALL \
                         --security-opt label=disable, which lets programs in it make namespaces; on Linux 6.12 and \
                         newer no flag is needed"
                    }
                    Container::Kubernetes => {
                        "in the pod's specification set hostUsers: false, and in the container's securityContext \
                         procMount: Unmasked and seccompProfile: {type: Unconfined}, which lets programs in it make \
                         namespaces; on Linux 6.12 and newer nothing is needed"
                    }
                    Container::Other => {
                        "let the container's runtime allow nested user and mount namespaces (LXC: nesting); on Linux \
                         6.12 and newer nothing is needed"
                    }
                },
            ),
            Self::OuterSandbox => (
                "another sandbox around this program forbids namespaces",
                "start ahma_mcp outside of the other sandbox; inside one that you trust, --no-sandbox or \
                 AHMA_NO_SANDBOX=1 runs commands without another",
            ),
            Self::Unknown => (
                "it is not clear what forbids namespaces here",
                "user and mount namespaces are needed, or Linux 6.12; inside another sandbox that you trust, \
                 --no-sandbox or AHMA_NO_SANDBOX=1 runs commands without one",
            ),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reason, remedy) = self.reason_and_remedy();
        write!(formatter, "{reason}: {remedy}")
    }
}

impl MachineFacts {
    /// True if the sandbox works without namespaces.
    pub(in crate::app) fn needs_no_namespaces(&self) -> bool {
        self.landlock_abi >= ABI_WITHOUT_NAMESPACES
    }

    /// True if Landlock is there, but too old for a list of ports.
    pub(in crate::app) fn lacks_port_rules(&self) -> bool {
        (1..ABI_OF_PORT_RULES).contains(&self.landlock_abi)
    }

    fn is_wsl(&self) -> bool {
        self.kernel_release.to_ascii_lowercase().contains("microsoft")
    }

    fn kernel_version(&self) -> (u32, u32) {
        let mut numbers = self
            .kernel_release
            .split(|character: char| !character.is_ascii_digit())
            .map(|digits| digits.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

#[cfg(test)]
#[path = "judgement_tests.rs"]
mod tests;
