//! `ahma_mcp doctor`: looks at everything a user may have to mend, and says how.
//!
//! Nothing is changed, and one failed check never hides the others. What the sandbox enforces is found out by the
//! same self-test that every start runs.

mod check;
mod machine;
mod project;

use std::process::ExitCode;

use super::{
    args::Args,
    confine::confine,
    exit::{Failure, print},
    logging,
    run::runtime,
    settings::{Settings, Surroundings},
    tasks::DoctorArgs,
};
use check::{Check, Checks};

pub(super) fn run(wishes: &DoctorArgs, args: Args) -> Result<ExitCode, Failure> {
    let around = Surroundings::read()?;
    let mut checks = Checks::default();
    checks.add(machine::kernel());
    match Settings::resolve(args, &around).map(Settings::of_the_project) {
        Ok(settings) => examine(&settings, &around, &mut checks)?,
        Err(failure) => checks.add(Check::failed("settings", &failure)),
    }
    let text = if wishes.json {
        checks
            .as_json()
            .map_err(|error| Failure::internal("the checks cannot be written as JSON", &error))?
    } else {
        checks.to_string()
    };
    print(format!("{}\n", text.trim_end()))?;
    Ok(checks.exit().into())
}

/// The wall is put up before any thread exists, as for a server.
fn examine(settings: &Settings, around: &Surroundings, checks: &mut Checks) -> Result<(), Failure> {
    let wall = confine(settings);
    let _log = logging::start(&settings.log);
    let runtime = runtime()?;
    let wall = match wall {
        Ok(wall) => {
            checks.add_all(runtime.block_on(machine::sandbox(&wall)));
            Some(wall)
        }
        Err(failure) => {
            checks.add(Check::failed("sandbox", &failure));
            None
        }
    };
    checks.add_all(machine::path(&settings.sandbox.scope));
    checks.add_all(project::toolchains(&settings.sandbox.scope)?);
    match wall {
        Some(wall) => runtime.block_on(async {
            checks.add_all(project::tool_files(settings, &wall).await);
            wall.take_down().await;
        }),
        None => checks.add(Check::note(
            "tools",
            "not looked for, because no command can be run",
        )),
    }
    checks.add_all(project::clients(settings, around.home.as_deref()));
    Ok(())
}
