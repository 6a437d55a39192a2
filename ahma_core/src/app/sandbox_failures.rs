//! Failures to set up the sandbox, each with the remedy for this machine.

use super::{
    exit::{Exit, Failure, chain},
    obstacle::{MachineFacts, Obstacle, seatbelt_remedy},
};
use crate::{
    jail::JailError,
    sandbox::{Exposed, Network, PolicyError, Tier},
    shell::{SelfTestError, StartError},
};

/// Reason why a server without a sandbox starts only with `--no-sandbox`.
const RISK: &str =
    "without a sandbox commands could change and send away all that you can, so the server does not start";

pub(super) fn failed_self_test(error: &SelfTestError, tier: Tier) -> Failure {
    let hint = match (error, tier) {
        (SelfTestError::Leaks { .. }, _) => {
            "please report this with the output of uname -a; --no-sandbox runs commands without a sandbox"
        }
        (_, Tier::Full) => {
            "--sandbox-tier core tries another way; inside another sandbox that you trust, --no-sandbox or \
             AHMA_NO_SANDBOX=1 runs commands without one"
        }
        (_, Tier::Core | Tier::Seatbelt | Tier::Off) => {
            "another sandbox around this one may forbid it; inside one that you trust, --no-sandbox or \
             AHMA_NO_SANDBOX=1 runs commands without one"
        }
    };
    Failure::new(Exit::MissingPrerequisite, format!("{}; {RISK}", chain(error))).with_hint(hint)
}

pub(super) fn unusable_policy(error: PolicyError) -> Failure {
    let hint = match &error {
        PolicyError::Scope { .. } | PolicyError::Path { .. } => {
            "give a path that exists, or leave the flag out".to_owned()
        }
        PolicyError::Redirected { flag, end, .. } => {
            format!(
                "if that is the directory you mean, write {flag} {}",
                end.display()
            )
        }
    };
    Failure::user(chain(&error)).with_hint(hint)
}

/// Rules of the kernel only grant access: in some tiers a path below an open directory cannot be closed.
pub(super) fn readable_secrets(found: &Exposed) -> Failure {
    Failure::user(format!(
        "--deny-sensitive-reads: {} would be open to commands through {} ({})",
        found.place.display(),
        found.through.display(),
        found.reason
    ))
    .with_hint("choose a narrower directory, or leave --deny-sensitive-reads out")
}

pub(super) fn reachable_files(found: &Exposed) -> Failure {
    Failure::user(format!(
        "commands could reach {} through {} ({}), and so let themselves in or change what was recorded",
        found.place.display(),
        found.through.display(),
        found.reason
    ))
    .with_hint(
        "keep the files of --tokens-file, --tls-key and --audit-file outside of the scope and of what --allow-read \
         and --allow-write open",
    )
}

pub(super) fn no_sandbox(error: StartError, network: &Network) -> Failure {
    let refusal =
        |exit: Exit, hint: String| Failure::new(exit, format!("{}; {RISK}", chain(&error))).with_hint(hint);
    let missing = |hint: String| refusal(Exit::MissingPrerequisite, hint);
    let of_seatbelt = match &error {
        StartError::NotThisTier { tier, why } => Some((*tier, why)),
        StartError::NoTier { attempts } => attempts.last().map(|(tier, why)| (*tier, why)),
        StartError::Scope { .. } | StartError::Jail(_) => None,
    };
    if let Some((Tier::Seatbelt, why)) = of_seatbelt {
        let (exit, remedy) = seatbelt_remedy(why);
        return refusal(exit, remedy.to_owned());
    }
    let facts = MachineFacts::read();
    match &error {
        StartError::NotThisTier { .. } => missing(
            "leave out --sandbox-tier and AHMA_SANDBOX_TIER: the strongest tier that works here is taken"
                .to_owned(),
        ),
        StartError::NoTier { .. } => missing(match network {
            Network::Ports(_) if facts.lacks_port_rules() => {
                "a list of ports needs Linux 6.7; --network off and loopback work without it".to_owned()
            }
            Network::Loopback if facts.needs_no_namespaces() => format!(
                "--network off works here; for --network loopback: {}",
                Obstacle::of(&facts)
            ),
            _ => Obstacle::of(&facts).to_string(),
        }),
        StartError::Scope { .. } => {
            Failure::user(chain(&error)).with_hint("see who changes that directory, then start again")
        }
        StartError::Jail(error) => no_jail(error),
    }
}

pub(super) fn no_jail(error: &JailError) -> Failure {
    Failure::internal("the helper process that starts commands does not work", error)
}
