//! One interactive login: discovery, registration, the browser, the callback, the token.
//!
//! rmcp checks PKCE, `state` and `iss`; this module chooses the client identity and talks to the user.

use std::time::Duration;

use ahma_common::loopback::is_loopback_host;
use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession};
use url::Url;

pub use super::browser::Browser;
use super::callback::{CallbackListener, PortRule, Registration, Visit};
use super::store::ServerTokens;
use super::token_file::{TokenFile, TokenFileError};
use crate::config::{HttpEndpoint, Secret};
use crate::shown::{shown_address, without_secrets};

#[derive(Debug, Clone)]
pub struct LoginOptions {
    pub browser: Browser,
    /// Time for the user to log in.
    pub timeout: Duration,
    /// The `WWW-Authenticate` text that asked for the login; it names the metadata and the scope.
    pub challenge: Option<String>,
}

impl Default for LoginOptions {
    fn default() -> Self {
        Self {
            browser: Browser::Open,
            timeout: Duration::from_secs(300),
            challenge: None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("{} is not https: a login there could be intercepted", shown_address(url))]
    Insecure { url: Url },
    #[error(
        "the callback address http://localhost:{port} cannot be used; free the port, or set `callback_port`"
    )]
    CallbackPort { port: u16, source: std::io::Error },
    #[error("cannot prepare a login at {}: {}", shown_address(url), explain(cause))]
    Prepare { url: Url, cause: AuthError },
    #[error("the login was not completed within {} s", timeout.as_secs())]
    TimedOut { timeout: Duration },
    #[error("the login was refused: {reason}")]
    Refused { reason: String },
    #[error("the response of the login page is not valid: {}", explain(cause))]
    Callback { cause: AuthError },
    #[error("the callback server failed")]
    Listener { source: std::io::Error },
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
}

/// Logs in and stores the tokens. `show_link` receives the address that the user has to open.
pub async fn login(
    endpoint: &HttpEndpoint,
    tokens: &TokenFile,
    options: &LoginOptions,
    show_link: impl FnOnce(&Url),
) -> Result<(), LoginError> {
    crate::tls::install();
    if endpoint.url.scheme() != "https" && !endpoint.url.host_str().is_some_and(is_loopback_host) {
        return Err(LoginError::Insecure {
            url: endpoint.url.clone(),
        });
    }
    // Before the user is sent away: a token that cannot be stored is a wasted login.
    tokens.check_writable().await?;
    let rule = PortRule::of(&endpoint.oauth);
    let listener = CallbackListener::bind(rule)
        .await
        .map_err(|source| LoginError::CallbackPort {
            port: match rule {
                PortRule::Exactly(port) => port,
                PortRule::DefaultOrNext => 8080,
            },
            source,
        })?;
    let store = ServerTokens::new(tokens.clone(), endpoint);
    let granted = store
        .entry()
        .await?
        .map(|entry| entry.credentials.granted_scopes)
        .unwrap_or_default();
    let session = prepare(endpoint, &store, granted, &listener, options)
        .await
        .map_err(|cause| LoginError::Prepare {
            url: endpoint.url.clone(),
            cause,
        })?;
    let (link, state) = link_and_state(&session).map_err(|cause| LoginError::Callback { cause })?;
    show_link(&link);
    if options.browser == Browser::Open {
        super::browser::open(&link);
    }
    let visit = tokio::time::timeout(options.timeout, listener.visit(&state))
        .await
        .map_err(|_| LoginError::TimedOut {
            timeout: options.timeout,
        })?
        .map_err(|source| LoginError::Listener { source })?;
    redeem(session, visit).await
}

/// Deletes the tokens of a server; false if there were none.
pub async fn logout(endpoint: &HttpEndpoint, tokens: &TokenFile) -> Result<bool, TokenFileError> {
    ServerTokens::new(tokens.clone(), endpoint).forget().await
}

