//! The report of what is enforced, for people and programs.

use std::fmt;

use serde::Serialize;

use super::{Network, Platform, Policy, Tier};

/// The state of the sandbox. The tier, the interface version and the probes are what the running jail and the self-test
/// found; the policy is what the jail was told, and the promises are what that tier keeps of it.
#[derive(Debug, Clone, Serialize)]
pub struct SandboxReport {
    pub tier: Tier,
    pub landlock_abi: i32,
    pub policy: Policy,
    pub promises: Vec<Promise>,
    /// Things that need a newer kernel.
    pub kernel_limits: Vec<&'static str>,
    pub probes: Vec<Probe>,
}

/// One promise of the sandbox.
#[derive(Debug, Clone, Serialize)]
pub struct Promise {
    pub what: &'static str,
    pub enforced: bool,
    /// An attempt to break it was made at start, in vain.
    pub tried: bool,
    pub by: &'static str,
}

/// One escape that was tried at start-up, inside the real jail, and judged from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Probe {
    pub what: &'static str,
    pub verdict: ProbeOutcome,
}

/// Outcome of an attempt to escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeOutcome {
    Contained,
    Escaped,
    /// The shell has no means to try it, or the user has opened what it tries.
    NotTried,
}

impl SandboxReport {
    pub fn new(tier: Tier, landlock_abi: i32, policy: &Policy, probes: Vec<Probe>) -> Self {
        Self {
            tier,
            landlock_abi,
            policy: policy.clone(),
            promises: promises(tier, landlock_abi, policy, &probes),
            kernel_limits: kernel_limits(tier, landlock_abi),
            probes,
        }
    }

    /// Number of attempts that failed.
    pub fn contained(&self) -> usize {
        let contained = |probe: &&Probe| probe.verdict == ProbeOutcome::Contained;
        self.probes.iter().filter(contained).count()
    }
}

/// Promises that do not hold on a kernel whose Landlock is older; SECURITY.md has the table.
fn kernel_limits(tier: Tier, abi: i32) -> Vec<&'static str> {
    let limits = [
        (
            2,
            "a file that is moved to another directory is copied: Linux 5.19 can move it",
        ),
        (4, "--allow-connect and --network ports: Linux 6.7 has them"),
        (
            6,
            "unix sockets of a command's own on the open network: Linux 6.12 has them",
        ),
    ];
    let is_missing = |(since, _): &(i32, &str)| tier == Tier::Full && abi < *since;
    limits
        .into_iter()
        .filter(is_missing)
        .map(|(_, what)| what)
        .collect()
}

/// The attempts of the self-test that would break a promise.
fn attempts_against(promise: &str) -> &'static [&'static str] {
    match promise {
        WRITTEN => &[
            "write a file outside",
            "truncate a file outside",
            "remove a file outside",
            "move a file outside to another directory",
            "write to a file outside by a hard link",
        ],
        CHANGED => &["change the mode of a file outside"],
        READ | READ_OF_PEOPLE => &["read a file outside"],
        SEEN => &["look at the server's descriptors"],
        SIGNALLED => &["signal the server"],
        LOOKED_INTO => &["read the server's environment", "read the server's memory map"],
        NETWORK => &["connect over the network"],
        _ => &[],
    }
}

const WRITTEN: &str = "nothing but the scope and what is listed as writable can be written";
const CHANGED: &str = "modes, owners and times of all other files stay as they are";
const READ: &str = "nothing outside the listed paths can be read";
const READ_OF_PEOPLE: &str =
    "nothing in the home, on other volumes or among temporary files can be read, but for the listed paths";
const SEEN: &str = "other processes cannot be seen";
const SIGNALLED: &str = "other processes cannot be signalled";
const LOOKED_INTO: &str = "the server's environment and memory cannot be read";
const NETWORK: &str = "the network is limited as asked";

fn promises(tier: Tier, abi: i32, policy: &Policy, probes: &[Probe]) -> Vec<Promise> {
    let full = tier == Tier::Full;
    let on = tier != Tier::Off;
    let promise = |what: &'static str, enforced: bool, by: &'static str| {
        let is_attempt = |probe: &&Probe| attempts_against(what).contains(&probe.what);
        let mut attempts = probes.iter().filter(is_attempt).peekable();
        let was_tried = attempts.peek().is_some();
        let were_contained = attempts.all(|probe| probe.verdict == ProbeOutcome::Contained);
        Promise {
            what,
            enforced,
            tried: enforced && was_tried && were_contained,
            by,
        }
    };
    let tiers = |in_full: &'static str, in_core: &'static str| match tier {
        Tier::Full => in_full,
        Tier::Seatbelt => "Seatbelt",
        Tier::Core | Tier::Off => in_core,
    };
    let is_seatbelt = tier == Tier::Seatbelt;
    let mut promises = vec![
        promise(WRITTEN, on, tiers("Landlock, read-only mounts", "Landlock")),
        promise(CHANGED, on, tiers("read-only mounts", "the supervisor")),
        if is_seatbelt {
            promise(READ_OF_PEOPLE, on, "Seatbelt")
        } else {
            promise(READ, on, tiers("Landlock, own mount view", "Landlock"))
        },
        promise(SEEN, full, "pid namespace"),
        promise(
            SIGNALLED,
            full || is_seatbelt || (on && abi >= 6),
            tiers("pid namespace", "Landlock scope"),
        ),
        promise(
            LOOKED_INTO,
            on,
            if is_seatbelt {
                "Seatbelt"
            } else {
                "Landlock, no capabilities, not dumpable"
            },
        ),
        promise(
            "unix sockets outside the scope cannot be reached",
            on,
            tiers("mount view, seccomp", "seccomp, the supervisor, Landlock scope"),
        ),
    ];
    if is_seatbelt {
        promises.push(promise(
            "no program changes its user, and none that would can be made",
            on,
            "Seatbelt",
        ));
    } else {
        promises.extend([
            promise("no capability, also for root", on, "empty bounding set"),
            promise("dangerous system calls are refused", on, "seccomp"),
        ]);
    }
    promises.extend([
        promise(
            "files that act later stay as they are",
            on && !policy.protected.is_empty(),
            if is_seatbelt {
                "Seatbelt, guard"
            } else {
                tiers("read-only mounts, guard", "guard")
            },
        ),
        nothing_left(tier, Platform::HERE),
    ]);
    // An open network is no broken promise.
    if policy.network != Network::Open {
        promises.push(promise(
            NETWORK,
            on,
            tiers("network namespace, Landlock, seccomp", "Landlock, seccomp"),
        ));
    }
    promises
}

