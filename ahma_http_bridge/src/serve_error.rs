//! The reasons why a bridge does not serve.

use std::io;
use std::path::PathBuf;

use crate::auth::{AuthSetupError, TokenError};
use crate::settings::ExposureError;
use crate::tls::TlsError;

/// The reason why a bridge does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Exposed(#[from] ExposureError),
    #[error(transparent)]
    Tokens(#[from] TokenError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("no client for the authorization server: {0}")]
    Http(String),
    #[error("--audit-file {path}: {reason}")]
    Audit { path: PathBuf, reason: String },
    #[error("the listener failed")]
    Listener(#[from] io::Error),
}

impl From<AuthSetupError> for ServeError {
    fn from(error: AuthSetupError) -> Self {
        match error {
            AuthSetupError::Tokens(error) => Self::Tokens(error),
            AuthSetupError::OAuthClient(reason) => Self::Http(reason),
        }
    }
}
