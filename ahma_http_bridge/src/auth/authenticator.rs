//! From a request's headers to the one who made it.

use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};

use super::oauth::{OAuth, OAuthError};
use super::tokens::{Checked, Tokens};
use super::{AuthSettings, OAuthSettings, Principal, Secret, TokenSource};
use crate::http::refusal::Refusal;
use crate::redact::Redactor;
use crate::routes::ENDPOINT;
use crate::server::ServeError;
use crate::settings::BridgeSettings;

/// When to come back if nobody can be let in: what is wrong takes somebody to mend.
const AUTH_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) enum Authenticator {
    Anybody(Arc<Principal>),
    Tokens(Tokens),
    OAuth(OAuth),
}

impl Authenticator {
    pub(crate) fn new(settings: &BridgeSettings) -> Result<Self, ServeError> {
        let max_sessions = settings.limits.sessions_per_principal;
        Ok(match &settings.auth {
            AuthSettings::None => Self::Anybody(Arc::new(Principal::anonymous())),
            AuthSettings::Token(TokenSource::Single(token)) => Self::Tokens(Tokens::single(token)),
            AuthSettings::Token(TokenSource::File(path)) => {
                Self::Tokens(Tokens::from_file(path, settings.isolation, max_sessions)?)
            }
            AuthSettings::OAuth(settings) => Self::OAuth(
                OAuth::new(settings.clone(), max_sessions)
                    .map_err(|error| ServeError::Http(error.to_string()))?,
            ),
        })
    }

    /// Who asks. The redactor, if something is written down, hears of a credential that is accepted.
    pub(crate) async fn check(
        &self,
        headers: &HeaderMap,
        redactor: Option<&Redactor>,
    ) -> Result<Arc<Principal>, Refusal> {
        let (token, principal) = match self {
            Self::Anybody(principal) => return Ok(Arc::clone(principal)),
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

    fn missing(&self) -> Refusal {
        self.challenge("credentials are missing", None)
    }

    fn of_token(&self, checked: Checked) -> Result<Arc<Principal>, Refusal> {
        match checked {
            Checked::Valid(principal) => Ok(principal),
            Checked::Expired => Err(self.challenge("the token is expired", Some("invalid_token"))),
            Checked::Unknown => Err(self.challenge("the token is not known", Some("invalid_token"))),
            // The token may be a good one, so it is not called a bad one.
            Checked::NoFile => Err(Refusal::unavailable(
                "the tokens file cannot be read, so nobody can be let in",
                AUTH_PATIENCE,
            )),
        }
    }

    fn of_oauth(&self, error: OAuthError) -> Refusal {
        match error {
            OAuthError::Invalid(why) => self.challenge(why, Some("invalid_token")),
            OAuthError::Scopes(scopes) => self.insufficient(&scopes),
            OAuthError::IssuerUnreachable => Refusal::unavailable(
                "the authorization server cannot be reached, so nobody can be let in",
                AUTH_PATIENCE,
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
        } = oauth.settings();
        Some(serde_json::json!({
            "resource": resource,
            "authorization_servers": [issuer],
            "scopes_supported": required_scopes,
            "bearer_methods_supported": ["header"],
        }))
    }

    /// Notices changes of what it was configured with.
    pub(crate) fn refresh(&self) {
        if let Self::Tokens(tokens) = self {
            tokens.refresh();
        }
    }

    /// Whether a client's rights still confine it to where its sessions are.
    pub(crate) fn confines_as_before(&self, principal: &Principal) -> bool {
        match self {
            Self::Tokens(tokens) => tokens.confines_as_before(principal),
            Self::Anybody(_) | Self::OAuth(_) => true,
        }
    }

    fn challenge(&self, why: &str, error: Option<&str>) -> Refusal {
        let mut challenge = "Bearer realm=\"mcp\"".to_owned();
        if let Some(error) = error {
            challenge.push_str(&format!(", error=\"{error}\", error_description=\"{why}\""));
        }
        if let Self::OAuth(oauth) = self {
            challenge.push_str(&format!(
                ", resource_metadata=\"{}\"",
                metadata_address(oauth.settings())
            ));
        }
        Refusal::unauthorized(why, &challenge)
    }

    fn insufficient(&self, scopes: &str) -> Refusal {
        let Self::OAuth(oauth) = self else {
            return self.challenge("forbidden", None);
        };
        let challenge = format!(
            "Bearer realm=\"mcp\", error=\"insufficient_scope\", scope=\"{scopes}\", resource_metadata=\"{}\"",
            metadata_address(oauth.settings())
        );
        Refusal::unauthorized(
            format!("the token lacks a scope; needed are: {scopes}"),
            &challenge,
        )
        .with_status(StatusCode::FORBIDDEN)
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

pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Whether metadata may be at this path, which anybody may read: nothing else can be there.
pub(crate) fn is_metadata_path(path: &str) -> bool {
    path.strip_prefix(METADATA_PATH)
        .is_some_and(|of| of.is_empty() || of.starts_with('/'))
}

/// Whether a credential may be in `X-Api-Key`, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Allowed,
    Ignored,
}

/// The credential in the headers. Two different ones are none: which would count?
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
