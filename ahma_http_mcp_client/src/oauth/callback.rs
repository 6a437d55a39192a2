//! The small web server on `localhost` to which the browser returns after a login.
//!
//! Any page in the user's browser can send a request here, so a request counts only if it carries the `state` of
//! this login; everything else gets an answer and is forgotten. It must never wait without end on one client.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use url::Url;

/// Paths of the callback address.
const PATHS: [&str; 2] = ["/", "/callback"];
/// Port of the documented address, which users register with their identity provider.
const DEFAULT_PORT: u16 = 8080;
/// Number of ports after the default one that may be tried.
const MORE_PORTS: u16 = 20;
/// A browser sends its request at once; a client that does not is not a browser.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_REQUEST_BYTES: usize = 16 * 1024;

/// The ports that may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortRule {
    /// The address is registered with the provider and cannot change.
    Exactly(u16),
    /// 8080, or the next free one.
    DefaultOrNext,
}

impl PortRule {
    pub(super) fn of(oauth: &crate::config::OAuthIdentity) -> Self {
        match (oauth.callback_port, &oauth.client_id) {
            (Some(port), _) => Self::Exactly(port),
            (None, Some(_)) => Self::Exactly(DEFAULT_PORT),
            (None, None) => Self::DefaultOrNext,
        }
    }

    fn candidates(self) -> std::ops::RangeInclusive<u16> {
        match self {
            Self::Exactly(port) => port..=port,
            Self::DefaultOrNext => DEFAULT_PORT..=DEFAULT_PORT + MORE_PORTS,
        }
    }
}

/// The way this client became known to the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Registration {
    /// A user registered it with the documented address `http://localhost:8080`.
    ByHand,
    /// It registers itself, with any address.
    ByUs,
}

#[derive(Debug)]
pub(super) struct CallbackListener {
    v4: TcpListener,
    /// Browsers resolve `localhost` to either family; without IPv6 on this machine one is enough.
    v6: Option<TcpListener>,
    port: u16,
}

/// The browser request that ends the login. It waits for its page until [`Self::answer`].
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) url: Url,
    stream: TcpStream,
}

impl CallbackListener {
    pub(super) async fn bind(rule: PortRule) -> std::io::Result<Self> {
        let mut last_error = None;
        for port in rule.candidates() {
            match Self::bind_port(port).await {
                Ok(listener) => return Ok(listener),
                Err(error) => last_error = Some(error),
            }
        }
        Err(last_error.unwrap_or_else(|| std::io::Error::other("no port to try")))
    }

    async fn bind_port(port: u16) -> std::io::Result<Self> {
        let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let v6 = match TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await {
            Ok(listener) => Some(listener),
            // Another program would get our browser request, or we its.
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => return Err(error),
            Err(_) => None,
        };
        Ok(Self { v4, v6, port })
    }

    /// The callback address as the provider knows it. Providers compare it letter by letter.
    pub(super) fn redirect_uri(&self, client: Registration) -> String {
        let origin = self.origin();
        match client {
            Registration::ByHand => origin,
            Registration::ByUs => format!("{origin}/callback"),
        }
    }

    fn origin(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

    /// Waits for the request that carries `state`.
    pub(super) async fn visit(&self, state: &str) -> std::io::Result<Visit> {
        let mut visitors = tokio::task::JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.accept() => {
                    let (origin, state) = (self.origin(), state.to_owned());
                    let stream = accepted?;
                    visitors.spawn(async move { receive(stream, &origin, &state).await });
                }
                Some(received) = visitors.join_next() => {
                    if let Ok(Some(visit)) = received {
                        return Ok(visit);
                    }
                }
            }
        }
    }

    async fn accept(&self) -> std::io::Result<TcpStream> {
        let (stream, _) = match &self.v6 {
            None => self.v4.accept().await?,
            Some(v6) => tokio::select! {
                accepted = self.v4.accept() => accepted?,
                accepted = v6.accept() => accepted?,
            },
        };
        Ok(stream)
    }
}

impl Visit {
    /// The error that the provider reported instead of a code.
    pub(super) fn refusal(&self) -> Option<String> {
        let value = |name: &str| {
            self.url
                .query_pairs()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value)
        };
        let error = value("error")?;
        Some(match value("error_description") {
            Some(description) => format!("{error}: {description}"),
            None => error.into_owned(),
        })
    }

    /// Shows the outcome to the user.
    pub(super) async fn answer(mut self, outcome: Result<(), &str>) {
        let (status, title, text) = match outcome {
            Ok(()) => (
                "200 OK",
                "You are logged in",
                "You can close this page and return to your work.",
            ),
            Err(reason) => ("400 Bad Request", "The login failed", reason),
        };
        respond(&mut self.stream, status, title, text).await;
    }
}

/// Reads one request; gives it back if it belongs to this login, and answers it otherwise.
async fn receive(mut stream: TcpStream, origin: &str, state: &str) -> Option<Visit> {
    let head = tokio::time::timeout(REQUEST_TIMEOUT, read_head(&mut stream))
        .await
        .ok()??;
    let target = head.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
    let url = Url::parse(origin).ok()?.join(target.unwrap_or("/")).ok()?;
    if target.is_none() || !PATHS.contains(&url.path()) {
        respond(
            &mut stream,
            "404 Not Found",
            "Nothing here",
            "This address only completes logins.",
        )
        .await;
        return None;
    }
    if !url
        .query_pairs()
        .any(|(key, value)| key == "state" && value == state)
    {
        let text = "This response belongs to another login. Start again from the newest link.";
        respond(&mut stream, "400 Bad Request", "Not the expected login", text).await;
        return None;
    }
    Some(Visit { url, stream })
}

/// The request up to its empty line; none if it is malformed.
async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut chunk = [0; 2048];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let read = stream.read(&mut chunk).await.ok()?;
        if read == 0 || head.len() > MAX_REQUEST_BYTES {
            return None;
        }
        head.extend_from_slice(&chunk[..read]);
    }
    String::from_utf8(head).ok()
}

async fn respond(stream: &mut TcpStream, status: &str, title: &str, text: &str) {
    let (title, text) = (escape(title), escape(text));
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <style>body{{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:16vh auto;padding:0 1rem;\
         color:#222;background:#fff}}@media(prefers-color-scheme:dark){{body{{color:#eee;background:#1b1b1b}}}}\
         </style><h1>{title}</h1><p>{text}</p></html>"
    );
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    // The browser may be gone already; the login does not depend on the page.
    let _ = tokio::time::timeout(REQUEST_TIMEOUT, async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
