//! Paths that the bridge serves whatever its settings are.

/// Streamable HTTP.
pub(crate) const ENDPOINT: &str = "/mcp";
pub(crate) const HEALTH_PATH: &str = "/healthz";
pub(crate) const METRICS_PATH: &str = "/metrics";
/// The admin API.
pub(crate) const ADMIN_PREFIX: &str = "/admin/";
/// Pages of the console; the first one is at `/`.
const CONSOLE_PREFIX: &str = "/console/";
pub(crate) const CONSOLE_LOGIN: &str = "/console/login";
pub(crate) const CONSOLE_LOGOUT: &str = "/console/logout";
/// Readable without a login.
pub(crate) const CONSOLE_ASSETS: &str = "/console/assets/";
/// RFC 9728; the path of the resource may follow.
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// True if metadata may be at this path. They are readable without a credential, so nothing else can be there.
pub(crate) fn is_metadata_path(path: &str) -> bool {
    path.strip_prefix(METADATA_PATH)
        .is_some_and(|of| of.is_empty() || of.starts_with('/'))
}

/// True if a page of the console may be at this path.
pub(crate) fn is_console_path(path: &str) -> bool {
    path == "/" || path.starts_with(CONSOLE_PREFIX)
}

/// True if the path cannot be given to anything else.
pub(crate) fn is_taken(path: &str) -> bool {
    [ENDPOINT, HEALTH_PATH, METRICS_PATH].contains(&path)
        || path.starts_with(ADMIN_PREFIX)
        || is_console_path(path)
        || is_metadata_path(path)
}
