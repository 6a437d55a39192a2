//! SIGTERM, SIGINT and SIGHUP end the program the way the end of input does.

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Waits for the first signal that asks the program to end, and passes it on as `shutdown`.
///
/// Handlers are in place when this returns, so no signal is lost; a second one does not kill the clean-up.
pub(crate) fn watch(shutdown: CancellationToken) -> std::io::Result<()> {
    let first = first()?;
    tokio::spawn(async move {
        let kind = tokio::select! {
            kind = first => kind,
            () = shutdown.cancelled() => return,
        };
        tracing::info!(signal = kind.as_raw_value(), "asked to end");
        shutdown.cancel();
    });
    Ok(())
}

/// The first signal that asks the program to end. Handlers are in place when this returns.
pub(crate) fn first() -> std::io::Result<impl Future<Output = SignalKind>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => SignalKind::terminate(),
            _ = interrupt.recv() => SignalKind::interrupt(),
            _ = hangup.recv() => SignalKind::hangup(),
        }
    })
}
