//! Keeps web pages out: only known hosts may be addressed, only known origins may ask.
//!
//! A page of another site can make a browser send requests here, and by changing its name's address
//! (DNS rebinding) even read the answers. Both show in headers that a page cannot forge. Origins are
//! compared whole: `http://localhost.example.com` is not `http://localhost`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri, Version};

use url::Url;

use super::negotiate::single;
use super::refusal::Refusal;

#[derive(Debug, Clone)]
pub(crate) struct WebGuard {
    /// Lower case, each a name or a name with its port.
    hosts: Vec<String>,
    origins: Vec<String>,
    /// A bind to every address is meant to be reached by address; a rebinding page can only use a name.
    any_address: bool,
}

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

impl WebGuard {
    pub(crate) fn new(bound_to: SocketAddr, hosts: &[String], origins: &[String]) -> Self {
        Self {
            hosts: hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            origins: origins
                .iter()
                .map(|origin| origin.trim_end_matches('/').to_ascii_lowercase())
                .collect(),
            any_address: !bound_to.ip().is_loopback(),
        }
    }

    /// Checks a request; gives back the origin that may read the answer, if a page asks.
    pub(crate) fn check(
        &self,
        version: Version,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Option<HeaderValue>, Refusal> {
        // Of several, another reader might take another one.
        let host = single(headers, HOST.as_str())?.map(str::parse::<Authority>);
        let host = match (host, uri.authority()) {
            (Some(Ok(host)), Some(authority)) if host != *authority => {
                return Err(Refusal::bad_request("the request names two hosts"));
            }
            (Some(host), _) => host.ok(),
            // HTTP/2 has it in the address.
            (None, authority) if version == Version::HTTP_2 => authority.cloned(),
            (None, _) => None,
        };
        let Some(host) = host.filter(is_host_and_port) else {
            return Err(Refusal::forbidden("the Host header is missing or malformed"));
        };
        if !self.allows_host(&host) {
            return Err(Refusal::forbidden(format!(
                "host {host} is not served here; allow it with --allow-host"
            )));
        }
        match single(headers, ORIGIN.as_str())? {
            None => Ok(None),
            Some(origin) if self.allows_origin(origin) => Ok(headers.get(ORIGIN).cloned()),
            Some(_) => Err(Refusal::forbidden(
                "this origin may not use the server; allow it with --allow-origin",
            )),
        }
    }

    fn allows_host(&self, host: &Authority) -> bool {
        let whole = host.as_str().to_ascii_lowercase();
        let name = host.host().to_ascii_lowercase();
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        LOOPBACK.contains(&name.as_str())
            || self
                .hosts
                .iter()
                .any(|allowed| *allowed == whole || *allowed == name)
            || (self.any_address && bare.parse::<IpAddr>().is_ok())
    }

    /// True if the flags name this origin. Pages of other ports of this machine, which may come from a command, are let in
    /// without that, but not to the admin API (`routes/gate.rs`).
    pub(crate) fn names_origin(&self, origin: &HeaderValue) -> bool {
        let origin = origin.to_str().map(str::to_ascii_lowercase);
        origin.is_ok_and(|origin| self.origins.contains(&origin))
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        if self.origins.contains(&origin) {
            return true;
        }
        let Some((scheme, rest)) = origin.split_once("://") else {
            return false;
        };
        let Ok(authority) = rest.parse::<Authority>() else {
            return false;
        };
        matches!(scheme, "http" | "https")
            && is_host_and_port(&authority)
            && LOOPBACK.contains(&authority.host())
    }
}

/// True if an authority is a host with at most a port.
fn is_host_and_port(authority: &Authority) -> bool {
    let port = authority.as_str().strip_prefix(authority.host());
    port.is_some_and(|port| port.is_empty() || authority.port_u16().is_some())
}

/// Reads the name of a host that clients may address. What no `Host` header could ever match is refused.
pub(crate) fn allowed_host(text: &str) -> Result<String, String> {
    let is_name = |host: &str| {
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match address {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => host
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)),
        }
    };
    match text.parse::<Authority>() {
        Ok(host) if is_host_and_port(&host) && is_name(host.host()) => Ok(text.to_owned()),
        _ => Err(
            "expected a host, or a host and a port, such as mcp.example.org or mcp.example.org:8443"
                .to_owned(),
        ),
    }
}

/// Reads an origin, and writes it as browsers do. `null` is none: any page can make itself one of that name.
pub(crate) fn allowed_origin(text: &str) -> Result<String, String> {
    const FORM: &str = "expected an origin such as https://app.example.org or http://app.example.org:8080";
    let url = Url::parse(text).map_err(|_| FORM)?;
    let has_more = !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some();
    let has_user = !url.username().is_empty() || url.password().is_some();
    let host = url
        .host_str()
        .filter(|host| !host.is_empty() && !host.contains('*'));
    match host {
        Some(host) if !has_more && !has_user => Ok(match url.port() {
            Some(port) => format!("{}://{host}:{port}", url.scheme()),
            None => format!("{}://{host}", url.scheme()),
        }),
        _ => Err(FORM.to_owned()),
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
