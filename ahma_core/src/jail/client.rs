//! The server's side of the jail: starting it, and requesting processes from it.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    io::Errno,
    net::Shutdown,
};

use super::{
    role::JAIL_ROLE,
    wire::{self, Configure, Configured, Start},
};

/// Time that a closed jail may take to end; its supervisors need two seconds at most.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A jail could not be started.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    #[error("cannot start the helper process {}", program.display())]
    Start { program: PathBuf, source: io::Error },
    #[error("the helper process ended before it was ready")]
    Silent,
    #[error("{reason}")]
    Refused { reason: String },
    #[error("cannot talk to the helper process")]
    Talk(#[from] io::Error),
}

/// A jail that waits for its configuration.
#[derive(Debug)]
pub struct Jail {
    process: Child,
    socket: OwnedFd,
}

/// A jail whose sandbox is set up.
#[derive(Debug)]
pub(crate) struct ReadyJail {
    jail: Jail,
    pub(crate) landlock_abi: i32,
}

impl Jail {
    /// Starts `program`, the same binary in another role, with `posix_spawn` and an empty environment, so that neither the
    /// server's memory nor its secrets are copied. It loads while the caller goes on.
    pub fn start(program: &Path) -> Result<Self, JailError> {
        let (socket, theirs) = wire::pair()?;
        let process = Command::new(program)
            .arg(JAIL_ROLE)
            .env_clear()
            .stdin(theirs)
            .stdout(Stdio::null())
            .spawn()
            .map_err(|source| JailError::Start {
                program: program.to_owned(),
                source,
            })?;
        Ok(Self { process, socket })
    }

    /// Waits until the sandbox is set up. Blocks for some milliseconds.
    pub(crate) fn configure(mut self, configure: &Configure) -> Result<ReadyJail, JailError> {
        let answer = wire::send(&self.socket, configure, &[]).and_then(|()| wire::receive(&self.socket));
        match answer {
            Ok(Some((Configured::Ready { landlock_abi }, _))) => {
                // From now on requests are only sent, and sending must not block.
                rustix::io::ioctl_fionbio(&self.socket, true).map_err(io::Error::from)?;
                Ok(ReadyJail {
                    jail: self,
                    landlock_abi,
                })
            }
            Ok(Some((Configured::Refused { reason }, _))) => {
                self.process.wait().ok();
                Err(JailError::Refused { reason })
            }
            Ok(None) => {
                self.process.wait().ok();
                Err(JailError::Silent)
            }
            Err(error) => {
                self.close();
                Err(error.into())
            }
        }
    }

    /// Tells the jail to end, and waits until it and its supervisors have. One that is stuck is killed.
    pub(crate) fn close(self) {
        let Self { mut process, socket } = self;
        rustix::net::shutdown(&socket, Shutdown::Write).ok();
        if !is_closed_within(&socket, CLOSE_TIMEOUT) {
            process.kill().ok();
        }
        process.wait().ok();
    }
}

impl ReadyJail {
    /// Requests one process. Its supervisor answers on the control socket, not here. `EAGAIN` if the jail is behind.
    pub(crate) fn request(&self, start: Start, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        wire::send(&self.jail.socket, &start, fds)
    }

    /// Closes the socket and waits until the jail and its supervisors have ended.
    pub(crate) fn close(self) {
        self.jail.close();
    }

    /// Kills the jail. Commands that it started go on with their supervisors.
    pub(crate) fn kill(mut self) {
        self.jail.process.kill().ok();
        self.jail.process.wait().ok();
    }
}

/// Waits until the jail has closed its side, which it does when it ends, and returns whether that was in time. It says
/// nothing any more.
fn is_closed_within(socket: &OwnedFd, timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        let rest = deadline.saturating_duration_since(Instant::now());
        let mut polled = [PollFd::new(socket, PollFlags::IN)];
        let rest_or_zero = Timespec::try_from(rest).unwrap_or_default();
        match rustix::event::poll(&mut polled, Some(&rest_or_zero)) {
            Ok(0) => return false,
            Err(Errno::INTR) => {}
            // A socket that cannot be watched is taken for one that was closed.
            Ok(_) | Err(_) => return true,
        }
    }
}
