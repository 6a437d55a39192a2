//! The HTTP client under both HTTP transports: rmcp's, which attaches and refreshes tokens, and on top
//!
//! - a request that never reached the server (refused connection) is tried again, with backoff;
//! - a stream is resumed by the rules of [`super::resume`];
//! - a session the server has forgotten ends its streams at once instead of after all retries;
//! - a 401 without a challenge still asks for a login.
//!
//! A request that may have reached the server is never sent twice.

use std::{collections::HashMap, sync::Arc, time::Duration};

use ahma_common::retry::Retry;
use http::{HeaderName, HeaderValue, StatusCode};
use oauth2::TokenResponse as _;
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest},
    transport::{
        AuthorizationManager,
        auth::{AuthClient, AuthError},
        streamable_http_client::{
            AuthRequiredError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
        },
    },
};

use super::{
    HttpMcpError,
    link::{Link, LinkEvent},
    resume::Events,
};

/// Limit for one event or answer, the same as rmcp's.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;
const TCP_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The one answer after which rmcp does not ask for the stream again.
const END_OF_RETRIES: HttpMcpError = StreamableHttpError::ServerDoesNotSupportSse;

type Headers = HashMap<HeaderName, HeaderValue>;

#[derive(Clone, Debug)]
pub(crate) struct RemoteHttp {
    inner: AuthClient<reqwest::Client>,
    link: Arc<Link>,
}

impl RemoteHttp {
    pub(super) fn new(manager: AuthorizationManager, link: Arc<Link>) -> Result<Self, HttpMcpError> {
        let client = http_client().map_err(StreamableHttpError::Client)?;
        Ok(Self {
            inner: AuthClient::new(client, manager),
            link,
        })
    }

    /// Sends with the stored token, if there is one. A token that the server refuses is renewed, and the request sent
    /// once more. Errors do not name the address, since it may hold a key.
    async fn authorized<T, Sent>(
        &self,
        given: Option<String>,
        send: impl Fn(Option<String>) -> Sent,
    ) -> Result<T, HttpMcpError>
    where
        Sent: Future<Output = Result<T, HttpMcpError>>,
    {
        let token = match given {
            Some(token) => Some(token),
            None => match self.inner.get_access_token().await {
                Ok(token) => Some(token),
                Err(AuthError::AuthorizationRequired) => None,
                Err(error) => return Err(error.into()),
            },
        };
        match (send(token.clone()).await.map_err(without_address), token) {
            (Err(StreamableHttpError::AuthRequired(challenge)), Some(refused)) => {
                match self.renewed(&refused).await {
                    Ok(fresh) => send(Some(fresh)).await.map_err(without_address),
                    Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => {
                        Err(StreamableHttpError::AuthRequired(challenge))
                    }
                    Err(error) => Err(error.into()),
                }
            }
            (sent, _) => sent,
        }
    }

    /// Another token than the one that was refused. rmcp would renew it once for each request that was refused; here the
    /// first one does, and the others use what it got.
    async fn renewed(&self, refused: &str) -> Result<String, AuthError> {
        let manager = self.inner.auth_manager.lock().await;
        let stored = manager.get_access_token().await?;
        if stored != refused {
            return Ok(stored);
        }
        let renewed = manager.refresh_token().await?;
        Ok(renewed.access_token().secret().clone())
    }

    /// True if the request certainly did not arrive, and the server may come back.
    fn may_send_again(&self, error: &HttpMcpError) -> bool {
        self.link.is_established()
            && matches!(error, StreamableHttpError::Client(error) if error.is_connect())
    }
}

/// A redirect to another origin, which is not followed.
#[derive(Debug, thiserror::Error)]
#[error("the server has moved to {0}; replace the configured address")]
struct Moved(url::Url);

