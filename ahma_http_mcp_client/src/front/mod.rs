//! A remote server, served on stdin and stdout: what a client that can only start programs needs.
//!
//! Both sides may be of either era; rmcp speaks to each in its own, and this module carries requests, progress,
//! cancellation, notifications and the server's questions across. The client's name and capabilities are read from
//! its first message, so that the remote server sees the client and not us.
//!
//! - [`greeting`]: that first message.
//! - [`relay`]: what both sides share; [`downstream`] faces the client, [`upstream`] the remote server.

mod downstream;
mod greeting;
mod relay;
mod upstream;

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{ServerInitializeError, serve_server};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use url::Url;

use crate::config::ServerConfig;
use crate::error_chain;
use crate::oauth::{Browser, LoginError, LoginOptions, login};
use crate::session::{ConnectError, Connection, connect};
use crate::settings::{ClientSettings, LoginMode};
use downstream::Downstream;
use greeting::Greeting;
use relay::Relay;
use upstream::{Ended, Upstream};

#[derive(Debug, thiserror::Error)]
pub enum FrontError {
    #[error("cannot read the client's first message")]
    Greeting(#[source] std::io::Error),
    #[error("the client did not start an MCP conversation")]
    Client(#[source] Box<ServerInitializeError>),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the login to server `{server}` failed")]
    Login { server: String, source: LoginError },
    #[error("server `{server}` was lost and did not come back: {reason}")]
    Lost { server: String, reason: String },
}

/// Serves until the client closes `input`. `show_link` gets the page of a login that is needed.
pub async fn front<R, W>(
    input: R,
    output: W,
    config: &ServerConfig,
    settings: &ClientSettings,
    show_link: impl Fn(&Url),
) -> Result<(), FrontError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let greeting = greeting::read(input).await.map_err(FrontError::Greeting)?;
    let Some(Greeting {
        client,
        id,
        mut input,
    }) = greeting
    else {
        return Ok(());
    };
    let relay = Arc::new(Relay::default());
    let handler = Upstream::new(Arc::clone(&relay), client);
    let mut read_ahead = Vec::new();
    let reached = {
        let mut reaching = std::pin::pin!(reach(config, settings, &handler, &show_link));
        tokio::select! {
            reached = &mut reaching => reached,
            // Nobody waits for a slow server, or for a login, on behalf of a client that has left.
            () = end_of(&mut input, &mut read_ahead) => match tokio::time::timeout(LAST_WORDS, reaching).await {
                Ok(reached) => reached,
                Err(_) => return Ok(()),
            },
        }
    };
    let mut connection = match (reached, id) {
        (Ok(connection), _) => connection,
        (Err(error), None) => return Err(error),
        (Err(error), Some(id)) => {
            greeting::refuse(output, id, &error_chain(&error)).await;
            return Err(error);
        }
    };
    relay.attach(&connection);

    let input = std::io::Cursor::new(read_ahead).chain(input);
    let transport = AsyncRwTransport::new(input, output);
    let client = serve_server(Downstream::new(Arc::clone(&relay)), transport)
        .await
        .map_err(|error| FrontError::Client(Box::new(error)))?;
    let stop = client.cancellation_token();
    let mut client_gone = tokio::spawn(client.waiting());
    let result = loop {
        let ended = tokio::select! {
            _ = &mut client_gone => Ended::ClientGone,
            reason = upstream::watch(&relay, &mut connection) => Ended::Lost(reason),
        };
        let Ended::Lost(reason) = ended else { break Ok(()) };
        tracing::warn!(server = config.name, reason, "lost the remote server");
        relay.detach();
        let _ = connection.service.close_with_timeout(CLOSE_PATIENCE).await;
        tokio::select! {
            _ = &mut client_gone => break Ok(()),
            again = reach_again(config, settings, &handler, &show_link, reason) => match again {
                Ok(again) => connection = again,
                Err(error) => break Err(error),
            },
        }
        relay.attach(&connection);
    };
    stop.cancel();
    let _ = connection.service.close_with_timeout(CLOSE_PATIENCE).await;
    result
}

const CLOSE_PATIENCE: Duration = Duration::from_secs(5);
/// What was said before the end of the input is still answered by a server that can be reached in this time.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// More than a client says before its first answer.
const MOST_READ_AHEAD: usize = 1 << 20;

/// Waits for the end of `input`. What comes before it is kept.
async fn end_of(input: &mut (impl AsyncRead + Unpin), read_ahead: &mut Vec<u8>) {
    while read_ahead.len() < MOST_READ_AHEAD {
        if !matches!(input.read_buf(read_ahead).await, Ok(1..)) {
            return;
        }
    }
    std::future::pending().await
}

/// Connects, with a login if one is asked for and allowed.
async fn reach(
    config: &ServerConfig,
    settings: &ClientSettings,
    handler: &Upstream,
    show_link: &impl Fn(&Url),
) -> Result<Connection<Upstream>, FrontError> {
    let challenge = match connect(config, settings, handler).await {
        Err(ConnectError::LoginRequired { challenge, .. }) if settings.login != LoginMode::Never => challenge,
        connected => return Ok(connected?),
    };
    if let Some(endpoint) = config
        .http
        .as_ref()
        .filter(|endpoint| !endpoint.has_own_credentials())
    {
        let options = LoginOptions {
            browser: if settings.login == LoginMode::Browser {
                Browser::Open
            } else {
                Browser::Leave
            },
            challenge: Some(challenge).filter(|challenge| !challenge.is_empty()),
            ..LoginOptions::default()
        };
        login(endpoint, &settings.tokens, &options, show_link)
            .await
            .map_err(|source| FrontError::Login {
                server: config.name.clone(),
                source,
            })?;
    }
    Ok(connect(config, settings, handler).await?)
}

/// Connects again, as often as the retry rule allows.
async fn reach_again(
    config: &ServerConfig,
    settings: &ClientSettings,
    handler: &Upstream,
    show_link: &impl Fn(&Url),
    mut reason: String,
) -> Result<Connection<Upstream>, FrontError> {
    let mut retry = 0;
    while let Some(delay) = settings.retry.delay(retry) {
        tokio::time::sleep(delay).await;
        match reach(config, settings, handler, show_link).await {
            Err(FrontError::Connect(error @ ConnectError::Failed { .. })) => reason = error.to_string(),
            reached => return reached,
        }
        retry += 1;
    }
    Err(FrontError::Lost {
        server: config.name.clone(),
        reason,
    })
}
