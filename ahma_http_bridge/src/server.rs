//! The listener: accepts connections within a bound, serves them, and drains them at the end.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::activity::{Activity, Uses};
use crate::auth::AuthSettings;
use crate::bridge::Bridge;
use crate::child::ChildFactory;
use crate::descriptors::room_for_connections;
use crate::http::guard::WebGuard;
use crate::maintenance::maintain;
use crate::peer::{Peer, PeerCheck};
use crate::routes::{self, OperatorSide, console::ConsoleDoor};
use crate::serve_error::ServeError;
use crate::settings::{BridgeSettings, Limits, Times};
use crate::stall::{MeasuredBody, StallLimit};
use crate::tls::Certificate;

/// A machine out of descriptors gets some back when connections end, not when we ask again at once.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Time for connections to deliver the last answers.
const LAST_RESPONSES_TIMEOUT: Duration = Duration::from_secs(2);

/// The two ways to end a bridge.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Take no new work, let what runs end for a while, then stop it.
    pub leave: CancellationToken,
    /// Do not wait any longer for what runs.
    pub at_once: CancellationToken,
}

impl From<CancellationToken> for Shutdown {
    fn from(leave: CancellationToken) -> Self {
        Self {
            leave,
            ..Self::default()
        }
    }
}

/// Serves MCP on `listener` until `shutdown`; when this returns, no child is left.
///
/// `ready` is called once nothing in the settings can be wrong any more: only then is the address worth telling.
pub async fn serve(
    listener: TcpListener,
    settings: BridgeSettings,
    factory: Arc<dyn ChildFactory>,
    operators: Option<OperatorSide>,
    shutdown: impl Into<Shutdown>,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let Shutdown {
        leave: shutdown,
        at_once,
    } = shutdown.into();
    let address = listener.local_addr()?;
    settings.check_exposure(address)?;
    let guard = WebGuard::new(address, &settings.allowed_hosts, &settings.allowed_origins);
    let certificate = settings.tls.clone().map(Certificate::load).transpose()?;
    let tls = certificate
        .as_ref()
        .map(|certificate| certificate.acceptor())
        .transpose()?;
    let (times, limits) = (settings.times, settings.limits);
    let places = room_for_connections(limits.connections, limits.sessions);
    let peers = PeerCheck::new();
    // With authentication the process at the other end matters to the console alone.
    let peer_check = matches!(settings.auth, AuthSettings::None).then(|| Arc::clone(&peers));
    let bridge = Bridge::new(settings, factory, shutdown.clone())?;
    bridge.start_shared();
    bridge.tasks.spawn(Arc::clone(&bridge).sweep());
    bridge.tasks.spawn(Arc::clone(&bridge).look_after_records());
    bridge.tasks.spawn(maintain(Arc::clone(&bridge), certificate));

    let operators = operators.map(|side| {
        let door = ConsoleDoor::of_bridge(&bridge, address.port(), peers);
        OperatorSide {
            pages: routes::console::router(&Arc::new(door), side.pages),
            ..side
        }
    });
    let handler = Arc::new(ConnectionHandler {
        service: TowerToHyperService::new(routes::router(&bridge, guard, operators)),
        http1: http1_builder(times, limits),
        http2: http2_builder(times, limits),
        tls,
        handshake: times.head,
        idle: times.head,
        write: times.write,
        peer_check,
        bridge: Arc::clone(&bridge),
    });
    bridge.record_started(address);
    ready(address);
    let places = Arc::new(Semaphore::new(places));
    let graceful = GracefulShutdown::new();
    // Connections are accepted to the end, so that a client hears when to come back.
    let mut drained = pin!(async {
        shutdown.cancelled().await;
        bridge.drain(times.drain, &at_once).await;
    });
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut drained => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "no connection accepted");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        // Over the bound a connection is closed at once: waiting for a place would stop all others.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let (handler, watcher) = (Arc::clone(&handler), graceful.watcher());
        tokio::spawn(async move {
            handler.bridge.metrics.connected();
            handler.serve(stream, peer, watcher).await;
            handler.bridge.metrics.disconnected();
            drop(place);
        });
    }
    drop(listener);
    let connections = tokio::spawn(graceful.shutdown());
    // Ends the event streams too, or the connections would never be done.
    bridge.end().await;
    // A client that does not read its last answer cannot hold us.
    let _ = tokio::time::timeout(LAST_RESPONSES_TIMEOUT, connections).await;
    Ok(())
}

/// HTTP/2 is agreed on in the TLS handshake; without TLS there is HTTP/1.1 only, so that no client can hold
/// a connection open by not saying which it speaks.
const HTTP_2: &[u8] = b"h2";

