//! The log: a daily file in the user's cache directory, or stderr. Never stdout, which belongs to the protocol.

use std::{io::Write, path::Path};

use tracing_appender::{
    non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard},
    rolling::{RollingFileAppender, Rotation},
};
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use super::{exit::notice, settings::LogSettings};

/// Two weeks of daily files; enough to look back at, too little to fill a disk.
const KEPT_FILES: usize = 14;

/// Lines that wait to be written; more are dropped. Their places are made at the start: as many as
/// the library would make take 4 MB, and a tenth of the time of a start.
const WAITING_LINES: usize = 4096;

/// Writes out the rest of the log when it is dropped. None if there is no log.
pub(crate) type LogGuard = Option<WorkerGuard>;

/// Starts the log. A server whose log cannot be written serves without one.
#[must_use]
pub(crate) fn start(settings: &LogSettings) -> LogGuard {
    let opened = match &settings.directory {
        // A reader of stderr that stalls must not block the server.
        _ if settings.to_stderr => Ok(buffered(std::io::stderr())),
        None => Err("no cache directory is known, so no log is written".to_owned()),
        Some(directory) => daily_file(directory)
            .map_err(|error| format!("no log can be written to {} ({error})", directory.display())),
    };
    match opened {
        Ok((writer, worker)) => {
            let layer = tracing_subscriber::fmt::layer()
                .with_writer(writer)
                .with_ansi(settings.to_stderr && settings.colour);
            let _ = tracing_subscriber::registry()
                .with(levels(settings))
                .with(layer)
                .try_init();
            Some(worker)
        }
        Err(why) => {
            notice(format_args!("warning: {why}; --log-to-stderr shows it"));
            None
        }
    }
}

/// Ours in some detail, libraries only when something is wrong.
fn levels(settings: &LogSettings) -> Targets {
    if settings.debug {
        Targets::new()
            .with_default(LevelFilter::INFO)
            .with_target("ahma", LevelFilter::DEBUG)
            .with_target("rmcp", LevelFilter::DEBUG)
    } else {
        Targets::new()
            .with_default(LevelFilter::WARN)
            .with_target("ahma", LevelFilter::INFO)
            // Events of sessions, where no file is named for them.
            .with_target("audit", LevelFilter::INFO)
    }
}

fn daily_file(directory: &Path) -> Result<(NonBlocking, WorkerGuard), Box<dyn std::error::Error>> {
    let mut builder = std::fs::DirBuilder::new();
    // Commands and paths in the log are the user's own business.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory)?;
    let appender = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("ahma_mcp")
        .filename_suffix("log")
        .max_log_files(KEPT_FILES)
        .build(directory)?;
    Ok(buffered(appender))
}

fn buffered(writer: impl Write + Send + 'static) -> (NonBlocking, WorkerGuard) {
    NonBlockingBuilder::default()
        .buffered_lines_limit(WAITING_LINES)
        .finish(writer)
}
