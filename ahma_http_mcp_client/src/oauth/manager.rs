//! Builds the rmcp manager that attaches and refreshes the tokens of one server.

use rmcp::transport::auth::{AuthError, AuthorizationManager, OAuthClientConfig};

use super::{store::ServerTokens, token_file::TokenFile};
use crate::{
    config::{HttpEndpoint, Secret},
    shown::shown_address,
};

/// A manager that knows the stored tokens, if there are any for this client.
///
/// With stored tokens this asks the server for its metadata, so it fails when the server cannot be reached.
pub(crate) async fn manager_for(
    endpoint: &HttpEndpoint,
    tokens: &TokenFile,
) -> Result<AuthorizationManager, AuthError> {
    crate::tls::install();
    let mut manager = AuthorizationManager::new(endpoint.url.clone()).await?;
    if endpoint.has_own_credentials() {
        return Ok(manager);
    }
    let store = ServerTokens::new(tokens.clone(), endpoint);
    let entry = store
        .entry()
        .await
        .map_err(|error| AuthError::CredentialStoreError(ahma_common::error_chain(&error)))?;
    manager.set_credential_store(store.clone());
    let Some(entry) = entry else { return Ok(manager) };
    let configured = endpoint.oauth.client_id.as_deref();
    if configured.is_some_and(|client_id| client_id != entry.credentials.client_id) {
        tracing::info!(
            url = shown_address(&endpoint.url),
            "the configured client_id changed; the stored login no longer counts"
        );
        store.remember_secret(None);
        manager.set_credential_store(rmcp::transport::auth::InMemoryCredentialStore::new());
        return Ok(manager);
    }
    if manager.initialize_from_store().await? {
        // rmcp restores the id only; a confidential client needs its secret to refresh as well.
        let configured = endpoint.oauth.client_secret.clone();
        let registered = entry
            .client_secret
            .map(Secret::new)
            .filter(|_| configured.is_none());
        store.remember_secret(registered.clone());
        if let Some(secret) = configured.or(registered) {
            let config = OAuthClientConfig::new(entry.credentials.client_id, endpoint.url.as_str())
                .with_client_secret(secret.expose());
            manager.configure_client(config)?;
        }
    }
    Ok(manager)
}