/// Serves connections.
struct ConnectionHandler {
    service: TowerToHyperService<Router>,
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    tls: Option<TlsAcceptor>,
    handshake: Duration,
    /// Time that a connection may be open without a request.
    idle: Duration,
    /// Time that a client may go without reading.
    write: Duration,
    /// Without authentication.
    peer_check: Option<Arc<PeerCheck>>,
    bridge: Arc<Bridge>,
}

impl ConnectionHandler {
    async fn serve(&self, stream: TcpStream, peer: SocketAddr, watcher: Watcher) {
        // Without this a small answer may wait 40 ms for the acknowledgement of the one before.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        let Some(service) = self.service_for(&stream, peer).await else {
            return;
        };
        let stream = StallLimit::new(stream, self.write);
        match &self.tls {
            None => self.converse(stream, service, watcher).await,
            Some(tls) => match tokio::time::timeout(self.handshake, tls.accept(stream)).await {
                Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(HTTP_2) => {
                    self.converse_in_streams(stream, service).await;
                    drop(watcher);
                }
                Ok(Ok(stream)) => self.converse(stream, service, watcher).await,
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake"),
                Err(_) => tracing::debug!("a TLS handshake took too long"),
            },
        }
    }

    /// The service for a connection, decided before anything of it is read; none for one that is gone already.
    async fn service_for(&self, stream: &TcpStream, peer: SocketAddr) -> Option<PeerService> {
        let Ok(ours) = stream.local_addr() else {
            return None;
        };
        let judged = match &self.peer_check {
            Some(peer_check) => peer_check.judge(peer, ours).await,
            None => Ok(()),
        };
        let service = match judged {
            Ok(()) => self.service.clone(),
            Err(reason) => {
                tracing::warn!(%peer, %reason, "a connection is refused");
                TowerToHyperService::new(routes::refusing(&self.bridge, reason))
            }
        };
        Some(PeerService {
            service,
            peer: Peer { address: peer, ours },
        })
    }

    async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        service: PeerService,
        watcher: Watcher,
    ) {
        let connection = self.http1.serve_connection(TokioIo::new(stream), service);
        // A client that breaks off is its own affair.
        let _ = watcher.watch(connection).await;
    }

    /// HTTP/2, where a connection may be open without any request: hyper lets it, for as long as the client answers pings.
    async fn converse_in_streams(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        service: PeerService,
    ) {
        let uses = Arc::new(Uses::default());
        let service = CountedService {
            service,
            uses: Arc::clone(&uses),
        };
        let mut connection = pin!(self.http2.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            // A client that breaks off is its own affair.
            _ = connection.as_mut() => return,
            () = self.bridge.shutdown.cancelled() => {}
            () = unused_for(&uses, self.idle) => {}
        }
        connection.as_mut().graceful_shutdown();
        // What was answered may still be on its way, and a last request may have come in between.
        let unused_again = async {
            tokio::time::sleep(self.write).await;
            unused_for(&uses, self.write).await;
        };
        tokio::select! {
            _ = connection => {}
            () = unused_again => {}
        }
    }
}

/// Returns when nothing has been used for so long.
async fn unused_for(uses: &Uses, timeout: Duration) {
    while let Some(left) = timeout
        .checked_sub(uses.idle_for())
        .filter(|left| !left.is_zero())
    {
        tokio::time::sleep(left).await;
    }
}

/// A connection's service that is in use while a request is being answered, as long as the client takes the answer.
#[derive(Debug, Clone)]
struct CountedService {
    service: PeerService,
    uses: Arc<Uses>,
}

impl Service<Request<Incoming>> for CountedService {
    type Response = Response<Body>;
    type Error = <PeerService as Service<Request<Incoming>>>::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let uses = Arc::clone(&self.uses);
        let activity = Activity::begin(&uses);
        let answering = self.service.call(request);
        Box::pin(async move {
            let response = answering.await?;
            drop(activity);
            Ok(response.map(|body| Body::new(MeasuredBody::new(body, uses))))
        })
    }
}

/// The service of one connection: its requests carry the peer's address.
#[derive(Debug, Clone)]
struct PeerService {
    service: TowerToHyperService<Router>,
    peer: Peer,
}

type RouterService = TowerToHyperService<Router>;

impl Service<Request<Incoming>> for PeerService {
    type Response = <RouterService as Service<Request<Incoming>>>::Response;
    type Error = <RouterService as Service<Request<Incoming>>>::Error;
    type Future = <RouterService as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.peer);
        self.service.call(request)
    }
}

fn http1_builder(times: Times, limits: Limits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(times.head)
        // Hyper asks for at least 8 KiB.
        .max_buf_size(limits.head_bytes.max(8 << 10));
    http
}

fn http2_builder(times: Times, limits: Limits) -> http2::Builder<TokioExecutor> {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(times.keep_alive);
    http
}
