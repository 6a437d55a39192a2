//! Strings that two crates, or two processes of one product, must spell alike.
//!
//! `#[serde(rename)]` takes literals only: the envelope repeats some of these, and its tests compare them.

use serde::{Deserialize, Serialize};

/// Name of the product, as it introduces itself to others.
pub const PRODUCT: &str = "ahma_mcp";

/// First argument of the helper process that starts confined commands. A listener recognises commands by it.
pub const JAIL_ROLE: &str = "__jail";

/// Services that do not exist. On macOS the sandbox of every command allows the first to be looked up and denies the second;
/// a listener recognises commands by it.
pub const COMMAND_MARK_ALLOWED: &str = "org.ahma.command.allowed";
pub const COMMAND_MARK_DENIED: &str = "org.ahma.command.denied";

/// Prefix of methods and `_meta` keys that are the product's own. No client may send them through the bridge.
pub const OWN_PREFIX: &str = "ahma/";

/// `_meta` key: of a request, the client it comes from, written by the bridge alone; of a notification, the client it is for.
pub const META_CLIENT: &str = "ahma/client";

/// `_meta` key of a request: the principal it comes from, written by the bridge alone, beside [`META_CLIENT`].
/// Without it a request comes from the principal in [`ENV_PRINCIPAL`], else from the local user.
pub const META_PRINCIPAL: &str = "ahma/principal";

/// `_meta` key of a request: patterns of the tools it may list and call, as [`crate::ToolPatterns`] reads them, written by the
/// bridge alone, also into a request without `params`. Without it all are allowed.
pub const META_TOOLS: &str = "ahma/tools";

/// `_meta` key of a request: the name that its client's program gave itself, written by the bridge alone, beside [`META_CLIENT`].
pub const META_PROGRAM: &str = "ahma/program";

/// Variable that tells a backend of one client the principal of all its requests. The bridge never passes on its own.
pub const ENV_PRINCIPAL: &str = "AHMA_PRINCIPAL";

/// Notification of a backend to the bridge that an operation waits, has started or has ended; never passed on to a client.
///
/// `params`: `{"event": "queued"|"started"|"ended", "operation": {"id", "principal", "tool", "status", "exit_code",
/// "duration_ms", "cpu_ms", "max_rss_bytes", "output_bytes", "findings": {"critical": n, …}, "reason"}}`, and the client
/// in `_meta` under [`META_CLIENT`]. Before the end only `id`, `principal`, `tool` and `status` are set; what is unknown
/// is absent. A server sends it only if [`BRIDGE_ADDRESS_VARIABLE`] is set.
pub const NOTIFY_OPERATION: &str = "notifications/ahma/operation";

/// Requests of the bridge to a backend, about the operations of all its clients; the bridge passes none on from a client.
///
/// `{}` gives `{"operations": [{"id", "client", "principal", "program", "tool", "command", "directory", "status", "percent",
/// "phase", "elapsed_ms", "output_lines", "output_bytes", "newest_line", "findings", "exit_code", "cpu_ms", "max_rss_bytes",
/// "reason"}]}`, `{"id"}` one of them, `{"only_open": true}` those that have not ended; on a cluster those of the whole pool,
/// with "worker" and "since" in addition, and without "client".
pub const LIST_OPERATIONS: &str = "ahma/operations/list";
/// `{"id"}` with an [`OutputPlace`] gives `{"id", "text", "first_line", "lines", "next_byte", "total_lines", "total_bytes",
/// "has_ended"}`.
pub const READ_OUTPUT: &str = "ahma/operations/output";
/// `{"id", "from"?}` gives `{"id", "findings": [...], "next", "kept", "counts"}`.
pub const READ_FINDINGS: &str = "ahma/operations/findings";
/// `{"id"?, "principal"?, "reason", "end": "cancelled"|"interrupted"}` stops one operation, those of a principal, or all, and
/// gives `{"stopped": [id, …]}` when nothing of them is left.
pub const STOP_OPERATIONS: &str = "ahma/operations/stop";

/// Part of an output: from a line or a byte on, or the last lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPlace {
    pub from_line: Option<u64>,
    pub from_byte: Option<u64>,
    /// At most so many.
    pub lines: Option<u64>,
}

/// `_meta` key of a notification: the request it belongs to. The specification has none, because stdio has one client.
pub const META_RELATED_REQUEST: &str = "ahma/relatedRequestId";

/// Notification of the bridge that a client has left; `params.client` names it, `params.reason` says why.
pub const CLIENT_GONE: &str = "notifications/ahma/client_gone";

/// Prefix of the `_meta` keys of the specification.
pub const PROTOCOL_META_PREFIX: &str = "io.modelcontextprotocol/";
pub const META_PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub const META_CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub const META_CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub const META_SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
pub const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Variable that tells a backend the address of the bridge that started it.
pub const BRIDGE_ADDRESS_VARIABLE: &str = "AHMA_BRIDGE_ADDRESS";

/// Variable with the scope directory of a server.
pub const SCOPE_VARIABLE: &str = "AHMA_SANDBOX_SCOPE";

/// Variable that switches debug logging on.
pub const DEBUG_VARIABLE: &str = "AHMA_DEBUG";

/// Variable with the bearer token of the listener.
pub const HTTP_TOKEN_VARIABLE: &str = "AHMA_HTTP_TOKEN";

/// Variable with the path of the listener's token file.
pub const HTTP_TOKENS_FILE_VARIABLE: &str = "AHMA_HTTP_TOKENS_FILE";

/// The same variable under its regular name.
pub const TOKENS_FILE_VARIABLE: &str = "AHMA_TOKENS_FILE";

/// Variable with the path of the client's token file.
pub const CLIENT_TOKEN_FILE_VARIABLE: &str = "AHMA_HTTP_CLIENT_TOKEN_PATH";

/// The same variable under its regular name.
pub const TOKEN_FILE_VARIABLE: &str = "AHMA_TOKEN_FILE";
