//! Access to the console: logins, and protection from pages of other origins.
//!
//! A login is a cookie that scripts cannot read and other sites cannot send. Cookies do not tell ports apart, though, so a
//! page that a command serves on this machine might be sent one: every request must come from a page of the console itself,
//! every change carries a token from its form, and a connection of a command is refused whatever it presents.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use serde_json::json;
use url::form_urlencoded;

use crate::auth::{Principal, Role};
use crate::bridge::Bridge;
use crate::console::{Entry, Operator, ServerAccess, Visitor};
use crate::http::negotiate::single;
use crate::http::page_policy::{self, CacheRule};
use crate::http::refusal::{Reason, Refusal};
use crate::logins::{Login, Logins};
use crate::paths::{CONSOLE_ASSETS, CONSOLE_LOGIN, CONSOLE_LOGOUT};
use crate::peer::{Peer, PeerCheck};
use ahma_common::secret::Secret;

/// Longest form. A reason is a line of text.
const MAX_FORM_BYTES: usize = 64 << 10;

/// A page that is open is looked at so often: its login may be over.
const LOGIN_CHECK: Duration = Duration::from_secs(2);

/// State of the door.
#[derive(Debug)]
pub(crate) struct ConsoleDoor {
    pub(crate) logins: Logins,
    /// Cookies do not tell ports apart, so their names do.
    cookie: String,
    entry: Entry,
    /// Under TLS the cookie is never sent without it.
    is_secure: bool,
    peers: Arc<PeerCheck>,
    /// The server behind it, unless the console is on its own.
    bridge: Option<Arc<Bridge>>,
    /// Name of a person who logs in without one.
    local_name: Arc<str>,
}

impl ConsoleDoor {
    /// For the console of a server.
    pub(crate) fn of_bridge(bridge: &Arc<Bridge>, port: u16, peers: Arc<PeerCheck>) -> Self {
        let access = ServerAccess(Arc::clone(bridge));
        Self {
            logins: Logins::default(),
            cookie: cookie_name(port),
            entry: if access.knows_clients() {
                Entry::Token
            } else {
                Entry::Button
            },
            is_secure: bridge.settings.tls.is_some(),
            peers,
            bridge: Some(Arc::clone(bridge)),
            local_name: Principal::anonymous().name,
        }
    }

    /// For a console on its own.
    pub(crate) fn alone(port: u16, user: &str) -> Self {
        Self {
            logins: Logins::default(),
            cookie: cookie_name(port),
            entry: Entry::Link,
            is_secure: false,
            peers: PeerCheck::of_one_user(),
            bridge: None,
            local_name: user.into(),
        }
    }
}

fn cookie_name(port: u16) -> String {
    format!("ahma_console_{port}")
}

/// The pages behind the door.
pub(crate) fn router(door: &Arc<ConsoleDoor>, pages: Router) -> Router {
    // Answered by the door itself, but it must be a route to get there.
    let nothing = async || StatusCode::NOT_FOUND;
    pages
        .route(CONSOLE_LOGOUT, axum::routing::any(nothing))
        .layer(from_fn_with_state(Arc::clone(door), enter))
}

async fn enter(State(door): State<Arc<ConsoleDoor>>, request: Request, next: Next) -> Response {
    let is_asset = request.uri().path().starts_with(CONSOLE_ASSETS);
    let visit = request.headers().clone();
    let mut response = match door.admit(request).await {
        Ok(Admitted::Answered(response)) => response,
        Ok(Admitted::Page { request, refused }) => {
            let mut response = next.run(request).await;
            if let Some(why) = refused {
                *response.status_mut() = StatusCode::FORBIDDEN;
                response.extensions_mut().insert(Reason(why));
            }
            response
        }
        Err(refusal) => refusal.into_response(),
    };
    if is_event_stream(&response) {
        response = response.map(|events| {
            let events = events.into_data_stream();
            Body::from_stream(events.take_until(async move { door.login_over(&visit).await }))
        });
    }
    let cache = match is_asset && response.status().is_success() {
        true => CacheRule::Keep,
        false => CacheRule::Forget,
    };
    page_policy::apply(response.headers_mut(), cache);
    response
}

fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// A request that got through the door.
enum Admitted {
    Answered(Response),
    Page {
        request: Request,
        /// Reason why a login failed, which the page says and the audit trail has.
        refused: Option<String>,
    },
}

impl ConsoleDoor {
    async fn admit(&self, request: Request) -> Result<Admitted, Refusal> {
        check_origin(&request)?;
        if let Some(peer) = request.extensions().get::<Peer>() {
            self.peers.judge(peer.address, peer.ours).await?;
        }
        let path = request.uri().path();
        let visitor = self.visitor(request.headers()).await?;
        match (path, visitor) {
            // The link was opened again.
            (CONSOLE_LOGIN, Some(_)) if request.method() == Method::GET => {
                Ok(Admitted::Answered(see_other("/")))
            }
            (CONSOLE_LOGIN, _) => self.log_in(request).await,
            (path, None) if path == "/" || path.starts_with(CONSOLE_ASSETS) => {
                Ok(self.welcome(request, None))
            }
            // Back to where one can log in.
            (_, None) if request.method() == Method::GET => Ok(Admitted::Answered(see_other("/"))),
            (_, None) => Err(Refusal::new(
                StatusCode::UNAUTHORIZED,
                -32000,
                "log in first: open / in a browser",
            )),
            (_, Some(login)) => self.pass(request, login).await,
        }
    }

    /// The login that a request comes with, if it is still good. Credentials that are not an operator's are refused.
    async fn visitor(&self, headers: &HeaderMap) -> Result<Option<Login>, Refusal> {
        if headers.contains_key(AUTHORIZATION) {
            let principal = self.operator(headers).await?;
            return Ok(Some(Login {
                name: Arc::clone(&principal.name),
                form_token: "".into(),
                credential: None,
            }));
        }
        let Some(login) = self.cookie(headers).and_then(|cookie| self.logins.find(cookie)) else {
            return Ok(None);
        };
        match &login.credential {
            None => Ok(Some(login)),
            // Revoked or expired since: the cookie is worth nothing any more.
            Some(credential) => Ok(self.operator(&bearer(credential)?).await.is_ok().then_some(login)),
        }
    }

    /// Returns when the login that a request came with is good no more.
    async fn login_over(&self, headers: &HeaderMap) {
        while let Ok(Some(_)) = self.visitor(headers).await {
            tokio::time::sleep(LOGIN_CHECK).await;
        }
    }

