//! A server that is a program: started in its own process group, spoken to through its pipes.
//!
//! Its environment is an allow-list plus what the configuration names, so our secrets stay ours. What it prints on
//! stderr goes to the log, and the last line is kept for the error message. Its whole group dies with the transport.

use std::ffi::OsStr;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use crate::config::StdioCommand;

/// What a program needs to run at all, and nothing that is likely to be a secret.
const PASSED_ON: [&str; 13] = [
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
];
/// Where to find certificates, which are no secrets; without them many a program waits for a network that it has.
const CERTIFICATES: [&str; 4] = [
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];
/// Ways to the network, unless their address holds a password.
const PROXIES: [&str; 4] = ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];
/// A server that has lost its stdin should end by itself; this is how long it may take.
const EXIT_PATIENCE: Duration = Duration::from_secs(2);
/// How long an exited program's last messages may take through the pipe.
const LAST_MESSAGES_PATIENCE: Duration = Duration::from_secs(2);
const LONGEST_LOG_LINE: u64 = 4096;

pub(crate) struct StdioTransport {
    child: Child,
    group: Option<Pid>,
    pipes: AsyncRwTransport<RoleClient, ChildStdout, ChildStdin>,
}

/// The last thing a program said on stderr.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastWords {
    line: Arc<Mutex<Option<String>>>,
    complete: CancellationToken,
}

impl LastWords {
    /// Waits a moment for a dying program to finish speaking.
    pub(crate) async fn get(&self) -> Option<String> {
        let _ = tokio::time::timeout(LAST_MESSAGES_PATIENCE, self.complete.cancelled()).await;
        self.lock().clone()
    }

    fn set(&self, line: String) {
        *self.lock() = Some(line);
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.line
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl StdioTransport {
    pub(crate) fn spawn(
        server: &str,
        command: &StdioCommand,
        last_words: LastWords,
    ) -> std::io::Result<Self> {
        let mut process = Command::new(&command.program);
        process
            .args(&command.args)
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, value)| is_passed_on(name, value)))
            .envs(&command.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(directory) = &command.working_directory {
            process.current_dir(directory);
        }
        let mut child = process.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(std::io::Error::other("the program has no pipes"));
        };
        // Ends with the program: its stderr closes when the last of its group is gone.
        tokio::spawn(log_lines(server.to_owned(), stderr, last_words));
        Ok(Self {
            child,
            group,
            pipes: AsyncRwTransport::new(stdout, stdin),
        })
    }

    fn kill_group(&mut self) {
        if let Some(group) = self.group.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.pipes.send(message)
    }

    /// Ends when the program does, even if something it started still holds the pipe open.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        tokio::select! {
            biased;
            message = self.pipes.receive() => message,
            _ = self.child.wait() => {
                let last = tokio::time::timeout(LAST_MESSAGES_PATIENCE, self.pipes.receive()).await;
                last.unwrap_or(None)
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.pipes.close().await?;
        let exited = tokio::time::timeout(EXIT_PATIENCE, self.child.wait()).await;
        // Launchers such as npx may leave the real server behind; the group is still ours to end.
        self.kill_group();
        if exited.is_err() {
            self.child.wait().await?;
        }
        Ok(())
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        self.kill_group();
    }
}

fn is_passed_on(name: &OsStr, value: &OsStr) -> bool {
    let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
        return false;
    };
    let is_proxy = PROXIES.contains(&&*name.to_ascii_uppercase());
    PASSED_ON.contains(&name)
        || CERTIFICATES.contains(&name)
        || name.starts_with("LC_")
        || (is_proxy && !value.contains('@'))
}

async fn log_lines(server: String, stderr: impl AsyncRead + Unpin, last_words: LastWords) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut stderr)
        .take(LONGEST_LOG_LINE)
        .read_until(b'\n', &mut line)
        .await
    {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        tracing::info!(server, "stderr: {text}");
        if !text.is_empty() {
            last_words.set(text);
        }
        line.clear();
    }
    last_words.complete.cancel();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_what_it_needs_and_no_secret() {
        for (name, value, is_passed) in [
            ("PATH", "/bin", true),
            ("LC_ALL", "C", true),
            ("NODE_EXTRA_CA_CERTS", "/etc/ca.pem", true),
            ("https_proxy", "http://proxy.example:3128", true),
            ("HTTPS_PROXY", "http://me:secret@proxy.example:3128", false),
            ("GITHUB_TOKEN", "secret", false),
        ] {
            assert_eq!(is_passed_on(name.as_ref(), value.as_ref()), is_passed, "{name}");
        }
    }
}