/// Discovery and the choice of identity: pre-registered, metadata document, dynamic registration.
async fn prepare(
    endpoint: &HttpEndpoint,
    store: &ServerTokens,
    granted: Vec<String>,
    listener: &CallbackListener,
    options: &LoginOptions,
) -> Result<AuthorizationSession, AuthError> {
    let mut manager = AuthorizationManager::new(endpoint.url.clone()).await?;
    manager.set_credential_store(store.clone());
    let resolution = manager
        .resolve_metadata_from_challenge(options.challenge.as_deref())
        .await?;
    let takes_metadata_url = resolution
        .metadata
        .additional_fields
        .get("client_id_metadata_document_supported")
        .is_some_and(|supported| supported == true);
    manager.set_metadata(resolution.metadata);

    let oauth = &endpoint.oauth;
    let mut scopes = match oauth.scopes.as_slice() {
        [] => manager.select_initial_scopes(&[]).await,
        configured => configured.to_vec(),
    };
    // A server that asks for one more scope does not mean to revoke the others.
    for scope in granted {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    let registration = match (&oauth.client_id, &oauth.client_metadata_url) {
        (Some(_), _) => Registration::ByHand,
        (None, Some(_)) if takes_metadata_url => Registration::ByHand,
        (None, _) => Registration::ByUs,
    };
    let redirect_uri = listener.redirect_uri(registration);
    let mut request = AuthorizationRequest::new(&redirect_uri)
        .with_scopes(scopes.iter())
        .with_initial_scope_selection();
    if let Some(challenge) = &options.challenge {
        request = request.with_challenge(challenge);
    }
    let (client_id, client_secret) = match (&oauth.client_id, &oauth.client_metadata_url) {
        (Some(client_id), _) => (client_id.clone(), oauth.client_secret.clone()),
        (None, Some(document)) if takes_metadata_url => (document.clone(), None),
        (None, _) => {
            let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let registered = manager
                .register_client(crate::name::CLIENT_NAME, &redirect_uri, &scopes)
                .await?;
            let secret = registered.client_secret.map(Secret::new);
            // Stored only here; one from the configuration stays there.
            store.remember_secret(secret.clone());
            (registered.client_id, secret)
        }
    };
    request = request.with_preregistered_client(client_id);
    if let Some(secret) = &client_secret {
        request = request.with_client_secret(secret.expose());
    }
    AuthorizationSession::new(manager, request)
        .await
        .map_err(|(_, error)| error)
}

async fn redeem(session: AuthorizationSession, visit: Visit) -> Result<(), LoginError> {
    if let Some(reason) = visit.refusal() {
        visit.answer(Err(&reason)).await;
        return Err(LoginError::Refused { reason });
    }
    match session.handle_callback_url(visit.url.as_str()).await {
        Ok(_) => {
            visit.answer(Ok(())).await;
            Ok(())
        }
        Err(cause) => {
            visit.answer(Err(&explain(&cause))).await;
            Err(LoginError::Callback { cause })
        }
    }
}

fn link_and_state(session: &AuthorizationSession) -> Result<(Url, String), AuthError> {
    let link = Url::parse(session.get_authorization_url())?;
    let state = link
        .query_pairs()
        .find(|(key, _)| key == "state")
        .map(|(_, value)| value.into_owned());
    let state = state.ok_or_else(|| AuthError::InternalError("the login link has no state".to_owned()))?;
    Ok((link, state))
}

/// rmcp's message with the next step, where there is one.
fn explain(error: &AuthError) -> String {
    // Its causes are on lines of their own.
    let text = without_secrets(&error.to_string()).replace("\n  Caused by: ", ": ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match error {
        AuthError::RegistrationFailed(_) => format!(
            "{text}; the server may not support dynamic registration: register a client and set `client_id`, \
             or set `headers.Authorization` to a token of the server"
        ),
        AuthError::PkceUnsupported => format!("{text}; this client requires it"),
        AuthError::AuthorizationServerMismatch { .. }
        | AuthError::AuthorizationServerMissingIssuer { .. } => {
            format!("{text}; this may be an attack, and no token was requested")
        }
        _ => text,
    }
}
