//! `ahma_list_tools`: prints the tools of one MCP server, over HTTP, from an `mcp.json`, or of a program.
//!
//! stdout is the list and nothing else; what went wrong is on stderr, with a hint.

#![forbid(unsafe_code)]

mod args;
mod print;

use std::{io::Write as _, process::ExitCode};

use ahma_common::words::visible;
use ahma_http_mcp_client::{ClientSettings, Fault, LoginMode, RemoteError, config::ServerConfig, inspect};
use args::{Args, UserError};

/// Something the user has to provide is missing: a login.
const PREREQUISITE_MISSING: u8 = 3;
const USER_ERROR: u8 = 1;
const OUR_FAULT: u8 = 4;

fn main() -> ExitCode {
    let args = Args::read();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return fail(
                OUR_FAULT,
                &format!("cannot start: {error}"),
                "this is a bug; please report it",
            );
        }
    };
    runtime.block_on(run(args))
}

async fn run(args: Args) -> ExitCode {
    let config = match args.server_config().await {
        Ok(config) => config,
        Err(UserError { message, hint }) => return fail(USER_ERROR, &message, &hint),
    };
    let settings = ClientSettings {
        tokens: args.tokens(),
        login: LoginMode::Never,
        login_command: args.login_command(),
        connect_timeout: args.timeout(),
        ..ClientSettings::default()
    };
    let inspection = match inspect(&config, &settings).await {
        Ok(inspection) => inspection,
        Err(error) => return not_listed(&error, &args, &config),
    };
    match print::print(&mut std::io::stdout().lock(), &inspection, args.format) {
        // The reader has left: `ahma_list_tools … | head` is no error.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(
            USER_ERROR,
            &format!("cannot write to stdout: {error}"),
            "is the disk full?",
        ),
        Ok(()) => ExitCode::SUCCESS,
    }
}

fn not_listed(error: &RemoteError, args: &Args, config: &ServerConfig) -> ExitCode {
    let hint = match error {
        RemoteError::LoginRequired { server, how } => {
            return fail(
                PREREQUISITE_MISSING,
                &format!("server `{server}` requires a login"),
                &format!("{how}, or name a variable that holds a token with --token-env NAME"),
            );
        }
        RemoteError::TokenFile { .. } => "choose another file for logins with --token-file".to_owned(),
        error => match args.token_hint() {
            Some(hint) if error.fault() == Fault::User => hint,
            _ if config.http.is_some() => error.http_hint().to_owned(),
            _ => "is the program installed, and does it serve MCP on stdin and stdout?".to_owned(),
        },
    };
    fail(USER_ERROR, &error.to_string(), &hint)
}

fn fail(code: u8, message: &str, hint: &str) -> ExitCode {
    // A closed stderr cannot be reported.
    let _ = writeln!(std::io::stderr(), "error: {}\nhint: {hint}", visible(message));
    ExitCode::from(code)
}
