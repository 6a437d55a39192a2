//! A login that a connection waits for. It may be made here, or by another process meanwhile.

use std::time::Duration;

use url::Url;

use super::{
    login::{Browser, LoginError, LoginOptions, login},
    store::ServerTokens,
    token_file::TokenFile,
};
use crate::config::HttpEndpoint;

/// Interval at which the token file is checked for the login of another process.
const TOKEN_POLL: Duration = Duration::from_secs(2);
const PAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// Logins take turns: there is one callback address and one user.
static LOGIN_TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

pub(crate) struct PendingLogin<'a> {
    endpoint: &'a HttpEndpoint,
    tokens: TokenFile,
    store: ServerTokens,
    /// The tokens that were not good enough.
    before: Option<u64>,
}

impl<'a> PendingLogin<'a> {
    pub(crate) async fn new(endpoint: &'a HttpEndpoint, tokens: TokenFile) -> Self {
        let store = ServerTokens::new(tokens.clone(), endpoint);
        let before = store.fingerprint().await;
        Self {
            endpoint,
            tokens,
            store,
            before,
        }
    }

    /// Logs in, or returns when another process has.
    pub(crate) async fn log_in(
        &self,
        browser: Browser,
        challenge: String,
        show_link: impl FnOnce(&Url),
    ) -> Result<(), LoginError> {
        let options = LoginOptions {
            browser,
            challenge: Some(challenge).filter(|challenge| !challenge.is_empty()),
            ..LoginOptions::default()
        };
        let mut logging_in = std::pin::pin!(async {
            let _turn = LOGIN_TURN.lock().await;
            login(self.endpoint, &self.tokens, &options, show_link).await
        });
        tokio::select! {
            logged_in = &mut logging_in => logged_in,
            () = self.made_elsewhere() => {
                // Possibly by ourselves, and the user's browser still waits for its page.
                let _ = tokio::time::timeout(PAGE_TIMEOUT, logging_in).await;
                Ok(())
            }
        }
    }

    /// Resolves once other tokens are stored.
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
