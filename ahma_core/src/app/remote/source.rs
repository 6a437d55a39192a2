//! Which file names the remote servers, how far it is trusted, and where logins are kept.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use ahma_http_mcp_client::{
    ClientSettings, LoginMode, RetryPolicy, TokenFile,
    config::{self, ConfigTrust, McpConfig, Variables},
};

use super::args::{RemoteArgs, SourceArgs};
use crate::app::exit::Failure;

/// What was decided about remote servers.
#[derive(Debug, Clone)]
pub struct RemoteSettings {
    /// None if nothing is to be mounted.
    pub file: Option<ConfigFile>,
    pub client: ClientSettings,
    /// The address of the bridge whose child we are: mounting it would be mounting ourselves.
    pub bridge: Option<SocketAddr>,
}

/// A file that names servers.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    pub path: PathBuf,
    pub trust: ConfigTrust,
}

/// Where editors keep it, in the order they are looked for.
const USUAL_PLACES: [&str; 2] = [".vscode/mcp.json", "mcp.json"];

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
            // Nobody asked for that page, or nobody is here to see it.
            _ if is_found || args.bridge_address.is_some() => LoginMode::Never,
            true => LoginMode::Link,
            false => LoginMode::Browser,
        };
        Ok(Self {
            file,
            client: client_settings(&args.source, args.max_retries, login),
            bridge: args.bridge_address,
        })
    }
}

pub(super) fn client_settings(source: &SourceArgs, max_retries: u32, login: LoginMode) -> ClientSettings {
    // Absolute, because whether commands can read it is asked of the path.
    let named = source.token_file.as_ref();
    let named = named.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    ClientSettings {
        tokens: named.map_or_else(TokenFile::in_temp_dir, TokenFile::at),
        retry: RetryPolicy {
            max_retries,
            ..RetryPolicy::default()
        },
        login,
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
            return Ok(USUAL_PLACES
                .iter()
                .find_map(|place| Self::found(&scope.join(place), scope)));
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
