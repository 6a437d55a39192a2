//! Connects to the configured servers in the background, and asks the user to log in where a server requires it.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ahma_http_mcp_client::{
    LoginNews, RemoteServers, Snapshot,
    config::{ConfigTrust, ServerConfig},
};
use tokio::{sync::watch, task::JoinHandle};
use url::Url;

use super::{
    program::{Prepared, Surroundings, prepare},
    say::tell,
    source::ConfigFile,
};
use crate::{
    app::{active_sandbox::ActiveSandbox, settings::Settings},
    mcp::Remotes,
    sandbox::{Network, Policy, Tier},
};

/// Programs have two seconds to end by themselves; a server that hangs must not delay our end.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// The mounted servers of this run.
#[derive(Debug)]
pub(crate) struct Mount {
    remotes: Arc<Remotes>,
    announcing: JoinHandle<()>,
}

/// True if there is a file of remote servers that may be mounted.
pub(crate) fn is_configured(settings: &Settings) -> bool {
    // Without a scope it is not known whose servers they would be.
    settings.remote.file.is_some() && !settings.sandbox.deferred
}

/// Reads the file and starts to connect. Nothing waits for a server. None if there is no server and no problem to report.
pub(crate) async fn mount(settings: &Settings, sandbox: &ActiveSandbox) -> Option<Mount> {
    let file = settings
        .remote
        .file
        .as_ref()
        .filter(|_| is_configured(settings))?;
    let (configured, mut problems) = read(file, settings).await;
    let check = AdmissionCheck {
        file: file.path.clone(),
        bridge: settings.remote.bridge,
        scope: settings.sandbox.scope.clone(),
        writable: sandbox.launcher.policy().writable().collect(),
        logins: settings.remote.client.tokens.path().to_owned(),
        policy: Some(sandbox.launcher.policy().clone()).filter(|_| sandbox.launcher.tier() != Tier::Off),
    };
    // Reads files, and must not delay the rest of the start.
    let checked = tokio::task::spawn_blocking(move || check.admit_all(configured)).await;
    let (servers, complaints) = checked.unwrap_or_default();
    problems.extend(complaints);
    for problem in &problems {
        // An editor's file has entries for the editor; only a file that the user named is expected to fit.
        say(
            problem,
            file.trust == ConfigTrust::Named && !settings.log.to_stderr,
        );
    }
    if servers.is_empty() && problems.is_empty() {
        return None;
    }
    tracing::info!(file = %file.path.display(), servers = servers.len(), "mounting remote servers");
    let servers = RemoteServers::start(servers, settings.remote.client.clone());
    let announcing = tokio::spawn(announce(servers.states(), !settings.log.to_stderr));
    Some(Mount {
        remotes: Arc::new(Remotes::new(servers, problems)),
        announcing,
    })
}

/// The servers of the file, and the problems in it.
async fn read(file: &ConfigFile, settings: &Settings) -> (Vec<ServerConfig>, Vec<String>) {
    let loaded = file.load(&settings.sandbox.scope).await;
    // A file in the scope may cause connections to its addresses only if commands there could make them.
    if file.trust == ConfigTrust::Found
        && settings.sandbox.network != Network::Open
        && !loaded.servers.is_empty()
    {
        let ignored = format!(
            "{} was discovered and is not used, because commands have no open network access; name it with --mcp-config to use it",
            file.path.display()
        );
        return (Vec::new(), vec![ignored]);
    }
    let problems = loaded.problems.iter().map(ToString::to_string).collect();
    (loaded.servers, problems)
}

impl Mount {
    pub(crate) fn remotes(&self) -> Arc<Remotes> {
        Arc::clone(&self.remotes)
    }

    /// Ends connections and programs.
    pub(crate) async fn end(self) {
        self.announcing.abort();
        let ended = tokio::time::timeout(END_TIMEOUT, self.remotes.shutdown()).await;
        if ended.is_err() {
            tracing::warn!("a remote server did not end in time");
        }
    }
}

