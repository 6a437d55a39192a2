//! The life of one process: requested from the jail, idle until it is told what to run, then running.

use std::{
    fs::File,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::FileExt as _,
    },
    path::Path,
};

use tokio::{io::AsyncWriteExt, net::unix::pipe};

use super::{LaunchError, sandbox_instance::CurrentSandbox};
use crate::{
    jail::{
        ProcessHandle, Requested,
        wire::{self, Output, ProcessKind, Start},
    },
    sandbox::{PendingCheck, held},
};

/// Destination of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// Both streams are one pipe, so their order is the kernel's.
    Merged,
    /// Two pipes.
    Separate,
    /// A pseudo-terminal, for programs that buffer on pipes. Its end reads as `EIO`, not as end of file.
    Pty,
}

/// A confined process that waits on its script pipe.
#[derive(Debug)]
pub(super) struct IdleProcess {
    process: ProcessHandle,
    script: OwnedFd,
    /// Takes the script if the pipe only wakes.
    script_file: Option<OwnedFd>,
    /// `None` until the supervisor has sent its terminal.
    output: Option<OutputPipes>,
}

/// A command that was started.
#[derive(Debug)]
pub struct RunningProcess {
    pub output: OutputPipes,
    pub process: ProcessHandle,
    /// Finished after the process is gone.
    pub guard_check: PendingCheck,
}

/// The read ends of a command's output; non-blocking, ready for `tokio::io::unix::AsyncFd`.
#[derive(Debug)]
pub enum OutputPipes {
    Merged(OwnedFd),
    Separate { stdout: OwnedFd, stderr: OwnedFd },
}

impl IdleProcess {
    /// Requests a process. It is not waited for, so that a pool can be filled without waiting.
    pub(super) async fn request(
        sandbox: &CurrentSandbox,
        kind: ProcessKind,
        stdio: Stdio,
    ) -> Result<Self, LaunchError> {
        let (control, their_control) = wire::pair().map_err(LaunchError::Jail)?;
        let (their_script, script) = pipe()?;
        let (output, their_output, request) = match (stdio, kind) {
            (Stdio::Merged, ProcessKind::Shell) => {
                let (output, theirs) = output_pipe()?;
                (Some(OutputPipes::Merged(output)), vec![theirs], Output::Merged)
            }
            // While a process waits it is not known whether its program will want one stream or two.
            (Stdio::Merged, ProcessKind::Program) | (Stdio::Separate, _) => {
                let (stdout, their_stdout) = output_pipe()?;
                let (stderr, their_stderr) = output_pipe()?;
                let pipes = OutputPipes::Separate { stdout, stderr };
                (Some(pipes), vec![their_stdout, their_stderr], Output::Separate)
            }
            (Stdio::Pty, _) => (None, Vec::new(), Output::Pty),
        };
        let script_file = match (&sandbox.configure().seatbelt, kind) {
            (Some(_), ProcessKind::Shell) => Some(script_file(&sandbox.configure().policy.private)?),
            (None, _) | (_, ProcessKind::Program) => None,
        };
        let start = Start {
            kind,
            output: request,
            script_file: script_file.is_some(),
        };
        let mut fds = vec![their_control.as_fd(), their_script.as_fd()];
        fds.extend(script_file.as_ref().map(OwnedFd::as_fd));
        fds.extend(their_output.iter().map(OwnedFd::as_fd));
        sandbox.request(start, &fds).await?;
        Ok(Self {
            script_file,
            ..Self::new(unblocked(control)?, unblocked(script)?, output)?
        })
    }

    /// `control` and `script` must not block.
    pub(super) fn new(
        control: OwnedFd,
        script: OwnedFd,
        output: Option<OutputPipes>,
    ) -> Result<Self, LaunchError> {
        Ok(Self {
            process: ProcessHandle::new(control).map_err(LaunchError::Jail)?,
            script,
            script_file: None,
            output,
        })
    }

    /// The process has not ended, as far as its supervisor has reported.
    pub(super) fn is_alive(&mut self) -> bool {
        self.process.is_alive()
    }

    /// Waits until the process exists. One that fails here has been told nothing.
    pub(super) async fn wait_until_ready(&mut self) -> Result<(), LaunchError> {
        match self.process.wait_until_idle().await {
            Requested::Idle {
                terminal: Some(terminal),
            } => {
                self.output = Some(OutputPipes::Merged(unblocked(terminal)?));
                Ok(())
            }
            Requested::Idle { terminal: None } => Ok(()),
            Requested::Failed { reason } => Err(LaunchError::Confinement(reason)),
            Requested::Died { reason } => Err(LaunchError::Died(reason)),
        }
    }

    /// Tells it what to run: a script for a shell, a request for one that becomes a program and, if `stdio` is merged,
    /// joins its streams.
    pub(super) fn run(
        self,
        text: Vec<u8>,
        stdio: Stdio,
        guard_check: PendingCheck,
    ) -> Result<RunningProcess, LaunchError> {
        let output = match (self.output, stdio) {
            (Some(OutputPipes::Separate { stdout, .. }), Stdio::Merged) => OutputPipes::Merged(stdout),
            (Some(output), _) => output,
            (None, _) => return Err(LaunchError::Confinement("its terminal did not come".into())),
        };
        match self.script_file {
            Some(file) => {
                File::from(file)
                    .write_all_at(&text, 0)
                    .map_err(LaunchError::Jail)?;
                send(self.script, b"\n".to_vec());
            }
            None => send(self.script, text),
        }
        Ok(RunningProcess {
            output,
            process: self.process,
            guard_check,
        })
    }
}

/// Writes the text. What fits into a pipe is written at once, the rest as it is read.
fn send(script: OwnedFd, text: Vec<u8>) {
    // A failed write means that the process is gone, which its supervisor reports.
    let written = rustix::io::write(&script, &text).unwrap_or(0);
    if written == text.len() {
        return;
    }
    if let Ok(mut sender) = pipe::Sender::from_owned_fd(script) {
        tokio::spawn(async move { sender.write_all(&text[written..]).await });
    }
}

/// A pipe whose read end does not block. The write end does: commands expect that.
fn output_pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    let (read, write) = pipe()?;
    Ok((unblocked(read)?, write))
}

fn pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    held::pipe().map_err(LaunchError::Jail)
}

fn script_file(private: &Path) -> Result<OwnedFd, LaunchError> {
    held::nameless_file(private).map_err(LaunchError::Jail)
}

fn unblocked(fd: OwnedFd) -> Result<OwnedFd, LaunchError> {
    rustix::io::ioctl_fionbio(&fd, true).map_err(|error| LaunchError::Jail(error.into()))?;
    Ok(fd)
}
