//! `--sandbox-report`: what commands may do on this machine, and what happened when they tried more.

use super::{
    confine::Wall,
    exit::{Failure, print},
    settings::Format,
};
use crate::sandbox::SandboxReport;

pub(crate) async fn run(wall: &Wall, format: Format) -> Result<(), Failure> {
    let launcher = &wall.launcher;
    let probes = wall.prove().await?;
    let report = SandboxReport::new(
        launcher.tier(),
        launcher.landlock_abi(),
        launcher.policy(),
        probes,
    );
    let text = match format {
        Format::Json => serde_json::to_string_pretty(&report)
            .map_err(|error| Failure::internal("the report cannot be written as JSON", &error))?,
        Format::Text => report.to_string(),
    };
    print(format!("{}\n", text.trim_end()))
}
