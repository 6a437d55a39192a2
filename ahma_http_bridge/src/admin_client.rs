//! A client of the admin API, for the commands of `ahma_mcp admin`.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::Value;

use ahma_common::secret::Secret;

/// Cancelling waits until a command is gone.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct AdminClient {
    http: reqwest::Client,
    server: url::Url,
    token: Option<Secret>,
}

#[derive(Debug, thiserror::Error)]
pub enum AdminClientError {
    #[error("{0} is not the address of a server")]
    Address(String),
    #[error("{server} cannot be reached")]
    Unreachable {
        server: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("{message}")]
    Refused { status: StatusCode, message: String },
    #[error("the answer is not that of an admin API")]
    Answer(#[source] reqwest::Error),
    #[error("the answer is not that of an admin API")]
    Form(#[source] serde_json::Error),
}

impl AdminClientError {
    /// True if the credential is missing or not that of an operator.
    pub fn is_about_rights(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                status: StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN,
                ..
            }
        )
    }
}

impl AdminClient {
    /// A client of the server at this address, such as `http://127.0.0.1:3000`.
    pub fn new(server: &str, token: Option<Secret>) -> Result<Self, AdminClientError> {
        let address = || AdminClientError::Address(server.to_owned());
        let url = url::Url::parse(server).map_err(|_| address())?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(address());
        }
        // reqwest was built without a provider of its own; an installed one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .timeout(ANSWER_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(AdminClientError::Answer)?;
        Ok(Self {
            http,
            server: url,
            token,
        })
    }

    /// A document in a form of its own.
    pub async fn get_file(&self, path: &[&str]) -> Result<Vec<u8>, AdminClientError> {
        self.send(Method::GET, path, &[], None).await
    }

    pub async fn get(&self, path: &[&str], query: &[(&str, String)]) -> Result<Value, AdminClientError> {
        self.ask(Method::GET, path, query, None).await
    }

    pub async fn post(&self, path: &[&str], body: Value) -> Result<Value, AdminClientError> {
        self.ask(Method::POST, path, &[], Some(body)).await
    }

    pub async fn delete(&self, path: &[&str], query: &[(&str, String)]) -> Result<Value, AdminClientError> {
        self.ask(Method::DELETE, path, query, None).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: Option<Value>,
    ) -> Result<Value, AdminClientError> {
        let answer = self.send(method, path, query, body).await?;
        serde_json::from_slice(&answer).map_err(AdminClientError::Form)
    }

    async fn send(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: Option<Value>,
    ) -> Result<Vec<u8>, AdminClientError> {
        let mut url = self.server.clone();
        url.set_path("");
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.clear().extend(["admin", "v1"]).extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.http.request(method, url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose());
        }
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let unreachable = |source| AdminClientError::Unreachable {
            server: self.server.to_string(),
            source,
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(AdminClientError::Answer)?;
        if status.is_success() {
            return Ok(bytes.into());
        }
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let message = answer["error"]["message"].as_str().map(str::to_owned);
        let message = message.unwrap_or_else(|| format!("the server answered {status}"));
        Err(AdminClientError::Refused { status, message })
    }
}
