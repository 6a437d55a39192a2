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
    match subcommand {
        Subcommand::Init(own) => {
            let environment = Environment::read()?;
            let flags = args.repeatable.clone();
            let settings = Settings::resolve(args, &environment)?.of_the_project();
            init::run(&own, &settings, &flags, &environment)
        }
        Subcommand::Packs(own) => packs::run(&own),
        Subcommand::Doctor(own) => doctor::run(&own, args),
        Subcommand::Run(own) => run_tool::run(own, Settings::resolve(args, &Environment::read()?)?),
        Subcommand::Record(own) => run_tool::record(own, Settings::resolve(args, &Environment::read()?)?),
        Subcommand::History(own) => history::run(own, args),
        #[cfg(feature = "bridge")]
        Subcommand::Console(own) => super::console::run(&own, args),
        #[cfg(feature = "bridge")]
        Subcommand::Token(task) => super::credentials::token(task, args.http.tokens_file),
        #[cfg(feature = "bridge")]
        Subcommand::Admin(task) => super::admin::run(task),
        #[cfg(feature = "bridge")]
        Subcommand::Audit(task) => super::credentials::audit(task),
        #[cfg(feature = "cluster")]
        Subcommand::Worker(own) => {
            super::cluster::worker(&own, Settings::resolve(args, &Environment::read()?)?)
        }
        #[cfg(feature = "cluster")]
        Subcommand::Cluster(task) => super::cluster::administer(&task, &args.cluster),
        #[cfg(feature = "client")]
        Subcommand::Login(own) => super::remote::login(&own, args),
        #[cfg(feature = "client")]
        Subcommand::Logout(own) => super::remote::logout(&own, args),
        Subcommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::completed(), "ahma_mcp", &mut script);
            print(script)?;
            Ok(Exit::Success.into())
        }
        Subcommand::Man => {
            let page = man::page()
                .map_err(|error| Failure::internal("the manual page cannot be written", &error))?;
            print(page)?;
            Ok(Exit::Success.into())
        }
    }
}