/// Redirects stay on the server's own origin: our headers may be secrets.
fn http_client() -> reqwest::Result<reqwest::Client> {
    crate::tls::install();
    let same_origin = reqwest::redirect::Policy::custom(|attempt| {
        let first = attempt.previous().first().map(|url| url.origin());
        if first != Some(attempt.url().origin()) {
            let moved = Moved(attempt.url().clone());
            attempt.error(moved)
        } else if attempt.previous().len() < 5 {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    reqwest::Client::builder()
        .user_agent(concat!("ahma_mcp/", env!("CARGO_PKG_VERSION")))
        .redirect(same_origin)
        .connect_timeout(TCP_CONNECT_TIMEOUT)
        .tcp_keepalive(Duration::from_secs(30))
        .build()
}

impl StreamableHttpClient for RemoteHttp {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpMcpError> {
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            MAX_EVENT_BYTES,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, HttpMcpError> {
        let opens_session = matches!(
            &message,
            ClientJsonRpcMessage::Request(request)
                if matches!(request.request, ClientRequest::InitializeRequest(_))
        );
        let mut retry = Retry::new(self.link.retry);
        loop {
            let sent = self.authorized(auth_header.clone(), |token| {
                self.inner.http_client.post_message_with_max_sse_event_size(
                    Arc::clone(&uri),
                    message.clone(),
                    session_id.clone(),
                    token,
                    custom_headers.clone(),
                    max_sse_event_size,
                )
            });
            let error = match sent.await {
                Ok(response) => {
                    if opens_session {
                        self.link.initialized();
                    }
                    self.link.answered();
                    return Ok(response);
                }
                Err(error) => error,
            };
            if !self.may_send_again(&error) {
                return Err(with_challenge(error));
            }
            self.link.refused();
            match retry.failed() {
                Some(delay) => tokio::time::sleep(delay).await,
                None => {
                    self.link.report(LinkEvent::GaveUp);
                    return Err(error);
                }
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), HttpMcpError> {
        self.inner
            .delete_session(uri, session_id, auth_header, custom_headers)
            .await
            .map_err(without_address)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<Events, HttpMcpError> {
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            MAX_EVENT_BYTES,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<Events, HttpMcpError> {
        let in_session = session_id.is_some();
        if last_event_id
            .as_ref()
            .is_some_and(|id| !self.link.resumes.is_worth_it(id, self.link.retry.max_retries))
        {
            return Err(END_OF_RETRIES);
        }
        let opened = self.authorized(auth_header, |token| {
            self.inner.http_client.get_stream_with_max_sse_event_size(
                Arc::clone(&uri),
                session_id.clone(),
                last_event_id.clone(),
                token,
                custom_headers.clone(),
                max_sse_event_size,
            )
        });
        match opened.await {
            Ok(events) => Ok(match last_event_id {
                Some(last) => self.link.resumes.follow(events, last),
                None => events,
            }),
            Err(error) if in_session && status(&error) == Some(StatusCode::NOT_FOUND) => {
                self.link.report(LinkEvent::SessionLost);
                Err(END_OF_RETRIES)
            }
            Err(error) => Err(with_challenge(error)),
        }
    }
}

fn without_address(error: HttpMcpError) -> HttpMcpError {
    match error {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
        other => other,
    }
}

fn with_challenge(error: HttpMcpError) -> HttpMcpError {
    match status(&error) {
        Some(StatusCode::UNAUTHORIZED) => {
            StreamableHttpError::AuthRequired(AuthRequiredError::new(String::new()))
        }
        _ => error,
    }
}

/// The HTTP status behind an error, where rmcp kept it.
fn status(error: &HttpMcpError) -> Option<StatusCode> {
    match error {
        StreamableHttpError::Client(error) => error.status(),
        StreamableHttpError::HttpStatus(error) => StatusCode::from_u16(error.status).ok(),
        StreamableHttpError::UnexpectedServerResponse(text) => text
            .strip_prefix("HTTP ")
            .and_then(|rest| rest.get(..3))
            .and_then(|code| code.parse().ok()),
        _ => None,
    }
}
