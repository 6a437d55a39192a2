//! `ahma_mcp console`: pages that show the operations of all servers of this user.

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{
    active_sandbox,
    args::Args,
    exit::{Failure, notice},
    run::runtime,
    settings::{Environment, Settings},
    signals,
    subcommands::ConsoleArgs,
};
use crate::console::{Console, ConsoleSettings};

pub(super) fn run(own: &ConsoleArgs, args: Args) -> Result<(), Failure> {
    let settings = Settings::resolve(args, &Environment::read()?)?;
    let console = ConsoleSettings {
        state_dirs: active_sandbox::history_places(&settings),
        pool: None,
        audit_file: settings.http.audit_file,
    };
    let runtime = runtime()?;
    let served = runtime.block_on(serve(own, console));
    // A query of the history cannot be interrupted.
    runtime.shutdown_background();
    served
}

async fn serve(own: &ConsoleArgs, settings: ConsoleSettings) -> Result<(), Failure> {
    let shutdown = CancellationToken::new();
    signals::watch(shutdown.clone())?;
    let port = own.port;
    let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(|error| {
        Failure::user(format!("--port {port} cannot be used: {error}"))
            .with_hint("leave it out to take any free port")
    })?;
    let pages = Console::start(settings, shutdown.clone()).router();
    let ready = |link: &str| {
        notice(format_args!(
            "the console is at {link}\nThe link is good for one browser. Ctrl-C ends the console."
        ));
        if !own.no_open {
            open(link);
        }
    };
    ahma_http_bridge::serve_console(listener, pages, &user(), shutdown, ready)
        .await
        .map_err(|error| Failure::internal("the console failed", &error))
}

/// The name shown to agents whose work is cancelled.
fn user() -> String {
    let name = ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok());
    name.filter(|name| !name.is_empty())
        .unwrap_or_else(|| "of this machine".to_owned())
}

#[cfg(feature = "client")]
fn open(link: &str) {
    // Without a desktop there is nothing to open it with.
    let has_desktop = cfg!(target_os = "macos")
        || ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some());
    if let Ok(link) = url::Url::parse(link)
        && has_desktop
    {
        ahma_http_mcp_client::open_in_browser(&link);
    }
}

#[cfg(not(feature = "client"))]
fn open(_link: &str) {}
