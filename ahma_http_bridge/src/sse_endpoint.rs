//! Address of the transport of 2024-11-05: a path of this server, or a whole URL.
//!
//! A path that is taken already, or that a router would read as a pattern, never gets further than here.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ahma_common::value;
use url::Url;

use crate::paths;

/// A path that the event stream can be served at. Its messages are exchange to `…/message` below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SsePath(String);

/// The path and, if it was given as an address, what to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEndpoint {
    pub path: SsePath,
    pub listen: Option<(IpAddr, u16)>,
}

const FORM: &str =
    "write a path such as /mcp/sse, or an address of this machine such as http://localhost:8888/mcp/sse";

impl SsePath {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path to which the messages of a stream are posted.
    pub(crate) fn messages(&self) -> String {
        format!("{}/message", self.0)
    }
}

impl Default for SsePath {
    fn default() -> Self {
        Self("/mcp/sse".to_owned())
    }
}

impl fmt::Display for SsePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for SsePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let segments = text
            .strip_prefix('/')
            .ok_or_else(|| format!("it must begin with `/`; {FORM}"))?;
        let is_plain = |segment: &str| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
            !segment.is_empty() && segment != "." && segment != ".." && segment.chars().all(allowed)
        };
        let segments = segments.trim_end_matches('/');
        if segments.is_empty() {
            return Err(format!("the path is missing; {FORM}"));
        }
        if !segments.split('/').all(is_plain) {
            return Err(format!("its parts must be of letters, digits and `-._~`; {FORM}"));
        }
        let path = Self(format!("/{segments}"));
        match [path.0.clone(), path.messages()]
            .iter()
            .find(|path| paths::is_taken(path))
        {
            Some(taken) => Err(format!("{taken} is served already; {FORM}")),
            None => Ok(path),
        }
    }
}

impl FromStr for SseEndpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains("://") {
            return Ok(Self {
                path: text.parse()?,
                listen: None,
            });
        }
        let address = Url::parse(text).map_err(|error| format!("{error}; {FORM}"))?;
        if !matches!(address.scheme(), "http" | "https")
            || address.query().is_some()
            || address.fragment().is_some()
        {
            return Err(FORM.to_owned());
        }
        let host = address.host_str().unwrap_or_default();
        let host = value::listening_host(host).map_err(|_| {
            format!("`{host}` is no address to listen on; {FORM}, and see --allow-host for names")
        })?;
        // Of these schemes every address has one.
        let port = address.port_or_known_default().ok_or(FORM)?;
        Ok(Self {
            path: address.path().parse()?,
            listen: Some((host, port)),
        })
    }
}

#[cfg(test)]
#[path = "sse_endpoint_tests.rs"]
mod tests;
