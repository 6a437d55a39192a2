//! `--sandbox-report`: what commands may do on this machine.

use std::{fmt::Write as _, io::Write as _};

use serde_json::json;

use super::settings::Format;
use crate::shell::Launcher;

pub(crate) fn run(launcher: &Launcher, format: Format) {
    let (tier, policy) = (launcher.tier(), launcher.policy());
    let text = match format {
        Format::Json => {
            let report = json!({ "tier": tier, "landlock_abi": launcher.landlock_abi(), "policy": policy });
            format!("{report:#}\n")
        }
        Format::Text => {
            let mut text = String::new();
            let _ = writeln!(
                text,
                "tier: {} (Landlock ABI {})",
                tier.name(),
                launcher.landlock_abi()
            );
            let _ = writeln!(text, "scope: {}", policy.scope.display());
            let _ = writeln!(text, "network: {:?}", policy.network);
            for grant in &policy.grants {
                let _ = writeln!(
                    text,
                    "{:?}: {} ({})",
                    grant.access,
                    grant.path.display(),
                    grant.reason
                );
            }
            for path in &policy.protected {
                let _ = writeln!(text, "protected: {}", path.display());
            }
            text
        }
    };
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
