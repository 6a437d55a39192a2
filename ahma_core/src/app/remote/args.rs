//! The flags about remote servers.

use std::{net::SocketAddr, path::PathBuf};

use ahma_common::{contract::CLIENT_TOKEN_FILE_VARIABLE, value};
use ahma_http_mcp_client::config::{TransportChoice, address};
use clap::{ArgAction, Args};
use url::Url;

const REMOTE: &str = "Remote servers";

const LOGIN_EXAMPLES: &str = "\
Examples:
  ahma_mcp login jira --mcp-config mcp.json         a server of that file
  ahma_mcp login https://mcp.example.com/mcp        any server
  ahma_mcp login --no-browser jira                  show the link, for a machine without a browser";

const LOGOUT_EXAMPLES: &str = "\
Examples:
  ahma_mcp logout jira --mcp-config mcp.json
  ahma_mcp logout https://mcp.example.com/mcp";

#[derive(Debug, Clone, Args)]
pub(crate) struct RemoteArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    /// Show the link of a login instead of opening the browser.
    #[arg(long, env = "AHMA_NO_BROWSER", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = REMOTE)]
    pub(crate) no_browser: bool,

    /// Offer no tools of other servers, even if a file is discovered.
    #[arg(long, env = "AHMA_NO_MCP_CONFIG", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = REMOTE)]
    pub(crate) no_mcp_config: bool,

    /// Serve this remote server on stdin and stdout, and nothing else: for clients that can only start programs.
    #[arg(long, env = "AHMA_SERVER_URL", value_name = "URL", value_parser = address, help_heading = REMOTE)]
    pub(crate) server_url: Option<Url>,

    /// Transport of --server-url: auto, http, sse, or stdio for the program given after `--`.
    #[arg(long, env = "AHMA_TRANSPORT", value_name = "KIND", default_value = "auto", help_heading = REMOTE)]
    pub(crate) transport: TransportChoice,

    /// Try the other transports too, in the order of auto, and last the program given after `--`.
    #[arg(long, env = "AHMA_TRANSPORT_FALLBACK", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = REMOTE)]
    pub(crate) transport_fallback: bool,

    /// Number of retries after a lost connection before the server counts as failed.
    #[arg(long, env = "AHMA_MAX_RETRIES", value_name = "COUNT", default_value_t = 5, help_heading = REMOTE)]
    pub(crate) max_retries: u32,

    /// Address of the bridge that started this process.
    #[arg(long, env = ahma_common::contract::BRIDGE_ADDRESS_VARIABLE, value_name = "ADDRESS", hide = true)]
    pub(crate) bridge_address: Option<SocketAddr>,

    /// Program that replaces --server-url: after `--`, with its arguments.
    #[arg(last = true, value_name = "COMMAND", requires = "server_url", help_heading = REMOTE)]
    pub(crate) program: Vec<String>,
}

/// Files with servers and logins, for serving and for `login`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SourceArgs {
    /// Servers whose tools are offered as SERVER_TOOL [default: the addresses in mcp.json of the scope].
    #[arg(long, env = "AHMA_MCP_CONFIG", value_name = "FILE", help_heading = REMOTE)]
    pub(crate) mcp_config: Option<PathBuf>,

    /// File that stores logins [default: mcp_http_token.json in the temporary directory].
    #[arg(long, env = CLIENT_TOKEN_FILE_VARIABLE, value_name = "FILE", help_heading = REMOTE)]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = LOGIN_EXAMPLES)]
pub(crate) struct LoginArgs {
    #[command(flatten)]
    pub(crate) account: AccountArgs,

    /// Show the link of a login instead of opening the browser.
    #[arg(long, env = "AHMA_NO_BROWSER", action = ArgAction::SetTrue, value_parser = value::switch, help_heading = REMOTE)]
    pub(crate) no_browser: bool,
}

/// The server whose login is meant.
#[derive(Debug, Clone, Args)]
#[command(after_help = LOGOUT_EXAMPLES)]
pub(crate) struct AccountArgs {
    /// A server of the configuration, or an address.
    #[arg(value_name = "SERVER|URL")]
    pub(crate) server: String,

    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

impl SourceArgs {
    /// The flags after the subcommand, or else those before it.
    pub(super) fn or(self, before: Self) -> Self {
        Self {
            mcp_config: self.mcp_config.or(before.mcp_config),
            token_file: self.token_file.or(before.token_file),
        }
    }
}
