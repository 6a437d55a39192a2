//! The kernel, the wall and PATH.

use std::path::Path;

use super::check::Check;
use crate::{
    app::{confine::Wall, init::find_on_path},
    sandbox::{SandboxReport, Tier},
};

pub(super) fn kernel() -> Check {
    let name = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    Check::ok(
        "kernel",
        format!(
            "{} {} on {}",
            text(name.sysname()),
            text(name.release()),
            text(name.machine())
        ),
    )
}

/// The wall stands; whether it holds is tried.
pub(super) async fn sandbox(wall: &Wall) -> Vec<Check> {
    const AREA: &str = "sandbox";
    let launcher = &wall.launcher;
    if launcher.tier() == Tier::Off {
        return vec![
            Check::warning(
                AREA,
                "switched off: commands have all rights of the user who starts the server",
            )
            .with_fix("leave out --no-sandbox and AHMA_NO_SANDBOX"),
        ];
    }
    let probes = match wall.prove().await {
        Ok(probes) => probes,
        Err(failure) => return vec![Check::failed(AREA, &failure)],
    };
    let report = SandboxReport::new(
        launcher.tier(),
        launcher.landlock_abi(),
        launcher.policy(),
        probes,
    );
    let mut checks = vec![Check::ok(
        AREA,
        format!(
            "tier {}, Landlock ABI {}, network {}; {} escapes were tried and contained",
            report.tier.name(),
            report.landlock_abi,
            wall.note.network,
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
            Check::note(AREA, format!("the full tier would also see to it that {}", left_out.join("; "))).with_fix(
                "for the full tier allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 and, where \
                 AppArmor restricts them, kernel.apparmor_restrict_unprivileged_userns=0",
            ),
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
                    format!(
                        "`{}` lets a project put programs in the place of others",
                        directory.display()
                    ),
                )
                .with_fix("take it out of PATH"),
            );
        }
    }
    checks.push(match find_on_path("ahma_mcp") {
        Some(path) => Check::ok(AREA, format!("ahma_mcp is {}", path.display())),
        None => Check::warning(
            AREA,
            "ahma_mcp is not on it, so clients cannot start it by its name",
        )
        .with_fix("cargo install --path ahma_core, or give clients the whole path as ahma_mcp init does"),
    });
    checks
}
