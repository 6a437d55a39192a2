//! The settings for all remote servers of one process.

use std::time::Duration;

use crate::{
    login_command::LoginCommand,
    oauth::{Browser, TokenFile},
    transport::RetryPolicy,
};

#[derive(Debug, Clone)]
pub struct ClientSettings {
    pub tokens: TokenFile,
    pub retry: RetryPolicy,
    pub login: LoginMode,
    /// The command shown to the user where no link is.
    pub login_command: LoginCommand,
    /// Limit for the handshake of one transport. rmcp alone waits 10 s for a silent legacy server.
    pub connect_timeout: Duration,
    /// Interval at which a server that announces no changes is asked for its tools. Its death is noticed by that, too.
    pub relist_every: Duration,
}

/// The reaction to a login that is required while we run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginMode {
    /// Open the browser, and show the link as well.
    Browser,
    /// Only show the link.
    Link,
    /// Wait for a login by `ahma_mcp login`.
    Never,
}

impl LoginMode {
    pub(crate) fn browser(self) -> Browser {
        match self {
            Self::Browser => Browser::Open,
            Self::Link | Self::Never => Browser::Leave,
        }
    }
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            tokens: TokenFile::in_temp_dir(),
            retry: RetryPolicy::default(),
            login: LoginMode::Browser,
            login_command: LoginCommand::default(),
            connect_timeout: Duration::from_secs(30),
            relist_every: Duration::from_secs(30),
        }
    }
}
