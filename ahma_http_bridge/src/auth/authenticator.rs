//! Identifies the client of a request by its headers.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::oauth::{OAuth, OAuthError};
use super::tokens::{Checked, Tokens};
use super::{AuthSettings, OAuthSettings, Principal, TokenError, TokenSource};
use crate::isolation::Isolation;
use crate::paths::{ENDPOINT, METADATA_PATH};
use crate::redact::Redactor;
use ahma_common::secret::Secret;

#[derive(Debug)]
pub(crate) enum Authenticator {
    Anonymous(Arc<Principal>),
    Tokens(Tokens),
    OAuth(OAuth),
}

/// Reason for refusing a request. The texts are for the client.
#[derive(Debug)]
pub(crate) enum AuthError {
    /// The credential is missing or wrong; the challenge says what is wanted.
    Unauthorized { message: String, challenge: String },
    /// The credential is valid, but lacks a scope.
    Forbidden { message: String, challenge: String },
    /// No credential can be checked at the moment, not even a valid one.
    Unavailable(&'static str),
}

/// Failure to set authentication up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthSetupError {
    #[error(transparent)]
    Tokens(#[from] TokenError),
    #[error("{0}")]
    OAuthClient(String),
}

impl Authenticator {
    pub(crate) fn new(
        settings: &AuthSettings,
        isolation: Isolation,
        max_sessions: usize,
    ) -> Result<Self, AuthSetupError> {
        Ok(match settings {
            AuthSettings::None => Self::Anonymous(Arc::new(Principal::anonymous())),
            AuthSettings::Token(TokenSource::Single(token)) => Self::Tokens(Tokens::single(token)),
            AuthSettings::Token(TokenSource::File(path)) => {
                Self::Tokens(Tokens::from_file(path, isolation, max_sessions)?)
            }
            AuthSettings::OAuth(settings) => Self::OAuth(
                OAuth::new(settings.clone(), max_sessions)
                    .map_err(|error| AuthSetupError::OAuthClient(error.to_string()))?,
            ),
        })
    }

    /// The principal of a request. An accepted credential is made known to the redactor, if messages are written down.
    pub(crate) async fn check(
        &self,
        headers: &HeaderMap,
        redactor: Option<&Redactor>,
    ) -> Result<Arc<Principal>, AuthError> {
        let (token, principal) = match self {
            Self::Anonymous(principal) => return Ok(Arc::clone(principal)),
            Self::Tokens(tokens) => {
                let token = presented(headers, Key::Allowed).ok_or_else(|| self.missing())?;
                (token, self.of_token(tokens.check(token))?)
            }
            Self::OAuth(oauth) => {
                let token = presented(headers, Key::Ignored).ok_or_else(|| self.missing())?;
                let checked = oauth.check(token).await;
                (token, checked.map_err(|error| self.of_oauth(error))?)
            }
        };
        if let Some(redactor) = redactor {
            redactor.remember(&Secret::new(token));
        }
        Ok(principal)
    }

    fn missing(&self) -> AuthError {
        self.challenge("credentials are missing", None)
    }

    fn of_token(&self, checked: Checked) -> Result<Arc<Principal>, AuthError> {
        match checked {
            Checked::Valid(principal) => Ok(principal),
            Checked::Expired => Err(self.challenge("the token is expired", Some("invalid_token"))),
            Checked::Unknown => Err(self.challenge("the token is not known", Some("invalid_token"))),
            // The token may be a good one, so it is not called a bad one.
            Checked::NoFile => Err(AuthError::Unavailable(
                "the tokens file cannot be read, so no client can be let in",
            )),
        }
    }

    fn of_oauth(&self, error: OAuthError) -> AuthError {
        match error {
            OAuthError::Invalid(why) => self.challenge(why, Some("invalid_token")),
            OAuthError::Scopes(scopes) => self.insufficient(&scopes),
            OAuthError::IssuerUnreachable => AuthError::Unavailable(
                "the authorization server cannot be reached, so no client can be let in",
            ),
        }
    }

