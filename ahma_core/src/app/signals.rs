//! SIGTERM, SIGINT, SIGQUIT and SIGHUP end a server the way the end of input does, and break off everything else.

use std::{
    future::{Future, pending},
    io::{IsTerminal as _, Write as _},
    process::ExitCode,
};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::exit::{Failure, signalled};

/// Waits for the first signal that asks the program to end, and passes it on as `shutdown`.
///
/// Handlers are in place when this returns, so no signal is lost; a second one does not kill the clean-up.
pub(crate) fn watch(shutdown: CancellationToken) -> Result<(), Failure> {
    let first = first()?;
    tokio::spawn(async move {
        let kind = tokio::select! {
            kind = first => kind,
            () = shutdown.cancelled() => return,
        };
        heed(kind);
        shutdown.cancel();
    });
    Ok(())
}

/// The same in two steps: the first signal asks to leave in good order, the second not to wait any longer.
#[cfg(feature = "bridge")]
pub(crate) fn watch_twice(leave: CancellationToken, at_once: CancellationToken) -> Result<(), Failure> {
    let first = first()?;
    tokio::spawn(async move {
        heed(first.await);
        leave.cancel();
        // The handlers are in place since the first.
        if let Ok(second) = listen() {
            heed(second.await);
            at_once.cancel();
        }
    });
    Ok(())
}

/// For what ends before it is done: the code that says so.
pub(crate) fn broken_off_by(kind: SignalKind) -> ExitCode {
    heed(kind);
    signalled(kind.as_raw_value()).into()
}

fn heed(kind: SignalKind) {
    // The terminal has written ^C, and a prompt would stand right behind it.
    if kind == SignalKind::interrupt() && std::io::stderr().is_terminal() {
        let _ = writeln!(std::io::stderr());
    }
    tracing::info!(signal = kind.as_raw_value(), "asked to end");
}

/// The first signal that asks the program to end. Handlers are in place when this returns.
pub(crate) fn first() -> Result<impl Future<Output = SignalKind>, Failure> {
    listen().map_err(|error| Failure::internal("signals cannot be listened to", &error))
}

fn listen() -> std::io::Result<impl Future<Output = SignalKind>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let hangup = unless_ignored(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => SignalKind::terminate(),
            _ = interrupt.recv() => SignalKind::interrupt(),
            _ = quit.recv() => SignalKind::quit(),
            () = received(hangup) => SignalKind::hangup(),
        }
    })
}

/// A hang-up that was ignored at start, as `nohup` does it, stays ignored.
fn unless_ignored(kind: SignalKind) -> std::io::Result<Option<Signal>> {
    // SAFETY: a zeroed sigaction is a valid one, and the call only writes to it.
    let is_ignored = unsafe {
        let mut current: libc::sigaction = std::mem::zeroed();
        libc::sigaction(kind.as_raw_value(), std::ptr::null(), &raw mut current) == 0
            && current.sa_sigaction == libc::SIG_IGN
    };
    (!is_ignored).then(|| signal(kind)).transpose()
}

async fn received(signal: Option<Signal>) {
    match signal {
        Some(mut signal) => drop(signal.recv().await),
        None => pending().await,
    }
}
