//! SIGTERM, SIGINT, SIGQUIT and SIGHUP end a server as the end of input does, and interrupt every other command.

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
        if let Some(kind) = shutdown.run_until_cancelled(first).await {
            heed(kind);
            shutdown.cancel();
        }
    });
    Ok(())
}

/// Passes on two signals: the first asks for an orderly end, the second for an immediate one.
#[cfg(feature = "bridge")]
pub(crate) fn watch_twice(leave: CancellationToken, at_once: CancellationToken) -> Result<(), Failure> {
    let mut signals = EndSignals::listen()?;
    tokio::spawn(async move {
        heed(signals.next().await);
        leave.cancel();
        heed(signals.next().await);
        at_once.cancel();
    });
    Ok(())
}

/// The exit code of a command that a signal interrupted.
pub(crate) fn broken_off_by(kind: SignalKind) -> ExitCode {
    heed(kind);
    signalled(kind.as_raw_value()).into()
}

fn heed(kind: SignalKind) {
    // The terminal has echoed ^C, and the prompt would follow on the same line.
    if kind == SignalKind::interrupt() && std::io::stderr().is_terminal() {
        let _ = writeln!(std::io::stderr());
    }
    tracing::info!(signal = kind.as_raw_value(), "asked to end");
}

/// The first signal that asks the program to end. Handlers are in place when this returns.
pub(crate) fn first() -> Result<impl Future<Output = SignalKind>, Failure> {
    let mut signals = EndSignals::listen()?;
    Ok(async move { signals.next().await })
}

/// The signals that ask the program to end. None is lost between two calls of `next`.
struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hangup: Option<Signal>,
}

impl EndSignals {
    fn listen() -> Result<Self, Failure> {
        let listen = || {
            Ok(Self {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                quit: signal(SignalKind::quit())?,
                hangup: unless_ignored(SignalKind::hangup())?,
            })
        };
        listen().map_err(|error: std::io::Error| Failure::internal("signals cannot be listened to", &error))
    }

    async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.quit.recv() => SignalKind::quit(),
            () = received(self.hangup.as_mut()) => SignalKind::hangup(),
        }
    }
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

async fn received(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => pending().await,
    }
}
