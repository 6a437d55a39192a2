//! The sandbox that the user asks for, from flags and environment. Contradictions are refused.

use std::path::{Path, PathBuf};

use super::{
    args::{Args, NetworkArg, TierArg},
    exit::{Exit, Failure},
    scope,
    settings::Environment,
};
use crate::{
    sandbox::{Network, Platform, Tier, Toolchain, Toolchains},
    shell::TierChoice,
};

/// The sandbox that the user asks for; the tier depends on the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestedSandbox {
    /// Canonical.
    pub(crate) scope: PathBuf,
    /// The scope as the user wrote it, where that is another path.
    pub(crate) scope_aliases: Vec<PathBuf>,
    /// No scope is known yet: nothing may run.
    pub(crate) deferred: bool,
    pub(crate) tier: TierChoice,
    /// The tier that the listening process has proven for its children.
    pub(crate) proven: Option<Tier>,
    /// A program that takes the place of `sandbox-exec` in tests.
    pub(crate) sandbox_exec: Option<PathBuf>,
    pub(crate) allow_read: Vec<PathBuf>,
    pub(crate) allow_write: Vec<PathBuf>,
    pub(crate) allow_tmp: bool,
    pub(crate) pass_env: Vec<String>,
    pub(crate) toolchains: Toolchains,
    pub(crate) network: Network,
    pub(crate) trust_workspace_config: bool,
    pub(crate) deny_sensitive_reads: bool,
    /// Files of the HTTP bridge, such as tokens and audit trails, that commands must not reach.
    pub(crate) out_of_reach: Vec<PathBuf>,
    /// The server of one session among many.
    pub(crate) one_of_many: bool,
    /// Directory in which the children of one listener share results of availability checks.
    pub(crate) shared_checks: Option<PathBuf>,
    /// Warnings about these choices, printed at startup.
    pub(crate) warnings: Vec<String>,
}

pub(super) fn sandbox(args: Args, environment: &Environment) -> Result<RequestedSandbox, Failure> {
    let mut warnings = Vec::new();
    let written = environment
        .working_directory
        .join(args.sandbox_scope.as_deref().unwrap_or(Path::new("")));
    let tier = tier(&args)?;
    let scope = scope::resolve(&args, environment, &mut warnings)?;
    if args.scope_is_final && scope != written {
        return Err(scope::exchanged(&written, &scope));
    }
    let network = network(&args)?;
    if network == Network::Loopback && tier == TierChoice::Only(Tier::Core) {
        return Err(Failure::new(
            Exit::Usage,
            "--network loopback needs a network namespace, which --sandbox-tier core does not have",
        )
        .with_hint("leave --sandbox-tier out, or use --network off"));
    }
    if args.deny_sensitive_reads && tier == TierChoice::Only(Tier::Off) {
        return Err(
            Failure::new(Exit::Usage, "--no-sandbox contradicts --deny-sensitive-reads")
                .with_hint("give only one of the two"),
        );
    }
    let absolute = |paths: Vec<PathBuf>| {
        paths
            .into_iter()
            .filter(|path| !path.as_os_str().is_empty())
            .map(|path| environment.working_directory.join(path))
            .collect()
    };
    Ok(RequestedSandbox {
        scope_aliases: Some(written)
            .filter(|written| *written != scope)
            .into_iter()
            .collect(),
        scope,
        deferred: args.defer_sandbox,
        tier,
        proven: args.proven_tier.map(Tier::from),
        sandbox_exec: stand_in(args.sandbox_exec, environment.platform)?,
        network,
        toolchains: toolchains(&args.toolchains)?,
        pass_env: args
            .pass_env
            .into_iter()
            .filter(|name| !name.is_empty())
            .collect(),
        allow_read: absolute(args.allow_read),
        allow_write: absolute(args.allow_write),
        allow_tmp: args.allow_tmp,
        trust_workspace_config: args.trust_workspace_config,
        deny_sensitive_reads: args.deny_sensitive_reads,
        out_of_reach: args.out_of_reach,
        shared_checks: args.shared_checks,
        one_of_many: args.one_of_many,
        warnings,
    })
}

fn network(args: &Args) -> Result<Network, Failure> {
    let contradiction = |one: &str, other: &str| {
        Failure::new(Exit::Usage, format!("{one} contradicts {other}"))
            .with_hint("give only one of the two, as a flag or as its variable")
    };
    match (args.network, args.restrict_network, args.allow_connect.as_slice()) {
        (None | Some(NetworkArg::Ports), false, ports @ [_, ..]) => Ok(Network::Ports(ports.to_vec())),
        (_, true, [_, ..]) => Err(contradiction("--restrict-network", "--allow-connect")),
        (_, false, [_, ..]) => Err(contradiction("--network", "--allow-connect")),
        (None | Some(NetworkArg::Off), true, []) => Ok(Network::Off),
        (Some(_), true, []) => Err(contradiction("--network", "--restrict-network")),
        (None | Some(NetworkArg::Open), false, []) => Ok(Network::Open),
        (Some(NetworkArg::Loopback), false, []) => Ok(Network::Loopback),
        (Some(NetworkArg::Off), false, []) => Ok(Network::Off),
        (Some(NetworkArg::Ports), false, []) => {
            Err(Failure::new(Exit::Usage, "--network ports names no port")
                .with_hint("add --allow-connect PORT for each port, or use --network off"))
        }
    }
}

/// No sandbox only with `--no-sandbox`.
fn tier(args: &Args) -> Result<TierChoice, Failure> {
    match (args.no_sandbox, args.sandbox_tier) {
        (true, Some(_)) => Err(
            Failure::new(Exit::Usage, "--no-sandbox contradicts --sandbox-tier")
                .with_hint("give only one of the two"),
        ),
        (true, None) => Ok(TierChoice::Only(Tier::Off)),
        (false, Some(tier)) => Ok(TierChoice::Only(tier.into())),
        (false, None) => Ok(TierChoice::Highest),
    }
}

impl From<TierArg> for Tier {
    fn from(tier: TierArg) -> Self {
        match tier {
            TierArg::Full => Self::Full,
            TierArg::Core => Self::Core,
            TierArg::Seatbelt => Self::Seatbelt,
        }
    }
}

/// The program that takes the place of `sandbox-exec`.
fn stand_in(named: Option<PathBuf>, platform: Platform) -> Result<Option<PathBuf>, Failure> {
    match platform {
        Platform::MacOs if named.is_some() => {
            Err(Failure::new(Exit::Usage, "--sandbox-exec: macOS has its own").with_hint("leave it out"))
        }
        Platform::MacOs | Platform::Linux => Ok(named),
    }
}

fn toolchains(names: &[String]) -> Result<Toolchains, Failure> {
    let names: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !name.is_empty())
        .collect();
    match names.as_slice() {
        [] | ["auto"] => return Ok(Toolchains::Auto),
        ["none"] => return Ok(Toolchains::None),
        _ => {}
    }
    let known = |name: &str| {
        Toolchain::ALL
            .iter()
            .copied()
            .find(|toolchain| toolchain.name() == name)
    };
    names
        .iter()
        .map(|name| known(name).ok_or(name))
        .collect::<Result<_, _>>()
        .map(Toolchains::Only)
        .map_err(|name| {
            let all: Vec<_> = Toolchain::ALL.iter().map(|toolchain| toolchain.name()).collect();
            Failure::new(Exit::Usage, format!("--toolchains {name} is not known"))
                .with_hint(format!("give auto, none, or a list of {}", all.join(", ")))
        })
}
