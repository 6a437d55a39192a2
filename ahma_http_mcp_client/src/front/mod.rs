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

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rmcp::service::{ServerInitializeError, serve_server};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::config::{HttpEndpoint, ServerConfig};
use crate::error_chain;
use crate::oauth::{LoginError, PendingLogin};
use crate::remote::Nudge;
use crate::session::{ConnectError, ConnectReport, Connection, connect};
use crate::settings::{ClientSettings, LoginMode};
use downstream::Downstream;
use greeting::Greeting;
use relay::{Relay, Standing};
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
}

/// What the user should hear of.
#[derive(Debug)]
pub enum FrontNews<'a> {
    /// The server is there.
    Connected(&'a ConnectReport),
    /// Somebody has to open this page.
    LoginRequired(&'a Url),
}

/// Serves until the client closes `input`, whatever becomes of the server.
pub async fn front<R, W>(
    input: R,
    output: W,
    config: &ServerConfig,
    settings: &ClientSettings,
    tell: impl Fn(FrontNews<'_>),
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
    let advice = settings.login_command.advice(&config.name);
    let endpoint = config.http.as_ref();
    let has_own_credentials = endpoint.is_some_and(HttpEndpoint::has_own_credentials);
    let (relay, mut nudges) = Relay::new(Some(advice).filter(|_| !has_own_credentials));
    let relay = Arc::new(relay);
    let far_end = FarEnd {
        config,
        settings,
        handler: Upstream::new(Arc::clone(&relay), client),
        relay: Arc::clone(&relay),
        tell,
    };
    let mut read_ahead = Vec::new();
    let reached = {
        let mut reaching = std::pin::pin!(far_end.reach());
        tokio::select! {
            reached = &mut reaching => reached,
            // Nobody waits for a slow server, or for a login, on behalf of a client that has left.
            () = end_of(&mut input, &mut read_ahead) => match tokio::time::timeout(LAST_WORDS, reaching).await {
                Ok(reached) => reached,
                Err(_) => {
                    let reason = "the remote server was not reached before the client left";
                    greeting::refuse(output, greeting::owed(id, &read_ahead), reason).await;
                    return Ok(());
                }
            },
        }
    };
    let mut connection = match reached {
        Ok(connection) => connection,
        Err(error) => {
            greeting::refuse(output, greeting::owed(id, &read_ahead), &error_chain(&error)).await;
            return Err(error);
        }
    };
    relay.attach(&connection);

    let input = std::io::Cursor::new(read_ahead).chain(input);
    let input = input.chain(TellsEnd(relay.client_left.clone()));
    let transport = AsyncRwTransport::new(input, output);
    let client = serve_server(Downstream::new(Arc::clone(&relay)), transport)
        .await
        .map_err(|error| FrontError::Client(Box::new(error)))?;
    let mut client_gone = tokio::spawn(client.waiting());
    loop {
        let ended = tokio::select! {
            _ = &mut client_gone => break,
            ended = upstream::watch(&relay, &mut connection, &mut nudges) => ended,
        };
        relay.stand(Standing::Connecting);
        connection.running.close(CLOSE_PATIENCE).await;
        connection = tokio::select! {
            _ = &mut client_gone => return Ok(()),
            again = far_end.reach_again(ended, &mut nudges) => again,
        };
        relay.attach(&connection);
    }
    connection.running.close(CLOSE_PATIENCE).await;
    Ok(())
}

/// How often a server that stays away is tried again without being asked.
const SLOW_RETRY: Duration = Duration::from_secs(60);
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

/// The end of an input, and a signal that it was reached: rmcp does not tell those who answer requests.
struct TellsEnd(CancellationToken);

impl AsyncRead for TellsEnd {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        self.0.cancel();
        Poll::Ready(Ok(()))
    }
}

/// Where the remote server is, and everything it takes to get there.
struct FarEnd<'a, F> {
    config: &'a ServerConfig,
    settings: &'a ClientSettings,
    handler: Upstream,
    relay: Arc<Relay>,
    tell: F,
}

impl<F: Fn(FrontNews<'_>)> FarEnd<'_, F> {
    /// Connects, with a login if one is asked for and allowed.
    async fn reach(&self) -> Result<Connection, FrontError> {
        match self.connect().await {
            Err(ConnectError::LoginRequired { challenge, .. }) if self.settings.login != LoginMode::Never => {
                self.log_in(challenge).await.map_err(|source| FrontError::Login {
                    server: self.config.name.clone(),
                    source,
                })?;
                Ok(self.connect().await?)
            }
            connected => Ok(connected?),
        }
    }

    /// Connects again, however long it takes. Requests are told meanwhile what is the matter.
    async fn reach_again(&self, ended: Ended, nudges: &mut mpsc::Receiver<Nudge>) -> Connection {
        let (mut ended, mut retry) = (ended, 0);
        // After one that failed, the next login waits until somebody asks for something.
        let mut may_log_in = self.settings.login != LoginMode::Never;
        loop {
            match ended {
                Ended::Lost(reason) => {
                    tracing::warn!(server = self.config.name, reason, "lost the remote server");
                    let wait = match self.settings.retry.delay(retry) {
                        Some(delay) => delay,
                        None => {
                            self.relay.stand(Standing::Down(reason));
                            SLOW_RETRY
                        }
                    };
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        Some(_) = nudges.recv() => {}
                    }
                }
                Ended::LoginRequired(challenge) if may_log_in => {
                    may_log_in = false;
                    if let Err(error) = self.log_in(challenge.clone()).await {
                        self.wait_for_login(&format!("{}; ", error_chain(&error)), nudges, &mut may_log_in)
                            .await;
                    }
                }
                Ended::LoginRequired(_) => self.wait_for_login("", nudges, &mut may_log_in).await,
            }
            retry += 1;
            self.relay.stand(Standing::Connecting);
            ended = match self.connect().await {
                Ok(connection) => return connection,
                Err(ConnectError::LoginRequired { challenge, .. }) => Ended::LoginRequired(challenge),
                Err(error) => Ended::Lost(error.to_string()),
            };
        }
    }

    /// Returns when somebody has logged in, when somebody asks for something, and now and then.
    async fn wait_for_login(&self, problem: &str, nudges: &mut mpsc::Receiver<Nudge>, may_log_in: &mut bool) {
        let Some(endpoint) = &self.config.http else { return };
        let advice = self.settings.login_command.advice(&self.config.name);
        let reason = format!("it wants a login: {problem}{advice}");
        tracing::warn!(server = self.config.name, reason);
        while nudges.try_recv().is_ok() {}
        self.relay.stand(Standing::Down(reason));
        let pending = PendingLogin::new(endpoint, self.settings).await;
        tokio::select! {
            () = pending.made_elsewhere() => {}
            Some(_) = nudges.recv() => *may_log_in = self.settings.login != LoginMode::Never,
            () = tokio::time::sleep(SLOW_RETRY) => {}
        }
    }

    async fn log_in(&self, challenge: String) -> Result<(), LoginError> {
        let Some(endpoint) = &self.config.http else {
            return Ok(());
        };
        let offer = |link: &Url| {
            (self.tell)(FrontNews::LoginRequired(link));
            self.relay.stand(Standing::LoginOffered(link.clone()));
        };
        let pending = PendingLogin::new(endpoint, self.settings).await;
        pending.log_in(challenge, offer).await
    }

    async fn connect(&self) -> Result<Connection, ConnectError> {
        let connection = connect(self.config, self.settings, &self.handler).await?;
        (self.tell)(FrontNews::Connected(&connection.report));
        Ok(connection)
    }
}
