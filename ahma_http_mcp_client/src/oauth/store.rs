//! One server's entry in the token file, as the credential store that rmcp expects.

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::transport::auth::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};

use super::token_file::{TokenEntry, TokenFile, TokenFileError};
use crate::config::{HttpEndpoint, Secret};

#[derive(Clone, Debug)]
pub(crate) struct ServerTokens {
    file: TokenFile,
    /// The server's address, and the file it was found in if it was: tokens of one server are never sent to another.
    key: Arc<str>,
    /// The secret of a client that registered itself, to be saved with the next credentials.
    client_secret: Arc<Mutex<Option<Secret>>>,
}

impl ServerTokens {
    pub(crate) fn new(file: TokenFile, endpoint: &HttpEndpoint) -> Self {
        let mut key = endpoint.url.clone();
        key.set_fragment(None);
        // A password in the address is the user's, and has no place in another file.
        let _ = key.set_username("");
        let _ = key.set_password(None);
        Self {
            file,
            key: match &endpoint.found_in {
                None => String::from(key).into(),
                Some(file) => format!("{key} as found in {}", file.display()).into(),
            },
            client_secret: Arc::default(),
        }
    }

    pub(crate) async fn entry(&self) -> Result<Option<TokenEntry>, TokenFileError> {
        self.file.entry(&self.key).await
    }

    /// Deletes this server's entry; false if there was none.
    pub(crate) async fn forget(&self) -> Result<bool, TokenFileError> {
        let was_there = self.entry().await?.is_some();
        self.file
            .update(&self.key, |slot| slot.take().is_some())
            .await
            .map(|()| was_there)
    }

    pub(crate) fn remember_secret(&self, secret: Option<Secret>) {
        *self.client_secret.lock() = secret;
    }

    /// A number that changes whenever the stored token does, and reveals nothing of it.
    pub(crate) async fn fingerprint(&self) -> Option<u64> {
        use std::hash::{BuildHasher, RandomState};
        static KEYS: std::sync::LazyLock<RandomState> = std::sync::LazyLock::new(RandomState::new);
        let entry = self.entry().await.ok()??;
        entry.credentials.token_response.as_ref()?;
        let text = serde_json::to_vec(&entry).ok()?;
        Some(KEYS.hash_one(text))
    }
}

#[async_trait::async_trait]
impl CredentialStore for ServerTokens {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self
            .entry()
            .await
            .map_err(store_error)?
            .map(|entry| entry.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let client_secret = self
            .client_secret
            .lock()
            .as_ref()
            .map(|secret| secret.expose().to_owned());
        let entry = TokenEntry {
            credentials,
            client_secret,
        };
        let write = self.file.update(&self.key, move |slot| {
            *slot = Some(entry);
            true
        });
        write.await.map_err(store_error)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.forget().await.map(drop).map_err(store_error)
    }

    /// The tokens are dead; unless another process has just saved new ones, they go.
    async fn on_refresh_token_rejected(&self, rejected: &StoredCredentials) -> Result<(), AuthError> {
        let rejected = serde_json::to_value(rejected).map_err(store_error)?;
        let drop_rejected = self.file.update(&self.key, move |slot| {
            let stored = slot
                .as_ref()
                .and_then(|entry| serde_json::to_value(&entry.credentials).ok());
            stored == Some(rejected) && slot.take().is_some()
        });
        drop_rejected.await.map_err(store_error)
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        // One lock for each server: a token endpoint that hangs delays no other refresh.
        let purpose = format!("refresh-{:016x}", crate::name::fnv1a(&self.key));
        let lock = self.file.lock(&purpose).await.map_err(store_error)?;
        Ok(Some(CredentialRefreshGuard::new(lock)))
    }
}

fn store_error(error: impl std::error::Error) -> AuthError {
    AuthError::CredentialStoreError(ahma_common::error_chain(&error))
}
