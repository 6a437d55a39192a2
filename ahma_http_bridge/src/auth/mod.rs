//! Who is asking: tokens from a file, or JWTs of an OAuth issuer, or anybody on the local machine.
//!
//! A credential is looked at here and nowhere else. It never reaches a log, an error or a child.

mod authenticator;
mod oauth;
mod principal;
mod secret;
mod tokens;

pub use oauth::OAuthSettings;
pub use secret::Secret;
pub use tokens::{IssuedToken, TokenEntry, TokenError, TokenParams, issue_token};

pub(crate) use authenticator::{Authenticator, METADATA_PATH, is_metadata_path};
pub(crate) use oauth::oauth_address;
pub(crate) use principal::Principal;

use std::path::PathBuf;

/// How clients prove who they are.
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
    /// One token for everybody who has it.
    Single(Secret),
    /// A file of hashed tokens, read again when it changes.
    File(PathBuf),
}
