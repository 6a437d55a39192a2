//! A console on its own: the pages on loopback, without a server behind them.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::http::guard::WebGuard;
use crate::paths::CONSOLE_LOGIN;
use crate::peer::Peer;
use crate::routes::console::{ConsoleDoor, router};

/// Serves `pages`, as those of [`serve`](crate::serve), on `listener` until `shutdown`. `ready` is given a link with which
/// one browser can log in, once.
pub async fn serve_console(
    listener: TcpListener,
    pages: Router,
    user: &str,
    shutdown: CancellationToken,
    ready: impl FnOnce(&str),
) -> std::io::Result<()> {
    let address = listener.local_addr()?;
    let door = Arc::new(ConsoleDoor::alone(address.port(), user));
    let check = Arc::new(AddressCheck {
        guard: WebGuard::new(address, &[], &[]),
        ours: address,
    });
    let app = router(&door, pages)
        .layer(from_fn_with_state(check, pass))
        .into_make_service_with_connect_info::<SocketAddr>();
    ready(&format!(
        "http://{address}{CONSOLE_LOGIN}?code={}",
        door.logins.new_code().expose()
    ));
    tokio::select! {
        served = axum::serve(listener, app) => served,
        // Pages that are open are live, so their connections never end of themselves.
        () = shutdown.cancelled() => Ok(()),
    }
}

#[derive(Debug)]
struct AddressCheck {
    guard: WebGuard,
    ours: SocketAddr,
}

async fn pass(
    State(check): State<Arc<AddressCheck>>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    if let Err(refusal) = check
        .guard
        .check(request.version(), request.uri(), request.headers())
    {
        return refusal.into_response();
    }
    request.extensions_mut().insert(Peer {
        address,
        ours: check.ours,
    });
    next.run(request).await
}
