//! The choices that hold for all remote servers of one process.

use std::time::Duration;

use crate::login_command::LoginCommand;
use crate::oauth::TokenFile;
use crate::transport::RetryPolicy;

#[derive(Debug, Clone)]
pub struct ClientSettings {
    pub tokens: TokenFile,
    pub retry: RetryPolicy,
    pub login: LoginMode,
    /// What the user is told to type where no link is shown.
    pub login_command: LoginCommand,
    /// How long one transport may take to shake hands. rmcp alone waits 10 s for a silent legacy server.
    pub connect_patience: Duration,
    /// How often a server that announces no changes is asked for its tools. It is also how its death is noticed.
    pub relist_every: Duration,
}

/// What happens when a server asks for a login while we run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginMode {
    /// Open the browser, and show the link as well.
    Browser,
    /// Only show the link.
    Link,
    /// Wait until somebody logs in with `ahma_mcp login`.
    Never,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            tokens: TokenFile::in_temp_dir(),
            retry: RetryPolicy::default(),
            login: LoginMode::Browser,
            login_command: LoginCommand::default(),
            connect_patience: Duration::from_secs(30),
            relist_every: Duration::from_secs(30),
        }
    }
}
