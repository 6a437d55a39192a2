//! The file that names the remote servers, the trust in it, and the file of logins.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use ahma_http_mcp_client::{
    ClientSettings, LoginCommand, LoginMode, RetryPolicy, TokenFile,
    config::{self, ConfigTrust, McpConfig, Variables},
};

use super::args::{RemoteArgs, SourceArgs};
use crate::app::exit::Failure;

/// The settings of remote servers.
#[derive(Debug, Clone)]
pub(crate) struct RemoteSettings {
    /// None if nothing is mounted.
    pub(crate) file: Option<ConfigFile>,
    pub(crate) client: ClientSettings,
    /// The address of the bridge that started this process: mounting it would mount this server itself.
    pub(crate) bridge: Option<SocketAddr>,
}

/// A file that names servers.
#[derive(Debug, Clone)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) trust: ConfigTrust,
}

/// Name of the file in the scope. The files of clients, such as `.vscode/mcp.json`, are not used: the client starts those
/// servers itself, and would have each of them twice.
const USUAL_PLACE: &str = "mcp.json";

impl RemoteSettings {
    pub(crate) fn resolve(
        args: &RemoteArgs,
        working_directory: &Path,
        scope: &Path,
    ) -> Result<Self, Failure> {
        let file = if args.no_mcp_config {
            None
        } else {
            ConfigFile::choose(args.source.mcp_config.as_deref(), working_directory, scope)?
        };
        let is_found = file.as_ref().is_some_and(|file| file.trust == ConfigTrust::Found);
        let login = match args.no_browser {
            // The user did not ask for a login page, or would not see it.
            _ if is_found || args.bridge_address.is_some() => LoginMode::Never,
            true => LoginMode::Link,
            false => LoginMode::Browser,
        };
        Ok(Self {
            client: ClientSettings {
                login_command: login_command(&args.source, file.as_ref(), scope),
                ..client_settings(&args.source, args.max_retries, login)
            },
            file,
            bridge: args.bridge_address,
        })
    }
}

/// The login command for the same server, from any directory.
fn login_command(source: &SourceArgs, file: Option<&ConfigFile>, scope: &Path) -> LoginCommand {
    let command = login_with_tokens(source);
    match file {
        None => command,
        Some(file) if file.trust == ConfigTrust::Named => command.with("--mcp-config", &text(&file.path)),
        // The login is valid for a discovered file only.
        Some(_) => command.after("--sandbox-scope", &text(scope)),
    }
}

/// The login command for the same token file.
pub(super) fn login_with_tokens(source: &SourceArgs) -> LoginCommand {
    match token_file(source) {
        None => LoginCommand::default(),
        Some(path) => LoginCommand::default().with("--token-file", &text(&path)),
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Absolute, because the sandbox is checked for access to it.
fn token_file(source: &SourceArgs) -> Option<PathBuf> {
    let named = source.token_file.as_ref()?;
    Some(std::path::absolute(named).unwrap_or_else(|_| named.clone()))
}

pub(super) fn client_settings(source: &SourceArgs, max_retries: u32, login: LoginMode) -> ClientSettings {
    ClientSettings {
        tokens: token_file(source).map_or_else(TokenFile::in_temp_dir, TokenFile::at),
        retry: RetryPolicy {
            max_retries,
            ..RetryPolicy::default()
        },
        login,
        login_command: login_with_tokens(source),
        ..ClientSettings::default()
    }
}

impl ConfigFile {
    /// The file the user named, or else one in the scope.
    pub(super) fn choose(
        named: Option<&Path>,
        working_directory: &Path,
        scope: &Path,
    ) -> Result<Option<Self>, Failure> {
        let Some(named) = named.filter(|path| !path.as_os_str().is_empty()) else {
            return Ok(Self::found(&scope.join(USUAL_PLACE), scope));
        };
        let path = working_directory.join(named);
        if path.is_file() {
            let trust = ConfigTrust::Named;
            return Ok(Some(Self { path, trust }));
        }
        Err(
            Failure::user(format!("--mcp-config {} is not a file", path.display()))
                .with_hint("give an mcp.json with `servers` or `mcpServers`, or leave the flag out"),
        )
    }

    /// A link out of the scope would let a project choose which of the user's files is read.
    fn found(path: &Path, scope: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        (path.is_file() && path.starts_with(scope)).then_some(Self {
            path,
            trust: ConfigTrust::Found,
        })
    }

    pub(super) async fn load(&self, scope: &Path) -> McpConfig {
        let variables = Variables::of_this_process(Some(scope.to_owned()));
        config::load(&self.path, self.trust, &variables).await
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
