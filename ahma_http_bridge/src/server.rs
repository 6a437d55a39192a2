//! The listener: accepts connections within a bound, serves them, and drains them at the end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::bridge::Bridge;
use crate::child::ChildFactory;
use crate::http::guard::WebGuard;
use crate::routes;
use crate::settings::{BridgeSettings, Limits, Times};

/// A machine out of descriptors gets some back when connections end, not when we ask again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves MCP on `listener` until `shutdown`; when this returns, no child is left.
pub async fn serve(
    listener: TcpListener,
    settings: BridgeSettings,
    factory: Arc<dyn ChildFactory>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let guard = WebGuard::new(
        listener.local_addr()?,
        &settings.allowed_hosts,
        &settings.allowed_origins,
    );
    let (times, limits) = (settings.times, settings.limits);
    let bridge = Bridge::new(settings, factory, shutdown.clone());
    bridge.warm_up();
    bridge.tasks.spawn(Arc::clone(&bridge).sweep());

    let service = TowerToHyperService::new(routes::router(&bridge, guard));
    let http = connection_builder(times, limits);
    let places = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "no connection accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Over the bound a connection is closed at once: waiting for a place would stop everybody.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        prepare(&stream);
        let connection = http
            .serve_connection(TokioIo::new(stream), service.clone())
            .into_owned();
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A client that breaks off is its own affair.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    // Ends the event streams too, or the connections would never be done.
    let ended = tokio::spawn(async move { bridge.end().await });
    let _ = tokio::time::timeout(times.drain, graceful.shutdown()).await;
    ended.await.map_err(io::Error::other)
}

fn connection_builder(times: Times, limits: Limits) -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(times.head)
        // Hyper asks for at least 8 KiB.
        .max_buf_size(limits.head_bytes.max(8 << 10));
    http.http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(times.keep_alive);
    http
}

fn prepare(stream: &TcpStream) {
    // Without this a small answer may wait 40 ms for the acknowledgement of the one before.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
}
