//! The server's side of the jail: starting it, and asking it for processes.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};

use super::{
    role::ROLE,
    wire::{self, Configure, Configured, Start},
};

/// A jail that is ready.
#[derive(Debug)]
pub(crate) struct Jail {
    helper: Helper,
    pub(crate) landlock_abi: i32,
}

/// How long a helper that was let go may take to end; its owners need two seconds at most.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no jail.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    #[error("cannot start the helper process {}", helper.display())]
    Start { helper: PathBuf, source: io::Error },
    #[error("the helper process ended before it was ready")]
    Silent,
    #[error("{reason}")]
    Refused { reason: String },
    #[error("cannot talk to the helper process")]
    Talk(#[from] io::Error),
}

/// A helper process that has not heard yet which wall to put up.
#[derive(Debug)]
pub struct Helper {
    process: Child,
    socket: OwnedFd,
}

impl Helper {
    /// Starts `program`, the same binary in another role, with `posix_spawn` and an empty environment, so that neither the
    /// server's memory nor its secrets are copied. It loads while the caller does something else.
    pub fn start(program: &Path) -> Result<Self, JailError> {
        let (socket, theirs) = wire::pair()?;
        let process = Command::new(program)
            .arg(ROLE)
            .env_clear()
            .stdin(theirs)
            .stdout(Stdio::null())
            .spawn()
            .map_err(|source| JailError::Start {
                helper: program.to_owned(),
                source,
            })?;
        Ok(Self { process, socket })
    }

    /// Makes it a jail, and waits until its wall stands. Blocks for some milliseconds.
    pub(crate) fn configure(mut self, configure: &Configure) -> Result<Jail, JailError> {
        let answer = wire::send(&self.socket, configure, &[]).and_then(|()| wire::receive(&self.socket));
        match answer {
            Ok(Some((Configured::Ready { landlock_abi }, _))) => {
                // From now on it is only asked, and whoever asks must not wait for it.
                rustix::io::ioctl_fionbio(&self.socket, true).map_err(io::Error::from)?;
                Ok(Jail {
                    helper: self,
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

    /// Lets it go and waits until it and its owners have ended. One that stands still is ended.
    pub(crate) fn close(self) {
        let Self { mut process, socket } = self;
        drop(socket);
        if !ends_within(&process, PATIENCE) {
            process.kill().ok();
        }
        process.wait().ok();
    }
}

impl Jail {
    /// Asks for one process. Its owner answers on the control socket, not here. `EAGAIN` if the jail is behind.
    pub(crate) fn request(&self, start: Start, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        wire::send(&self.helper.socket, &start, fds)
    }

    /// Lets the jail go and waits until it and its owners have ended.
    pub(crate) fn close(self) {
        self.helper.close();
    }

    /// Ends the jail at once. What it started goes on until its own end.
    pub(crate) fn kill(mut self) {
        self.helper.process.kill().ok();
        self.helper.process.wait().ok();
    }
}

/// Whether a child ends in time. One that cannot be watched is taken for one that does.
fn ends_within(child: &Child, patience: Duration) -> bool {
    let Ok(child) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else {
        return true;
    };
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(&child, PollFlags::IN)], timeout.as_ref()) {
            Ok(ended) => return ended > 0,
            Err(Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}
