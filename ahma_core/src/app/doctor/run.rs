//! Makes all checks and prints them.

use std::process::ExitCode;

use super::{
    check::{Check, Checks},
    machine, project,
};
use crate::app::{
    active_sandbox::start_sandbox,
    args::Args,
    exit::{Failure, print},
    logging,
    obstacle::profile_for_this_program,
    run::runtime,
    settings::{Environment, Settings},
    subcommands::DoctorArgs,
};

pub(in crate::app) fn run(args: &DoctorArgs, server: Args) -> Result<ExitCode, Failure> {
    if args.apparmor_profile {
        let profile = profile_for_this_program()
            .map_err(|error| Failure::internal("the path of this program cannot be found", &error))?;
        print(profile)?;
        return Ok(ExitCode::SUCCESS);
    }
    let environment = Environment::read()?;
    let mut checks = Checks::default();
    checks.add(machine::kernel());
    match Settings::resolve(server, &environment).map(Settings::of_the_project) {
        Ok(settings) => examine(&settings, &environment, &mut checks)?,
        Err(failure) => checks.add(Check::failed("settings", &failure)),
    }
    let text = if args.json {
        checks
            .as_json()
            .map_err(|error| Failure::internal("the checks cannot be written as JSON", &error))?
    } else {
        checks.to_string()
    };
    print(format!("{}\n", text.trim_end()))?;
    Ok(checks.exit().into())
}

/// The sandbox must be started before any thread exists, as for a server.
fn examine(settings: &Settings, environment: &Environment, checks: &mut Checks) -> Result<(), Failure> {
    let sandbox = start_sandbox(settings);
    let _log = logging::start(&settings.log);
    let runtime = runtime()?;
    let sandbox = match sandbox {
        Ok(sandbox) => {
            checks.add_all(runtime.block_on(machine::sandbox(&sandbox, settings.sandbox.tier)));
            Some(sandbox)
        }
        Err(failure) => {
            checks.add(Check::failed("sandbox", &failure));
            None
        }
    };
    checks.add_all(machine::path(&settings.sandbox.scope));
    checks.add_all(project::toolchains(&settings.sandbox.scope)?);
    match sandbox {
        Some(sandbox) => runtime.block_on(async {
            checks.add_all(project::tool_files(settings, &sandbox).await);
            sandbox.shut_down().await;
        }),
        None => checks.add(Check::note("tools", "not checked, because no command can be run")),
    }
    checks.add_all(project::clients(settings, environment.home.as_deref()));
    #[cfg(feature = "cluster")]
    if let Some(choice) = &settings.cluster {
        checks.add_all(runtime.block_on(super::cluster::checks(choice)));
    }
    Ok(())
}
