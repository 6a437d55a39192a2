//! Authentication: tokens from a file, JWTs of an OAuth issuer, or none for the local machine.
//!
//! A credential is looked at here and nowhere else. It never reaches a log, an error or a child.

mod authenticator;
mod issue;
mod oauth;
mod principal;
mod token_file;
mod tokens;

pub use issue::{IssuedToken, TokenParams, issue_token};
pub use oauth::OAuthSettings;
pub use principal::Role;
pub use token_file::{TokenEntry, TokenError, list_tokens, revoke_token};

pub(crate) use authenticator::{AuthError, AuthSetupError, Authenticator};
pub(crate) use oauth::oauth_address;
pub(crate) use principal::Principal;

use std::path::PathBuf;

use ahma_common::secret::Secret;

/// The way in which clients authenticate.
#[derive(Debug, Clone)]
pub enum AuthSettings {
    /// They need not: for the local machine only.
    None,
    /// By a bearer token or an `X-API-Key`.
    Token(TokenSource),
    /// By a JWT of an authorization server.
    OAuth(OAuthSettings),
}

#[derive(Debug, Clone)]
pub enum TokenSource {
    /// One token shared by all clients.
    Single(Secret),
    /// A file of hashed tokens, read again when it changes.
    File(PathBuf),
}