    /// The metadata of RFC 9728, for clients that must find the authorization server, if it belongs at this path.
    pub(crate) fn resource_metadata(&self, path: &str) -> Option<serde_json::Value> {
        let Self::OAuth(oauth) = self else { return None };
        let of = path.strip_prefix(METADATA_PATH)?;
        let own = url::Url::parse(&oauth.settings().resource).ok()?;
        // Behind a proxy the resource's path may be another than ours.
        if !["", ENDPOINT, own.path().trim_end_matches('/')].contains(&of) {
            return None;
        }
        let OAuthSettings {
            issuer,
            resource,
            required_scopes,
            ..
        } = oauth.settings();
        Some(serde_json::json!({
            "resource": resource,
            "authorization_servers": [issuer],
            "scopes_supported": required_scopes,
            "bearer_methods_supported": ["header"],
        }))
    }

    /// Reads the tokens file again if it has changed.
    pub(crate) fn refresh(&self) {
        if let Self::Tokens(tokens) = self {
            tokens.refresh();
        }
    }

    /// The tokens that are known, without their hashes; none of other ways to authenticate.
    pub(crate) fn tokens(&self) -> Vec<serde_json::Value> {
        match self {
            Self::Tokens(tokens) => tokens.described(),
            Self::Anonymous(_) | Self::OAuth(_) => Vec::new(),
        }
    }

    /// Takes a token out of the file, with effect from the next request on. False if there is none of that name.
    pub(crate) fn revoke(&self, name: &str) -> Result<bool, TokenError> {
        match self {
            Self::Tokens(tokens) => tokens.revoke(name),
            Self::Anonymous(_) | Self::OAuth(_) => Ok(false),
        }
    }

    /// True if a client's rights still confine it to the directory of its sessions.
    pub(crate) fn confines_as_before(&self, principal: &Principal) -> bool {
        match self {
            Self::Tokens(tokens) => tokens.confines_as_before(principal),
            Self::Anonymous(_) | Self::OAuth(_) => true,
        }
    }

    fn challenge(&self, why: &str, error: Option<&str>) -> AuthError {
        let error = error.map(|error| format!(", error=\"{error}\", error_description=\"{why}\""));
        AuthError::Unauthorized {
            message: why.to_owned(),
            challenge: self.challenge_text(&error.unwrap_or_default()),
        }
    }

    fn insufficient(&self, scopes: &str) -> AuthError {
        let error = format!(", error=\"insufficient_scope\", scope=\"{scopes}\"");
        AuthError::Forbidden {
            message: format!("the token lacks a scope; needed are: {scopes}"),
            challenge: self.challenge_text(&error),
        }
    }

    fn challenge_text(&self, error: &str) -> String {
        let mut challenge = format!("Bearer realm=\"mcp\"{error}");
        if let Self::OAuth(oauth) = self {
            let metadata = metadata_address(oauth.settings());
            challenge.push_str(&format!(", resource_metadata=\"{metadata}\""));
        }
        challenge
    }
}

/// The well-known address of a resource `https://host/path` has the path at its end.
fn metadata_address(settings: &OAuthSettings) -> String {
    match url::Url::parse(&settings.resource) {
        Ok(mut address) => {
            let path = format!("{METADATA_PATH}{}", address.path().trim_end_matches('/'));
            address.set_path(&path);
            address.into()
        }
        Err(_) => METADATA_PATH.to_owned(),
    }
}

/// Permission to present a credential in `X-Api-Key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Allowed,
    Ignored,
}

/// The credential in the headers. Two different ones count as none, since either could be meant.
fn presented(headers: &HeaderMap, key: Key) -> Option<&str> {
    let single = |name: &str| {
        let mut values = headers.get_all(name).iter();
        let value = values.next().filter(|_| values.next().is_none())?;
        value.to_str().ok()
    };
    let bearer = single(AUTHORIZATION.as_str()).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    let key = match key {
        Key::Allowed => single("x-api-key").map(str::trim),
        Key::Ignored => None,
    };
    match (bearer, key) {
        (Some(bearer), Some(key)) if bearer != key => None,
        (bearer, key) => bearer.or(key).filter(|token| !token.is_empty()),
    }
}
