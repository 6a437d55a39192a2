//! The life of a front: it starts with the client's first message and ends with the client, whatever becomes of the
//! server in between. Only a first connection that fails ends it early.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use ahma_common::error_chain;
use rmcp::{service::serve_server, transport::async_rw::AsyncRwTransport};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf},
    sync::watch,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use url::Url;

use super::{
    client_side::ClientSide,
    first_message::{self, FirstMessage},
    relay::Relay,
    server_side::ServerSide,
};
use crate::{
    config::ServerConfig,
    error::RemoteError,
    remote::{Actor, ConnectionHistory, Persistence, ServerHandle, ServerState, Snapshot, StateBoard},
    session::ConnectReport,
    settings::ClientSettings,
};

/// Requests sent before the end of the input are still answered by a server that is connected within this time.
const LATE_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// More than a client sends before its first answer.
const MAX_READ_AHEAD: usize = 1 << 20;

/// An event for the user.
#[derive(Debug)]
pub enum FrontNews<'a> {
    Connected(&'a ConnectReport),
    /// The user has to open this page.
    LoginRequired(&'a Url),
}

/// Serves until the client closes `input`.
pub async fn front<R, W>(
    input: R,
    output: W,
    config: &ServerConfig,
    settings: &ClientSettings,
    tell: impl Fn(FrontNews<'_>),
) -> Result<(), RemoteError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let first = first_message::read(input).await;
    let Some(first) = first.map_err(RemoteError::ClientInput)? else {
        return Ok(());
    };
    let board = Arc::new(StateBoard::new([config.name.clone()].into_iter()));
    let (server, controls) = ServerHandle::new(config, settings, board);
    let states = server.states();
    let relay = Arc::new(Relay::new(server));
    let shutdown = CancellationToken::new();
    let actor = Actor {
        config: config.clone(),
        settings: Arc::new(settings.clone()),
        server: Arc::clone(&relay.server),
        controls,
        purpose: ServerSide::new(Arc::clone(&relay), first.client.clone()),
        persistence: Persistence::UntilFirstFailure,
        shutdown: shutdown.clone(),
        history: ConnectionHistory::new(settings),
    };
    let actor = AbortOnDropHandle::new(tokio::spawn(actor.run()));
    tokio::select! {
        served = serve(first, output, relay, actor, shutdown) => served,
        () = tell_news(states, tell) => Ok(()),
    }
}

async fn serve<R, W>(
    first: FirstMessage<R>,
    output: W,
    relay: Arc<Relay>,
    mut actor: AbortOnDropHandle<Result<(), RemoteError>>,
    shutdown: CancellationToken,
) -> Result<(), RemoteError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let FirstMessage { id, mut input, .. } = first;
    let mut read_ahead = Vec::new();
    let connected = {
        let mut connecting = std::pin::pin!(first_connection(&mut actor, relay.server.states()));
        tokio::select! {
            connected = &mut connecting => Some(connected),
            // A client that has left does not wait for a slow server, or for a login.
            () = end_of(&mut input, &mut read_ahead) => {
                tokio::time::timeout(LATE_CONNECT_TIMEOUT, connecting).await.ok()
            }
        }
    };
    let refused = match connected {
        Some(Ok(())) => None,
        Some(Err(error)) => Some((error_chain(&error), Err(error))),
        None => {
            let reason = "the remote server was not reached before the client left";
            Some((reason.to_owned(), Ok(())))
        }
    };
    if let Some((reason, ended)) = refused {
        first_message::refuse(output, first_message::owed(id, &read_ahead), &reason).await;
        return ended;
    }
    let input = std::io::Cursor::new(read_ahead).chain(input);
    let input = input.chain(SignalsEnd(relay.client_left.clone()));
    let transport = AsyncRwTransport::new(input, output);
    let client = serve_server(ClientSide::new(relay), transport)
        .await
        .map_err(|error| RemoteError::ClientHandshake(Box::new(error)))?;
    let _ = client.waiting().await;
    shutdown.cancel();
    let _ = actor.await;
    Ok(())
}

/// Resolves once the server is ready, or the actor has given it up.
async fn first_connection(
    actor: &mut AbortOnDropHandle<Result<(), RemoteError>>,
    mut states: watch::Receiver<Snapshot>,
) -> Result<(), RemoteError> {
    let is_ready = |states: &Snapshot| {
        let mut states = states.values();
        states.any(|state| matches!(state, ServerState::Ready { .. }))
    };
    tokio::select! {
        ended = actor => ended.unwrap_or(Ok(())),
        _ = states.wait_for(is_ready) => Ok(()),
    }
}

/// Reports connections and login links to the user, as long as the server has an actor.
async fn tell_news(mut states: watch::Receiver<Snapshot>, tell: impl Fn(FrontNews<'_>)) {
    let mut was_ready = false;
    loop {
        let states_now = states.borrow_and_update().clone();
        let is_ready = |state: &ServerState| matches!(state, ServerState::Ready { .. });
        for state in states_now.values() {
            match state {
                ServerState::Ready { report, .. } if !was_ready => tell(FrontNews::Connected(report)),
                ServerState::LoginRequired { link: Some(link), .. } => tell(FrontNews::LoginRequired(link)),
                _ => {}
            }
        }
        was_ready = states_now.values().any(is_ready);
        if states.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// Waits for the end of `input`. What comes before it is kept.
async fn end_of(input: &mut (impl AsyncRead + Unpin), read_ahead: &mut Vec<u8>) {
    while read_ahead.len() < MAX_READ_AHEAD {
        if !matches!(input.read_buf(read_ahead).await, Ok(1..)) {
            return;
        }
    }
    std::future::pending().await
}

/// The end of an input, which signals that it was reached: rmcp does not pass it on to handlers.
struct SignalsEnd(CancellationToken);

impl AsyncRead for SignalsEnd {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        self.0.cancel();
        Poll::Ready(Ok(()))
    }
}
