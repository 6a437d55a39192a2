//! One process, asked of the jail: which descriptors it gets, when it waits, and how it is told what to run.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use rustix::pipe::PipeFlags;
use tokio::{io::AsyncWriteExt, net::unix::pipe};

use super::{
    launcher::{LaunchError, OutputPipes, Shared},
    pool::Warm,
};
use crate::jail::{
    Beginning, ProcessHandle,
    wire::{self, Becomes, Output, Start},
};

/// A process that has begun and waits to hear what to run.
#[derive(Debug)]
pub(super) struct Waiting {
    process: ProcessHandle,
    script: OwnedFd,
    output: OutputPipes,
}

impl Waiting {
    /// Tells it what to run: a script for a shell, an order for one that becomes a program.
    pub(super) fn told(self, text: Vec<u8>) -> (ProcessHandle, OutputPipes) {
        send(self.script, text);
        (self.process, self.output)
    }
}

impl Warm {
    /// Waits until it waits.
    pub(super) async fn begin(self) -> Result<Waiting, LaunchError> {
        let mut process = ProcessHandle::new(self.control).map_err(LaunchError::Jail)?;
        if !self.begun {
            begin(&mut process).await?;
        }
        Ok(Waiting {
            process,
            script: self.script,
            output: OutputPipes::Merged(self.output),
        })
    }
}

impl Shared {
    /// One with one pipe for both streams. It is not waited for, so that it can become a warm one.
    pub(super) async fn ask_for_merged(self: &Arc<Self>, becomes: Becomes) -> Result<Warm, LaunchError> {
        let (control, theirs) = control_pair()?;
        let (script_in, script) = writing_pipe()?;
        let (output, output_in) = reading_pipe()?;
        let start = Start {
            becomes,
            output: Output::Merged,
        };
        let fds = [&theirs, &script_in, &output_in].map(OwnedFd::as_fd);
        self.request(start, &fds).await?;
        Ok(Warm {
            control,
            begun: false,
            script,
            output,
        })
    }

    /// One with a pipe for each stream.
    pub(super) async fn ask_for_separate(self: &Arc<Self>, becomes: Becomes) -> Result<Waiting, LaunchError> {
        let (control, theirs) = control_pair()?;
        let (script_in, script) = writing_pipe()?;
        let (stdout, stdout_in) = reading_pipe()?;
        let (stderr, stderr_in) = reading_pipe()?;
        let start = Start {
            becomes,
            output: Output::Separate,
        };
        let fds = [&theirs, &script_in, &stdout_in, &stderr_in].map(OwnedFd::as_fd);
        self.request(start, &fds).await?;
        // Ends that are held here would hide that the others are gone.
        drop((theirs, script_in, stdout_in, stderr_in));
        let mut process = ProcessHandle::new(control).map_err(LaunchError::Jail)?;
        begin(&mut process).await?;
        Ok(Waiting {
            process,
            script,
            output: OutputPipes::Separate { stdout, stderr },
        })
    }

    /// One at a terminal of its own.
    pub(super) async fn ask_for_terminal(self: &Arc<Self>, becomes: Becomes) -> Result<Waiting, LaunchError> {
        let (control, theirs) = control_pair()?;
        let (script_in, script) = writing_pipe()?;
        let start = Start {
            becomes,
            output: Output::Pty,
        };
        let fds = [&theirs, &script_in].map(OwnedFd::as_fd);
        self.request(start, &fds).await?;
        drop((theirs, script_in));
        let mut process = ProcessHandle::new(control).map_err(LaunchError::Jail)?;
        let terminal = begin(&mut process)
            .await?
            .ok_or_else(|| LaunchError::Confinement("its terminal did not come".into()))?;
        Ok(Waiting {
            process,
            script,
            output: OutputPipes::Merged(unblocked(terminal)?),
        })
    }
}

/// Waits until the process waits. A terminal comes if one was asked for.
async fn begin(process: &mut ProcessHandle) -> Result<Option<OwnedFd>, LaunchError> {
    match process.begin().await {
        Beginning::Made { terminal } => Ok(terminal),
        Beginning::Failed { reason } => Err(LaunchError::Confinement(reason)),
        Beginning::Died { reason } => Err(LaunchError::Died(reason)),
    }
}

/// Hands the text over. What fits into a pipe goes at once; a longer one is written as the shell reads it.
fn send(script: OwnedFd, text: Vec<u8>) {
    // A failed write means that the shell is gone, which its owner reports.
    let written = rustix::io::write(&script, &text).unwrap_or(0);
    if written == text.len() {
        return;
    }
    if let Ok(mut sender) = pipe::Sender::from_owned_fd(script) {
        tokio::spawn(async move { sender.write_all(&text[written..]).await });
    }
}

/// A pair of message sockets, of which the first, ours, does not block.
fn control_pair() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    let (ours, theirs) = wire::pair().map_err(LaunchError::Jail)?;
    Ok((unblocked(ours)?, theirs))
}

/// A pipe whose read end does not block. The write end does: commands expect that.
fn reading_pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    let (read, write) = pipe()?;
    Ok((unblocked(read)?, write))
}

/// A pipe whose write end does not block.
fn writing_pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    let (read, write) = pipe()?;
    Ok((read, unblocked(write)?))
}

fn pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| LaunchError::Jail(error.into()))
}

fn unblocked(fd: OwnedFd) -> Result<OwnedFd, LaunchError> {
    rustix::io::ioctl_fionbio(&fd, true).map_err(|error| LaunchError::Jail(error.into()))?;
    Ok(fd)
}