/// The guarantee about processes that a command started and that may have left it.
fn nothing_left(tier: Tier, platform: Platform) -> Promise {
    let (enforced, by) = match (tier, platform) {
        (Tier::Seatbelt, _) => (
            true,
            "a supervisor for each operation, which finds daemons too by the mark of their sandbox; within milliseconds",
        ),
        (Tier::Off, Platform::MacOs) => (
            false,
            "only the command's session and its visible descendants are found: daemons stay",
        ),
        (Tier::Full | Tier::Core | Tier::Off, _) => (true, "a supervisor for each operation"),
    };
    Promise {
        what: "nothing is left running after a command ends",
        enforced,
        tried: false,
        by,
    }
}

impl fmt::Display for SandboxReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tier:      {}", self.tier.name())?;
        if self.tier != Tier::Seatbelt {
            writeln!(f, "landlock:  ABI {}", self.landlock_abi)?;
        }
        writeln!(f, "scope:     {}", self.policy.scope.display())?;
        writeln!(
            f,
            "temp:      {} (private, gone with the server)",
            self.policy.visible_temp(self.tier).display()
        )?;
        let network = match self.tier {
            Tier::Off => &Network::Open,
            Tier::Full | Tier::Core | Tier::Seatbelt => &self.policy.network,
        };
        writeln!(f, "network:   {}", network_text(network, self.tier))?;
        writeln!(f, "\npromises:")?;
        for promise in &self.promises {
            let mark = if promise.enforced { "yes" } else { "NO " };
            let tried = if promise.tried { "; tried" } else { "" };
            writeln!(f, "  {mark}  {} ({}{tried})", promise.what, promise.by)?;
        }
        if self.tier == Tier::Seatbelt {
            writeln!(
                f,
                "\n\"yes\" is what macOS is asked for; on this machine only what was tried has been seen"
            )?;
        }
        if !self.kernel_limits.is_empty() {
            writeln!(f, "\nnot on this kernel:")?;
        }
        for limit in &self.kernel_limits {
            writeln!(f, "  {limit}")?;
        }
        if self.tier == Tier::Off {
            return writeln!(
                f,
                "\nno sandbox: everything is open, and nothing in the scope is protected"
            );
        }
        writeln!(f, "\nescapes tried at start:")?;
        for probe in &self.probes {
            let mark = match probe.verdict {
                ProbeOutcome::Contained => "contained",
                ProbeOutcome::Escaped => "ESCAPED",
                ProbeOutcome::NotTried => "not tried",
            };
            writeln!(f, "  {mark:9}  {}", probe.what)?;
        }
        writeln!(f, "\nopen besides the scope:")?;
        for grant in &self.policy.grants {
            writeln!(
                f,
                "  {:13} {} ({})",
                access_text(grant.access),
                grant.path.display(),
                grant.reason
            )?;
        }
        let overlay = if self.tier == Tier::Full {
            "copy-on-write"
        } else {
            "read"
        };
        for path in &self.policy.overlays {
            writeln!(f, "  {overlay:13} {} (toolchain cache)", path.display())?;
        }
        writeln!(f, "\nprotected in the scope:")?;
        for path in &self.policy.protected {
            writeln!(f, "  {}", path.display())?;
        }
        Ok(())
    }
}

fn access_text(access: super::Access) -> &'static str {
    match access {
        super::Access::Read => "read",
        super::Access::ReadExecute => "read, run",
        super::Access::Write => "read, write",
    }
}

fn network_text(network: &Network, tier: Tier) -> String {
    match network {
        Network::Loopback if tier == Tier::Seatbelt => {
            "loopback of this machine (reaches its local services)".into()
        }
        Network::Open => "open (also reaches services on this machine's loopback)".into(),
        Network::Loopback => "own loopback only".into(),
        Network::Off => "off".into(),
        Network::Ports(ports) => format!("TCP connections to ports {ports:?}"),
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
