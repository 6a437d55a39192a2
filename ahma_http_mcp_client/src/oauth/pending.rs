//! A login that a running server waits for. It may be made here, or by somebody else meanwhile.

use std::time::Duration;

use url::Url;

use super::login::{Browser, LoginError, LoginOptions, login};
use super::store::ServerTokens;
use crate::config::HttpEndpoint;
use crate::settings::{ClientSettings, LoginMode};

/// How often we look whether another process has logged in.
const TOKEN_POLL: Duration = Duration::from_secs(2);
const PAGE_PATIENCE: Duration = Duration::from_secs(2);

/// Logins take turns: there is one callback address and one user.
static LOGIN_TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

pub(crate) struct PendingLogin<'a> {
    endpoint: &'a HttpEndpoint,
    settings: &'a ClientSettings,
    store: ServerTokens,
    /// The tokens that were not good enough.
    before: Option<u64>,
}

impl<'a> PendingLogin<'a> {
    pub(crate) async fn new(endpoint: &'a HttpEndpoint, settings: &'a ClientSettings) -> Self {
        let store = ServerTokens::new(settings.tokens.clone(), endpoint);
        let before = store.fingerprint().await;
        Self {
            endpoint,
            settings,
            store,
            before,
        }
    }

    /// Logs in, or returns when somebody else has.
    pub(crate) async fn log_in(
        &self,
        challenge: String,
        show_link: impl FnOnce(&Url),
    ) -> Result<(), LoginError> {
        let options = LoginOptions {
            browser: match self.settings.login {
                LoginMode::Browser => Browser::Open,
                LoginMode::Link | LoginMode::Never => Browser::Leave,
            },
            challenge: Some(challenge).filter(|challenge| !challenge.is_empty()),
            ..LoginOptions::default()
        };
        let mut logging_in = std::pin::pin!(async {
            let _turn = LOGIN_TURN.lock().await;
            login(self.endpoint, &self.settings.tokens, &options, show_link).await
        });
        tokio::select! {
            logged_in = &mut logging_in => logged_in,
            () = self.made_elsewhere() => {
                // Possibly by ourselves, and the user's browser still waits for its page.
                let _ = tokio::time::timeout(PAGE_PATIENCE, logging_in).await;
                Ok(())
            }
        }
    }

    /// Resolves once the stored tokens are others.
    pub(crate) async fn made_elsewhere(&self) {
        loop {
            tokio::time::sleep(TOKEN_POLL).await;
            let now = self.store.fingerprint().await;
            if now.is_some() && now != self.before {
                return;
            }
        }
    }
}
