//! The server's side of the jail: starting it, and asking it for shells.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use super::{
    role::ROLE,
    wire::{self, Configure, Configured, Start},
};

/// A jail that is ready.
#[derive(Debug)]
pub(crate) struct Jail {
    process: Child,
    socket: OwnedFd,
    pub(crate) landlock_abi: i32,
}

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

impl Jail {
    /// Starts a jail and waits until its wall stands. Blocks for some milliseconds.
    ///
    /// The helper is the same binary in another role, started with `posix_spawn` and an empty environment, so that
    /// neither the server's memory nor its secrets are copied.
    pub(crate) fn start(helper: &Path, configure: &Configure) -> Result<Self, JailError> {
        let (socket, theirs) = wire::pair()?;
        let process = Command::new(helper)
            .arg(ROLE)
            .env_clear()
            .stdin(theirs)
            .stdout(Stdio::null())
            .spawn()
            .map_err(|source| JailError::Start {
                helper: helper.to_owned(),
                source,
            })?;
        let mut jail = Self {
            process,
            socket,
            landlock_abi: 0,
        };
        wire::send(&jail.socket, configure, &[])?;
        match wire::receive(&jail.socket) {
            Ok(Some((Configured::Ready { landlock_abi }, _))) => {
                jail.landlock_abi = landlock_abi;
                Ok(jail)
            }
            Ok(Some((Configured::Refused { reason }, _))) => {
                jail.process.wait().ok();
                Err(JailError::Refused { reason })
            }
            Ok(None) => {
                jail.process.wait().ok();
                Err(JailError::Silent)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Asks for one shell. Its owner answers on the control socket, not here.
    pub(crate) fn request(&self, start: Start, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        wire::send(&self.socket, &start, fds)
    }

    /// Lets the jail go and waits until it and its owners have ended.
    pub(crate) fn close(self) {
        let Self {
            mut process, socket, ..
        } = self;
        drop(socket);
        process.wait().ok();
    }
}
