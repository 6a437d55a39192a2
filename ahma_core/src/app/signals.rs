//! SIGTERM, SIGINT and SIGHUP end the program the way the end of input does.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Waits for the first signal that asks the program to end, and passes it on as `shutdown`.
///
/// Handlers are in place when this returns, so no signal is lost; a second one does not kill the clean-up.
pub(crate) fn watch(shutdown: CancellationToken) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            _ = hangup.recv() => "SIGHUP",
            () = shutdown.cancelled() => return,
        };
        tracing::info!(signal = name, "asked to end");
        shutdown.cancel();
    });
    Ok(())
}
