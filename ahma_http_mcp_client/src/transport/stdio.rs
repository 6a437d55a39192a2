//! A server that is a program: started in its own process group, spoken to through its pipes.
//!
//! Its environment is an allow-list plus what the configuration names, so our secrets stay ours. What it prints on
//! stderr goes to the log, and the last line is kept for the error message. Its whole group dies with the transport.

use std::{ffi::OsStr, sync::Arc, time::Duration};

use ahma_common::{
    lines::LineReader,
    process::{ChildProcess, Grace},
};
use parking_lot::Mutex;
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use tokio::{
    io::AsyncRead,
    net::unix::pipe,
    process::{ChildStdout, Command},
};
use tokio_util::sync::CancellationToken;

use crate::config::StdioCommand;

/// Variables that a program needs to run at all, none of them likely to be a secret.
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
/// Locations of certificates, which are no secrets; without them many programs cannot use the network.
const CERTIFICATES: [&str; 4] = [
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];
/// Proxies, unless their address holds a password.
const PROXIES: [&str; 4] = ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];
/// A server that has lost its stdin should end by itself. Together less than a program that hosts us has to end.
const GRACE: Grace = Grace {
    after_eof: Duration::from_secs(2),
    after_term: Duration::from_millis(500),
};
/// Time for the last messages of an exited program to come through its pipe.
const LAST_MESSAGES_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_LOG_LINE: usize = 4096;

pub(crate) struct StdioTransport {
    /// None once it is closed.
    child: Option<ChildProcess>,
    pipes: AsyncRwTransport<RoleClient, ChildStdout, pipe::Sender>,
}

/// The last line of a program on stderr.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastOutput {
    line: Arc<Mutex<Option<String>>>,
    complete: CancellationToken,
}

impl LastOutput {
    /// Waits a moment for a dying program to finish writing.
    pub(crate) async fn get(&self) -> Option<String> {
        let _ = tokio::time::timeout(LAST_MESSAGES_TIMEOUT, self.complete.cancelled()).await;
        self.line.lock().clone()
    }
}

impl StdioTransport {
    pub(crate) fn spawn(
        server: &str,
        command: &StdioCommand,
        last_output: LastOutput,
    ) -> std::io::Result<Self> {
        let mut process = Command::new(&command.program);
        process
            .args(&command.args)
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, value)| is_passed_on(name, value)))
            .envs(&command.env);
        if let Some(directory) = &command.working_directory {
            process.current_dir(directory);
        }
        let (child, pipes) = ChildProcess::spawn(process)?;
        // Ends with the program: its stderr closes when the last of its group is gone.
        tokio::spawn(log_lines(server.to_owned(), pipes.stderr, last_output));
        Ok(Self {
            child: Some(child),
            pipes: AsyncRwTransport::new(pipes.stdout, pipes.stdin),
        })
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
        let child = self.child.as_ref()?;
        tokio::select! {
            biased;
            message = self.pipes.receive() => message,
            () = child.exited() => {
                let last = tokio::time::timeout(LAST_MESSAGES_TIMEOUT, self.pipes.receive()).await;
                last.unwrap_or(None)
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.pipes.close().await?;
        if let Some(child) = self.child.take() {
            child.finish(GRACE).await;
        }
        Ok(())
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

async fn log_lines(server: String, stderr: impl AsyncRead + Unpin, last_output: LastOutput) {
    let mut stderr = LineReader::new(stderr, MAX_LOG_LINE);
    while let Ok(Some(line)) = stderr.next_piece().await {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        tracing::info!(server, "stderr: {text}");
        if !text.is_empty() {
            *last_output.line.lock() = Some(text);
        }
    }
    last_output.complete.cancel();
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
