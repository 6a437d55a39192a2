//! Headers that keep a page of the console from being used by others, and others from acting in it.

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Only what comes with the page may act in it: no inline script or style, no other host, no frame.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                              connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Life of an answer in a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheRule {
    /// The name of an asset has its version in it.
    Keep,
    /// Pages and refusals are of this moment.
    Forget,
}

pub(crate) fn apply(headers: &mut HeaderMap, cache: CacheRule) {
    let policies = [
        (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Without any, browsers would not say where a form comes from.
        (REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            CACHE_CONTROL,
            match cache {
                CacheRule::Keep => "max-age=31536000, immutable",
                CacheRule::Forget => "no-store",
            },
        ),
    ];
    for (name, value) in policies {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
