//! The offer of a client's `initialize`, and the answer in a revision that the client speaks.

use serde_json::value::RawValue;

use super::state::RootsSupport;
use crate::version;
use ahma_common::envelope::{Edit, Envelope, splice, string_of};

pub(super) fn roots_support(initialize: &Envelope<'_>) -> RootsSupport {
    #[derive(serde::Deserialize)]
    struct Capabilities<'a> {
        #[serde(borrow, default)]
        roots: Option<&'a RawValue>,
    }
    let capabilities = initialize.params().ok().and_then(|params| params.capabilities);
    let offered = capabilities
        .and_then(|capabilities| serde_json::from_str::<Capabilities<'_>>(capabilities.get()).ok())
        .and_then(|capabilities| capabilities.roots)
        .is_some();
    if offered {
        RootsSupport::Offered
    } else {
        RootsSupport::Missing
    }
}

/// The child's `initialize` result with the revision that the client can speak, and that revision.
pub(super) fn with_version(result: &str, wanted: Option<&str>) -> (String, String) {
    #[derive(serde::Deserialize)]
    struct InitializeResult<'a> {
        #[serde(borrow, rename = "protocolVersion")]
        version: &'a RawValue,
    }
    let Ok(InitializeResult { version }) = serde_json::from_str::<InitializeResult<'_>>(result) else {
        return (result.to_owned(), version::OLDEST_STREAMABLE.to_owned());
    };
    let spoken = string_of(version).unwrap_or_default().into_owned();
    // A newer child can talk to an older client, which ignores what it does not know.
    let agreed = match wanted {
        Some(wanted) if version::is_legacy(wanted) && wanted < spoken.as_str() => wanted,
        _ => &spoken,
    };
    let start = version.get().as_ptr() as usize - result.as_ptr() as usize;
    let edit = Edit {
        span: start..start + version.get().len(),
        text: format!("\"{agreed}\""),
    };
    (
        String::from_utf8_lossy(&splice(result, vec![edit])).into_owned(),
        agreed.to_owned(),
    )
}

#[cfg(test)]
#[path = "negotiation_tests.rs"]
mod tests;
