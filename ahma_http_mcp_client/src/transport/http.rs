//! Both HTTP transports as one type.

use std::{collections::HashMap, sync::Arc};

use ahma_common::retry::RetryPolicy;
use futures::future::Either;
use http::{HeaderName, HeaderValue};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::{
        AuthorizationManager, Transport,
        streamable_http_client::{
            StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
        },
    },
};

use super::{
    client::RemoteHttp,
    legacy_sse::LegacySse,
    link::{Link, StreamRetry},
};
use crate::{
    config::HttpEndpoint,
    oauth::{TokenFile, manager_for},
};

/// An error of either HTTP transport; rmcp's own type, so that its login challenges can be recognised.
pub type HttpMcpError = StreamableHttpError<reqwest::Error>;

/// A connection to an MCP server over HTTP.
#[derive(Debug)]
pub struct HttpMcpTransport {
    kind: Kind,
}

enum Kind {
    Streamable(StreamableHttpClientTransport<RemoteHttp>),
    LegacySse(LegacySse),
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Streamable(_) => "Streamable",
            Self::LegacySse(_) => "LegacySse",
        })
    }
}

impl HttpMcpTransport {
    /// Streamable HTTP. Nothing is sent before the first message; must be called inside a Tokio runtime.
    pub async fn streamable(
        endpoint: &HttpEndpoint,
        tokens: &TokenFile,
        retry: RetryPolicy,
    ) -> Result<Self, HttpMcpError> {
        Self::streamable_on(endpoint, manager_for(endpoint, tokens).await?, Link::new(retry).0)
    }

    /// Legacy HTTP+SSE: opens the stream and waits for the server's `endpoint` event.
    pub async fn legacy_sse(
        endpoint: &HttpEndpoint,
        tokens: &TokenFile,
        retry: RetryPolicy,
    ) -> Result<Self, HttpMcpError> {
        Self::legacy_sse_on(endpoint, manager_for(endpoint, tokens).await?, Link::new(retry).0).await
    }

    pub(crate) fn streamable_on(
        endpoint: &HttpEndpoint,
        manager: AuthorizationManager,
        link: Arc<Link>,
    ) -> Result<Self, HttpMcpError> {
        let client = RemoteHttp::new(manager, Arc::clone(&link))?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str())
            .custom_headers(headers(endpoint))
            .reinit_on_expired_session(true);
        config.retry_config = Arc::new(StreamRetry::new(link));
        let kind = Kind::Streamable(StreamableHttpClientTransport::with_client(client, config));
        Ok(Self { kind })
    }

    pub(crate) async fn legacy_sse_on(
        endpoint: &HttpEndpoint,
        manager: AuthorizationManager,
        link: Arc<Link>,
    ) -> Result<Self, HttpMcpError> {
        let client = RemoteHttp::new(manager, link)?;
        let kind = Kind::LegacySse(LegacySse::connect(client, &endpoint.url, headers(endpoint)).await?);
        Ok(Self { kind })
    }
}

impl Transport<RoleClient> for HttpMcpTransport {
    type Error = HttpMcpError;

    fn name() -> std::borrow::Cow<'static, str> {
        "HttpMcpTransport".into()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        match &mut self.kind {
            Kind::Streamable(transport) => Either::Left(transport.send(message)),
            Kind::LegacySse(transport) => Either::Right(transport.send(message)),
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match &mut self.kind {
            Kind::Streamable(transport) => transport.receive().await,
            Kind::LegacySse(transport) => transport.receive().await,
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        match &mut self.kind {
            Kind::Streamable(transport) => transport.close().await,
            Kind::LegacySse(transport) => {
                transport.close();
                Ok(())
            }
        }
    }
}

fn headers(endpoint: &HttpEndpoint) -> HashMap<HeaderName, HeaderValue> {
    endpoint.headers.iter().cloned().collect()
}