    /// The operator whose token is in the headers.
    async fn operator(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Refusal> {
        let bridge = (self.bridge.as_ref()).ok_or_else(|| {
            Refusal::forbidden("this console takes no tokens; use the link of its terminal")
        })?;
        let principal = bridge.auth.check(headers, bridge.writes_messages()).await?;
        if principal.may_act_as(Role::Operator) {
            Ok(principal)
        } else {
            Err(Refusal::forbidden(
                "only the token of an operator is good for the console",
            ))
        }
    }

    async fn log_in(&self, request: Request) -> Result<Admitted, Refusal> {
        let (parts, body) = request.into_parts();
        let attempt = match self.entry {
            // Programs that only look whether a link leads somewhere ask for the head.
            Entry::Link if parts.method == Method::GET => {
                let code = field(parts.uri.query().unwrap_or_default().as_bytes(), "code");
                if self.logins.use_code(&code.unwrap_or_default()) {
                    Ok((Arc::clone(&self.local_name), None))
                } else {
                    Err("this link was used already, or another one was made since".to_owned())
                }
            }
            Entry::Button if parts.method == Method::POST => Ok((Arc::clone(&self.local_name), None)),
            Entry::Token if parts.method == Method::POST => {
                let form = read_form(body).await?;
                let token = Secret::new(field(&form, "token").unwrap_or_default().trim());
                let found = self.operator(&bearer(&token)?).await;
                found
                    .map(|principal| (Arc::clone(&principal.name), Some(token)))
                    .map_err(|refusal| refusal.message().to_owned())
            }
            Entry::Link | Entry::Button | Entry::Token => return Ok(Admitted::Answered(see_other("/"))),
        };
        match attempt {
            Ok((name, credential)) => {
                if let Some(bridge) = &self.bridge {
                    let fields = json!({ "principal": &*name, "action": "log_in" });
                    bridge.audit.record("admin", fields);
                }
                let cookie = self.logins.open(name, credential);
                let secure = if self.is_secure { "; Secure" } else { "" };
                let name = &self.cookie;
                let cookie = format!(
                    "{name}={}; Path=/; HttpOnly; SameSite=Strict{secure}",
                    cookie.expose()
                );
                let mut response = see_other("/");
                response.headers_mut().insert(SET_COOKIE, header(&cookie)?);
                Ok(Admitted::Answered(response))
            }
            Err(why) => Ok(self.welcome(Request::from_parts(parts, Body::empty()), Some(why))),
        }
    }

    fn server(&self) -> Option<ServerAccess> {
        self.bridge.clone().map(ServerAccess)
    }

    fn welcome(&self, mut request: Request, refused: Option<String>) -> Admitted {
        request.extensions_mut().insert(Visitor::Nobody {
            entry: self.entry,
            server: self.server(),
            refused: refused.clone(),
        });
        Admitted::Page { request, refused }
    }

    /// Passes a request of an operator on. A change has to come from a form of the console.
    async fn pass(&self, request: Request, login: Login) -> Result<Admitted, Refusal> {
        let (mut parts, mut body) = request.into_parts();
        if parts.method != Method::GET && parts.method != Method::HEAD {
            let form = read_form(body).await?;
            let has_header = parts.headers.contains_key(AUTHORIZATION);
            let token = field(&form, "form_token").unwrap_or_default();
            if !has_header && !login.has_form_token(&token) {
                return Err(Refusal::forbidden(
                    "the request does not come from a form of the console",
                ));
            }
            if parts.uri.path() == CONSOLE_LOGOUT {
                self.cookie(&parts.headers)
                    .inspect(|cookie| self.logins.close(cookie));
                return Ok(Admitted::Answered(see_other("/")));
            }
            body = Body::from(form);
        }
        let operator = Operator {
            name: login.name,
            form_token: login.form_token,
            server: self.server(),
        };
        parts.extensions.insert(Visitor::Operator(operator.clone()));
        parts.extensions.insert(operator);
        Ok(Admitted::Page {
            request: Request::from_parts(parts, body),
            refused: None,
        })
    }

    fn cookie<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let cookies = headers.get_all(COOKIE).iter();
        let mut pairs = cookies
            .filter_map(|cookies| cookies.to_str().ok())
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        pairs.find_map(|(name, value)| (name == self.cookie).then_some(value))
    }
}

/// Refuses what a page of another origin makes a browser send. A person who follows a link here is welcome.
fn check_origin(request: &Request) -> Result<(), Refusal> {
    const FOREIGN: &str = "a page of another origin may not use the console";
    let headers = request.headers();
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
    let is_followed_link = is_read && text("sec-fetch-mode") == Some("navigate");
    if !matches!(text("sec-fetch-site"), None | Some("same-origin" | "none")) && !is_followed_link {
        return Err(Refusal::forbidden(FOREIGN));
    }
    let host = single(headers, "host")?.or(request.uri().authority().map(|host| host.as_str()));
    match headers.get(ORIGIN).map(HeaderValue::to_str) {
        None => Ok(()),
        // The scheme is another one behind a proxy that does TLS.
        Some(Ok(origin)) if origin.split_once("://").map(|(_, from)| from) == host => Ok(()),
        Some(_) => Err(Refusal::forbidden(FOREIGN)),
    }
}

async fn read_form(body: Body) -> Result<bytes::Bytes, Refusal> {
    let read = Limited::new(body, MAX_FORM_BYTES).collect().await;
    let read = read.map_err(|_| Refusal::bad_request("the form ended early, or is too long"))?;
    Ok(read.to_bytes())
}

fn field(form: &[u8], name: &str) -> Option<String> {
    form_urlencoded::parse(form).find_map(|(key, value)| (key == name).then(|| value.into_owned()))
}

fn bearer(token: &Secret) -> Result<HeaderMap, Refusal> {
    let mut value = header(&format!("Bearer {}", token.expose()))?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
}

fn header(text: &str) -> Result<HeaderValue, Refusal> {
    HeaderValue::from_str(text)
        .map_err(|_| Refusal::bad_request("a token has letters, digits and underscores only"))
}

fn see_other(place: &'static str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response()
}
