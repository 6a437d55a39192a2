//! From a subcommand to its exit code.

use std::process::ExitCode;

use super::{
    args::Args,
    doctor,
    exit::{Exit, Failure, print},
    history, init, man, packs, run_tool,
    settings::{Environment, Settings},
    subcommands::Subcommand,
};

pub(super) fn dispatch(subcommand: Subcommand, args: Args) -> Result<ExitCode, Failure> {
    let settings = |args: Args| Settings::resolve(args, &Environment::read()?);
    match subcommand {
        Subcommand::Doctor(own) => return doctor::run(&own, args),
        Subcommand::Run(own) => return run_tool::run(own, settings(args)?),
        Subcommand::Record(own) => return run_tool::record(own, settings(args)?),
        Subcommand::Init(own) => {
            let environment = Environment::read()?;
            let flags = args.repeatable.clone();
            let settings = Settings::resolve(args, &environment)?.of_the_project();
            init::run(&own, &settings, &flags, &environment)
        }
        Subcommand::Packs(own) => packs::run(&own),
        Subcommand::History(own) => history::run(own, args),
        #[cfg(feature = "bridge")]
        Subcommand::Console(own) => super::console::run(&own, args),
        #[cfg(feature = "bridge")]
        Subcommand::Token(command) => super::credentials::token(command, args.http.tokens_file),
        #[cfg(feature = "bridge")]
        Subcommand::Admin(command) => super::admin::run(command),
        #[cfg(feature = "bridge")]
        Subcommand::Audit(command) => super::credentials::audit(command),
        #[cfg(feature = "cluster")]
        Subcommand::Worker(own) => return super::cluster::worker(&own, settings(args)?),
        #[cfg(feature = "cluster")]
        Subcommand::Cluster(command) => super::cluster::administer(&command, &args.cluster),
        #[cfg(feature = "client")]
        Subcommand::Login(own) => super::remote::login(&own, args),
        #[cfg(feature = "client")]
        Subcommand::Logout(own) => super::remote::logout(&own, args),
        Subcommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::completed(), "ahma_mcp", &mut script);
            print(script)
        }
        Subcommand::Man => {
            let page = man::page();
            print(page.map_err(|error| Failure::internal("the manual page cannot be written", &error))?)
        }
    }?;
    Ok(Exit::Success.into())
}
