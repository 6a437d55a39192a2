//! From the command line to the exit code.

use std::process::ExitCode;

use clap::Parser as _;
use tokio_util::sync::CancellationToken;

use super::{
    args::Args,
    exit::{Exit, Failure},
    logging,
    settings::{Mode, Settings, Surroundings},
    signals,
    streams::{Input, Output},
};

/// The whole program, apart from the roles it plays for itself.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Success
            }
            .into();
        }
    };
    match start(args) {
        Ok(()) => Exit::Success,
        Err(failure) => failure.report(),
    }
    .into()
}

fn start(args: Args) -> Result<(), Failure> {
    let settings = Settings::resolve(args, &Surroundings::read()?)?;
    let _log = logging::start(&settings.log);
    let runtime = runtime()?;
    runtime.block_on(run(settings))
}

/// One thread: a call is a chain of short steps, and handing it from thread to thread costs more than the steps.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal("the runtime could not be started", &error))
}

async fn run(settings: Settings) -> Result<(), Failure> {
    let shutdown = CancellationToken::new();
    signals::watch(shutdown.clone())
        .map_err(|error| Failure::internal("signals could not be listened to", &error))?;
    match settings.mode {
        Mode::Stdio => {
            let _ = (Input::open(), Output::open());
            Ok(())
        }
        Mode::Http | Mode::ListTools(_) | Mode::SandboxReport(_) => Ok(()),
    }
}
