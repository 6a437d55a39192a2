//! Keeps web pages out: only known hosts may be addressed, only known origins may ask.
//!
//! A page of another site can make a browser send requests here, and by changing its name's address
//! (DNS rebinding) even read the answers. Both show in headers that a page cannot forge. Origins are
//! compared whole: `http://localhost.example.com` is not `http://localhost`.

use std::net::{IpAddr, SocketAddr};

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri, Version};

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
        let host = match (headers.get(HOST), uri.authority()) {
            (Some(host), _) => host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()),
            // HTTP/2 has it in the address.
            (None, authority) if version == Version::HTTP_2 => authority.cloned(),
            (None, _) => None,
        };
        let Some(host) = host else {
            return Err(Refusal::forbidden("the Host header is missing or malformed"));
        };
        if !self.allows_host(&host) {
            return Err(Refusal::forbidden(format!(
                "host {host} is not served here; allow it with --allow-host"
            )));
        }
        match headers.get(ORIGIN) {
            None => Ok(None),
            Some(origin) if origin.to_str().is_ok_and(|origin| self.allows_origin(origin)) => {
                Ok(Some(origin.clone()))
            }
            Some(_) => Err(Refusal::forbidden(
                "this origin may not use the server; allow it with --allow-origin",
            )),
        }
    }

    fn allows_host(&self, host: &Authority) -> bool {
        let whole = host.as_str().to_ascii_lowercase();
        let name = host.host().to_ascii_lowercase();
        if whole.contains('@') {
            return false;
        }
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        LOOPBACK.contains(&name.as_str())
            || self
                .hosts
                .iter()
                .any(|allowed| *allowed == whole || *allowed == name)
            || (self.any_address && bare.parse::<IpAddr>().is_ok())
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
        let port = authority.as_str().strip_prefix(authority.host());
        let plain_port = port.is_some_and(|port| port.is_empty() || authority.port_u16().is_some());
        matches!(scheme, "http" | "https") && plain_port && LOOPBACK.contains(&authority.host())
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod guard_tests;