/// Decides about each server of a file.
#[derive(Debug)]
struct AdmissionCheck {
    file: PathBuf,
    bridge: Option<SocketAddr>,
    scope: PathBuf,
    /// Directories that commands can write to.
    writable: Vec<PathBuf>,
    /// The file of logins.
    logins: PathBuf,
    /// Policy of the commands; none without a sandbox.
    policy: Option<Policy>,
}

impl AdmissionCheck {
    /// The servers that can be used, and complaints about the others.
    fn admit_all(self, servers: Vec<ServerConfig>) -> (Vec<ServerConfig>, Vec<String>) {
        let around = Surroundings {
            scope: self.scope.clone(),
            writable: self.writable.clone(),
            path: std::env::var_os("PATH").unwrap_or_default(),
            this_program: std::env::current_exe().and_then(|path| path.canonicalize()).ok(),
        };
        let logins_are_open = self
            .policy
            .as_ref()
            .is_some_and(|policy| is_open(policy, &self.logins));
        let mut complaints = Vec::new();
        let admitted = servers
            .into_iter()
            .filter_map(|server| {
                let name = server.name.clone();
                let complain =
                    |what| complaints.push(format!("{}: server `{name}` {what}", self.file.display()));
                self.admit(server, &around, logins_are_open, complain)
            })
            .collect();
        (admitted, complaints)
    }

    fn admit(
        &self,
        mut server: ServerConfig,
        around: &Surroundings,
        logins_are_open: bool,
        mut complain: impl FnMut(String),
    ) -> Option<ServerConfig> {
        if let Some(endpoint) = &server.http {
            if self.bridge.is_some_and(|bridge| leads_to(&endpoint.url, bridge)) {
                tracing::debug!(server = server.name, "not mounting ourselves");
                return None;
            }
            if logins_are_open && !endpoint.has_own_credentials() {
                complain(format!(
                    "is skipped: commands can read the logins in {}; store them elsewhere with --token-file",
                    self.logins.display()
                ));
                return None;
            }
        }
        if let Some(command) = &mut server.stdio {
            match prepare(command, around) {
                Prepared::Ready => {}
                Prepared::Doubtful(doubt) => complain(doubt),
                Prepared::Ourselves => server.stdio = None,
                Prepared::NotFound(reason) => {
                    complain(format!("cannot be started: {reason}"));
                    server.stdio = None;
                }
            }
        }
        (server.http.is_some() || server.stdio.is_some()).then_some(server)
    }
}

/// True for the address of a listener on this machine.
fn leads_to(url: &Url, listener: SocketAddr) -> bool {
    let is_this_machine = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback() || listener.ip() == address,
        Some(url::Host::Ipv6(address)) => address.is_loopback() || listener.ip() == address,
        None => false,
    };
    is_this_machine && url.port_or_known_default() == Some(listener.port())
}

/// True if commands can read `file`, which need not exist.
fn is_open(policy: &Policy, file: &Path) -> bool {
    let directory = file.parent().and_then(|directory| directory.canonicalize().ok());
    let file = match (directory, file.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => file.to_owned(),
    };
    let granted = policy.grants.iter().map(|grant| &grant.path);
    let mut open = granted.chain([&policy.scope]);
    open.any(|path| file.starts_with(path.canonicalize().as_ref().unwrap_or(path)))
}

/// Shows the user which servers require a login, each with its link.
async fn announce(mut states: watch::Receiver<Snapshot>, also_on_stderr: bool) {
    let mut logins = LoginNews::default();
    loop {
        for news in logins.of(&states.borrow_and_update()) {
            say(&news, also_on_stderr);
        }
        if states.changed().await.is_err() {
            return;
        }
    }
}

fn say(what: &str, also_on_stderr: bool) {
    tracing::warn!("{what}");
    if also_on_stderr {
        tell(&format!("warning: {what}"));
    }
}

#[cfg(test)]
#[path = "mount_tests.rs"]
mod tests;
