//! What is really enforced, for people and programs.

use std::fmt;

use serde::Serialize;

use super::{Network, Policy, Tier};

/// The state of the wall. The tier, the interface version and the probes are what the running jail and the self-test
/// found; the policy is what the jail was told, and the promises are what that tier keeps of it.
#[derive(Debug, Clone, Serialize)]
pub struct SandboxReport {
    pub tier: Tier,
    pub landlock_abi: i32,
    pub policy: Policy,
    pub promises: Vec<Promise>,
    pub probes: Vec<Probe>,
}

/// One thing the wall promises.
#[derive(Debug, Clone, Serialize)]
pub struct Promise {
    pub what: &'static str,
    pub enforced: bool,
    pub by: &'static str,
}

/// One escape that was tried at start-up, inside the real jail, and judged from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Probe {
    pub what: &'static str,
    pub verdict: Verdict,
}

/// How an escape ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
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
            promises: promises(tier, landlock_abi, policy),
            probes,
        }
    }

    /// How many escapes were tried in vain.
    pub fn contained(&self) -> usize {
        let contained = |probe: &&Probe| probe.verdict == Verdict::Contained;
        self.probes.iter().filter(contained).count()
    }
}

fn promises(tier: Tier, abi: i32, policy: &Policy) -> Vec<Promise> {
    let full = tier == Tier::Full;
    let on = tier != Tier::Off;
    let promise = |what, enforced, by| Promise { what, enforced, by };
    let tiers = |in_full: &'static str, in_core: &'static str| if full { in_full } else { in_core };
    let mut promises = vec![
        promise(
            "nothing but the scope and what is listed as writable can be written",
            on,
            tiers("Landlock, read-only mounts", "Landlock"),
        ),
        promise(
            "modes, owners and times of all other files stay as they are",
            on,
            tiers("read-only mounts", "the owner process"),
        ),
        promise(
            "nothing outside the listed paths can be read",
            on,
            tiers("Landlock, own mount view", "Landlock"),
        ),
        promise("other processes cannot be seen", full, "pid namespace"),
        promise(
            "other processes cannot be signalled",
            full || (on && abi >= 6),
            tiers("pid namespace", "Landlock scope"),
        ),
        promise(
            "the server's environment and memory cannot be read",
            on,
            "Landlock, no capabilities, not dumpable",
        ),
        promise(
            "unix sockets outside the scope cannot be reached",
            on,
            tiers(
                "mount view, seccomp",
                "seccomp, the owner process, Landlock scope",
            ),
        ),
        promise("no capability, also for root", on, "empty bounding set"),
        promise("dangerous system calls are refused", on, "seccomp"),
        promise(
            "files that act later stay as they are",
            on && !policy.protected.is_empty(),
            tiers("read-only mounts, tripwire", "tripwire"),
        ),
        promise(
            "nothing is left running after a command ends",
            true,
            "an owner process for each operation",
        ),
    ];
    // An open network is no broken promise.
    if policy.network != Network::Open {
        promises.push(promise(
            "the network is limited as asked",
            on,
            tiers("network namespace, Landlock, seccomp", "Landlock, seccomp"),
        ));
    }
    promises
}

impl fmt::Display for SandboxReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tier:      {}", self.tier.name())?;
        writeln!(f, "landlock:  ABI {}", self.landlock_abi)?;
        writeln!(f, "scope:     {}", self.policy.scope.display())?;
        writeln!(
            f,
            "temp:      {} (private, gone with the server)",
            self.policy.visible_temp(self.tier).display()
        )?;
        let network = match self.tier {
            Tier::Off => &Network::Open,
            Tier::Full | Tier::Core => &self.policy.network,
        };
        writeln!(f, "network:   {}", network_text(network))?;
        writeln!(f, "\npromises:")?;
        for promise in &self.promises {
            let mark = if promise.enforced { "yes" } else { "NO " };
            writeln!(f, "  {mark}  {} ({})", promise.what, promise.by)?;
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
                Verdict::Contained => "contained",
                Verdict::Escaped => "ESCAPED",
                Verdict::NotTried => "not tried",
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

fn network_text(network: &Network) -> String {
    match network {
        Network::Open => "open (also reaches services on this machine's loopback)".into(),
        Network::Loopback => "own loopback only".into(),
        Network::Off => "off".into(),
        Network::Ports(ports) => format!("TCP connections to ports {ports:?}"),
    }
}
