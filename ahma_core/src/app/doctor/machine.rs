//! Checks of the kernel, the sandbox and PATH.

use std::path::Path;

use super::check::Check;
use crate::{
    app::{
        active_sandbox::ActiveSandbox,
        obstacle::{MachineFacts, Obstacle},
        project::find_on_path,
    },
    sandbox::{SandboxReport, Tier},
    shell::TierChoice,
};

pub(super) fn kernel() -> Check {
    let name = rustix::system::uname();
    let [system, release, machine] =
        [name.sysname(), name.release(), name.machine()].map(|part| part.to_string_lossy());
    Check::ok("kernel", format!("{system} {release} on {machine}"))
}

/// Runs the self-test of the started sandbox.
pub(super) async fn sandbox(sandbox: &ActiveSandbox, asked: TierChoice) -> Vec<Check> {
    const AREA: &str = "sandbox";
    let launcher = &sandbox.launcher;
    if launcher.tier() == Tier::Off {
        return vec![
            Check::warning(
                AREA,
                "off: commands have all rights of the user who starts the server",
            )
            .with_fix("leave out --no-sandbox and AHMA_NO_SANDBOX"),
        ];
    }
    let probes = match sandbox.prove().await {
        Ok(probes) => probes,
        Err(failure) => return vec![Check::failed(AREA, &failure)],
    };
    let report = sandbox.report(probes);
    let mut checks = vec![Check::ok(
        AREA,
        format!(
            "tier {}{}, network {}; {} escape attempts contained",
            report.tier.name(),
            match report.tier {
                Tier::Full | Tier::Core => format!(", Landlock ABI {}", report.landlock_abi),
                Tier::Seatbelt | Tier::Off => String::new(),
            },
            sandbox.note.network,
            report.contained()
        ),
    )];
    if report.tier == Tier::Core {
        let full = SandboxReport::new(Tier::Full, report.landlock_abi, launcher.policy(), Vec::new());
        let left_out: Vec<&str> = (full.promises.iter().zip(&report.promises))
            .filter(|(full, here)| full.enforced && !here.enforced)
            .map(|(full, _)| full.what)
            .collect();
        checks.push(
            Check::note(
                AREA,
                format!("the full tier would also ensure that {}", left_out.join("; ")),
            )
            .with_fix(match asked {
                TierChoice::Only(_) => "leave out --sandbox-tier and AHMA_SANDBOX_TIER".to_owned(),
                TierChoice::Highest => Obstacle::of(&MachineFacts::read()).to_string(),
            }),
        );
    }
    checks
}

pub(super) fn path(scope: &Path) -> Vec<Check> {
    const AREA: &str = "PATH";
    let mut checks = Vec::new();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for directory in std::env::split_paths(&path) {
        if directory.is_relative() || directory.starts_with(scope) {
            checks.push(
                Check::warning(
                    AREA,
                    format!("`{}` lets a project shadow other programs", directory.display()),
                )
                .with_fix("remove it from PATH"),
            );
        }
    }
    checks.push(match find_on_path("ahma_mcp") {
        Some(path) => Check::ok(AREA, format!("ahma_mcp is {}", path.display())),
        None => Check::warning(
            AREA,
            "ahma_mcp is not on PATH, so clients cannot start it by name",
        )
        .with_fix(
            "cargo install --path ahma_core, or use the full path in client entries, as ahma_mcp init does",
        ),
    });
    checks
}
