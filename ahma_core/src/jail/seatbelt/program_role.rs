//! This program inside the sandbox of one command: it waits for a request and becomes the program that it names, or reads
//! and changes files as asked. On Linux the forked jail does the same without being started anew.

use std::{
    ffi::OsString,
    io::Write as _,
    os::{
        fd::{FromRawFd as _, OwnedFd},
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
    process::ExitCode,
};

use super::wall::{READY, STDERR_FD};
use crate::jail::{
    child::MESSAGE_PREFIX,
    prepared::{ExecDefaults, SCRIPT_FD, c_string},
    program::{self, NotStarted},
    role::{REPLACED, VERSION},
    waiting,
};

/// The first argument that makes the binary this.
pub(in crate::jail) const PROGRAM_ROLE: &str = "__ahma_program";

/// Runs if this process was started for it. `arguments` are those after the role.
pub(in crate::jail) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Err(NotStarted { code, reason }) = start(arguments);
    let _ = writeln!(std::io::stderr(), "{MESSAGE_PREFIX}{reason}");
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

fn start(mut arguments: impl Iterator<Item = OsString>) -> Result<std::convert::Infallible, NotStarted> {
    let failed = |reason: String| NotStarted { code: 126, reason };
    let (version, shell) = (arguments.next(), arguments.next().unwrap_or_default());
    if version.as_deref() != Some(VERSION.as_ref()) {
        return Err(failed(REPLACED.into()));
    }
    // The runtime of this program ignores SIGPIPE, which survives `exec`.
    waiting::reset_signals();
    let shell_name = std::path::Path::new(&shell)
        .file_name()
        .unwrap_or(&shell)
        .to_owned();
    let defaults = ExecDefaults {
        shell: c_string(shell.as_bytes()).map_err(failed)?,
        arguments: vec![c_string(shell_name.as_bytes()).map_err(failed)?],
        environment: std::env::vars_os()
            .map(|(name, value)| c_string(&[name.into_vec(), b"=".to_vec(), value.into_vec()].concat()))
            .collect::<Result<_, _>>()
            .map_err(failed)?,
    };
    let _ = std::io::stderr().write_all(READY.as_bytes());
    // SAFETY: the supervisor has left both descriptors open at these numbers for this process.
    let (stderr, script) = unsafe { (OwnedFd::from_raw_fd(STDERR_FD), OwnedFd::from_raw_fd(SCRIPT_FD)) };
    rustix::stdio::dup2_stderr(&stderr).map_err(|error| failed(error.to_string()))?;
    drop(stderr);
    program::exec_requested(&defaults, script)
}
