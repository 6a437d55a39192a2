//! `--server-url`: one remote server on stdin and stdout, for clients that can only start programs.
//!
//! Nothing is run for the client here, so there is no sandbox.

use std::path::Path;

use ahma_common::words::visible;
use ahma_http_mcp_client::{
    ClientSettings, Fault, FrontNews, LoginCommand, LoginMode, RemoteError,
    config::{self, ConfigTrust, HttpEndpoint, ServerConfig, StdioCommand, TransportChoice, Variables},
    shown_address,
};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    args::{RemoteArgs, SourceArgs},
    say::tell,
    source::{client_settings, login_with_tokens},
};
use crate::app::{
    args::{Args, ModeArg},
    exit::{Exit, Failure, chain},
    logging,
    run::runtime,
    settings::{Environment, LogSettings},
    signals,
    streams::{StandardInput, StandardOutput},
};

pub(crate) fn front(url: &Url, args: &Args) -> Result<(), Failure> {
    if args.mode != ModeArg::Stdio {
        return Err(
            Failure::new(Exit::Usage, "--server-url contradicts --mode").with_hint(
                "a front serves on stdin and stdout; ahma_http_bridge serves such a program over HTTP",
            ),
        );
    }
    let server = server(url, &args.remote)?;
    let _log = logging::start(&LogSettings::new(args, &Environment::read()?));
    let runtime = runtime()?;
    let done = runtime.block_on(serve(server, &args.remote));
    // A terminal or another user's pipe is read by a thread that cannot be stopped.
    runtime.shutdown_background();
    done
}

async fn serve(server: ServerConfig, args: &RemoteArgs) -> Result<(), Failure> {
    let shutdown = CancellationToken::new();
    signals::watch(shutdown.clone())?;
    let login = if args.no_browser {
        LoginMode::Link
    } else {
        LoginMode::Browser
    };
    let (server, login_command) = described(server, &args.source).await;
    let settings = ClientSettings {
        login_command,
        ..client_settings(&args.source, args.max_retries, login)
    };
    let (input, output) = (StandardInput::open(), StandardOutput::open());
    let serving = ahma_http_mcp_client::front(input, output, &server, &settings, tell_news);
    tokio::select! {
        served = serving => served.map_err(|error| failure(&error, &server, &settings)),
        () = shutdown.cancelled() => Ok(()),
    }
}

fn tell_news(news: FrontNews<'_>) {
    match news {
        FrontNews::LoginRequired(link) => tell(&format!("to log in, open {link}")),
        // Another transport or program replaces the one that was asked for.
        FrontNews::Connected(report) if report.attempts.len() > 1 => {
            let attempts: Vec<String> = report.attempts.iter().map(ToString::to_string).collect();
            tell(&format!("connected by {}: {}", report.step, attempts.join("; ")));
        }
        FrontNews::Connected(_) => {}
    }
}

/// The server with the headers and the registered client of a named file.
async fn described(server: ServerConfig, source: &SourceArgs) -> (ServerConfig, LoginCommand) {
    let plain = login_with_tokens(source);
    let (Some(file), Some(endpoint)) = (&source.mcp_config, &server.http) else {
        return (server, plain);
    };
    let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
    let variables = Variables::of_this_process(file.parent().map(Path::to_owned));
    let mut loaded = config::load(&file, ConfigTrust::Named, &variables).await;
    let is_described =
        |entry: &ServerConfig| entry.http.as_ref().is_some_and(|found| found.url == endpoint.url);
    let Some(index) = loaded.servers.iter().position(is_described) else {
        for problem in &loaded.problems {
            tell(&format!("warning: {problem}"));
        }
        tell(&format!(
            "warning: {} names no server with this address, so nothing in it is used",
            file.display()
        ));
        return (server, plain);
    };
    let entry = loaded.servers.swap_remove(index);
    let command = plain.with("--mcp-config", &file.display().to_string());
    let described = ServerConfig {
        name: entry.name,
        http: entry.http,
        ..server
    };
    (described, command)
}

/// The server at `url`, and the program that may replace it.
fn server(url: &Url, args: &RemoteArgs) -> Result<ServerConfig, Failure> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Failure::new(
            Exit::Usage,
            format!("--server-url {url} is not an http or https address"),
        )
        .with_hint("write it as https://host/path"));
    }
    let stdio = args.program.split_first().map(|(program, words)| StdioCommand {
        program: program.clone(),
        args: words.to_vec(),
        // The user gave this command line, so the program gets our environment; but it must not become a front itself.
        env: std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name != "AHMA_SERVER_URL")
            .collect(),
        working_directory: None,
    });
    let transport = if args.transport_fallback {
        TransportChoice::Auto
    } else {
        args.transport
    };
    let usage = |what: &str, hint: &str| Err(Failure::new(Exit::Usage, what).with_hint(hint));
    match (&stdio, transport) {
        (None, TransportChoice::Stdio) => {
            return usage(
                "--transport stdio names no program",
                "write the program after `--`: ahma_mcp --server-url URL --transport stdio -- PROGRAM",
            );
        }
        (Some(_), TransportChoice::Auto) if !args.transport_fallback => {
            return usage(
                "a program is given after `--`, but would not be used",
                "add --transport-fallback to start it when HTTP fails, or --transport stdio to use it alone",
            );
        }
        _ => {}
    }
    Ok(ServerConfig {
        // The name for `ahma_mcp login`, without credentials that a model must not read.
        name: shown_address(url),
        transport,
        http: Some(HttpEndpoint::new(url.clone())),
        stdio,
    })
}

fn failure(error: &RemoteError, server: &ServerConfig, settings: &ClientSettings) -> Failure {
    let what = visible(&chain(error));
    match error {
        RemoteError::LoginRequired { .. } | RemoteError::Login { .. } => {
            let command = settings.login_command.to(&server.name);
            Failure::new(Exit::MissingPrerequisite, what)
                .with_hint(format!("run `{command}`, then start again"))
        }
        RemoteError::TokenFile { .. } => {
            Failure::user(what).with_hint("choose another file for logins with --token-file")
        }
        error if error.fault() == Fault::Client => {
            Failure::user(what).with_hint("start it from an MCP client, which speaks on stdin and stdout")
        }
        _ => Failure::user(what).with_hint(error.http_hint()),
    }
}
