//! Starts the process of a child, without what is the bridge's own: its credentials, its name and its raised limit of open files.

use std::io;

use ahma_common::contract::{
    ENV_PRINCIPAL, HTTP_TOKEN_VARIABLE, HTTP_TOKENS_FILE_VARIABLE, TOKENS_FILE_VARIABLE,
};
use ahma_common::process::{ChildProcess, Pipes};
use tokio::process::Command;

use super::ChildCommand;
use crate::descriptors;

/// Credentials of the bridge.
const BRIDGE_SECRETS: [&str; 3] = [
    HTTP_TOKEN_VARIABLE,
    HTTP_TOKENS_FILE_VARIABLE,
    TOKENS_FILE_VARIABLE,
];

pub(super) fn start_process(command: &ChildCommand) -> io::Result<(ChildProcess, Pipes)> {
    let mut builder = Command::new(&command.program);
    builder
        .args(&command.args)
        .env_remove(ENV_PRINCIPAL)
        .envs(command.env.iter().map(|(name, value)| (name, value)));
    for name in BRIDGE_SECRETS {
        builder.env_remove(name);
    }
    let (process, pipes) = ChildProcess::spawn(builder)?;
    descriptors::give_back(process.pid());
    Ok((process, pipes))
}
