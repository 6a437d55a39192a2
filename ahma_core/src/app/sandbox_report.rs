//! `--sandbox-report`: what commands may do on this machine, and what happened when they tried more.

use super::{
    active_sandbox::ActiveSandbox,
    exit::{Failure, print},
    settings::Format,
};

pub(crate) async fn run(sandbox: &ActiveSandbox, format: Format) -> Result<(), Failure> {
    let report = sandbox.report(sandbox.prove().await?);
    let text = match format {
        Format::Json => serde_json::to_string_pretty(&report)
            .map_err(|error| Failure::internal("the report cannot be written as JSON", &error))?,
        Format::Text | Format::Cost => report.to_string(),
    };
    print(format!("{}\n", text.trim_end()))
}
