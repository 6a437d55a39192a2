//! Stands in for `http` in builds without the feature `bridge`.

use super::{active_sandbox::ActiveSandbox, args::Args, exit::Failure, settings::Settings};

pub(super) fn check(_: &Args) -> Result<(), Failure> {
    Ok(())
}

pub(super) fn serve(_: Settings, _: ActiveSandbox) -> Result<(), Failure> {
    Err(Failure::user("--mode http is not part of this build")
        .with_hint("build with the feature `bridge`, or serve over stdio, which is the default"))
}
