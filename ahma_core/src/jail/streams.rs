//! The descriptors of one command: the pipe it reads its instructions from, and its output.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::termios::Winsize;

use super::wire::{self, Output, Report, Start};
use crate::sandbox::held;

/// The descriptors that a command gets.
pub(super) struct Streams {
    pub(super) script: OwnedFd,
    /// The script itself, where the pipe only wakes.
    pub(super) script_file: Option<OwnedFd>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// The output is a terminal, to become the controlling one.
    pub(super) is_terminal: bool,
}

/// A terminal without a size makes programs break lines anywhere, or draw nothing. This one holds a bar and a path.
const TERMINAL_SIZE: Winsize = Winsize {
    ws_row: 40,
    ws_col: 120,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

impl Streams {
    /// Takes the descriptors that came with a request. A pseudo-terminal is made here; its master goes to the server over
    /// `control`.
    pub(super) fn new(start: Start, control: &OwnedFd, descriptors: Vec<OwnedFd>) -> io::Result<Self> {
        let mut descriptors = descriptors.into_iter();
        let mut next = || {
            descriptors
                .next()
                .ok_or_else(|| io::Error::other("a descriptor is missing"))
        };
        let script = next()?;
        let script_file = start.script_file.then(&mut next).transpose()?;
        let (stdout, stderr) = match start.output {
            Output::Merged => duplicated(next()?)?,
            Output::Separate => (next()?, next()?),
            Output::Pty => duplicated(open_terminal(control)?)?,
        };
        Ok(Self {
            script,
            script_file,
            stdout,
            stderr,
            is_terminal: matches!(start.output, Output::Pty),
        })
    }
}

fn duplicated(stdout: OwnedFd) -> io::Result<(OwnedFd, OwnedFd)> {
    let stderr = rustix::io::fcntl_dupfd_cloexec(&stdout, 3)?;
    Ok((stdout, stderr))
}

fn open_terminal(control: &OwnedFd) -> io::Result<OwnedFd> {
    let (master, terminal) = held::open_terminal()?;
    rustix::termios::tcsetwinsize(&terminal, TERMINAL_SIZE)?;
    wire::send(control, &Report::Terminal, &[master.as_fd()])?;
    Ok(terminal)
}
