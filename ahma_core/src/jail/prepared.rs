//! All that the jail prepares once for every command: the wall, and the arguments of `execve`.

use std::{ffi::CString, os::unix::ffi::OsStrExt, path::PathBuf};

use super::{wall::Wall, wire::Configure};

/// The descriptor on which a shell reads its script. One digit, because `dash` takes no more in a redirection.
pub(crate) const SCRIPT_FD: i32 = 9;

/// The script of an idle shell: it reads its instructions, which leave the user's text as the first argument, and then
/// runs that text. Not while it still reads them, so that lines are counted from the text's own first and messages begin
/// with the name of the shell, as after `bash -c`. And not without the second argument, which shows that the text is
/// complete: half of one, from a server that died while writing, must never run. Anything put before the text would show
/// up in error messages; the space keeps a leading dash from being an option of `eval`.
macro_rules! read_script {
    ($reading:literal) => {
        concat!(
            $reading,
            "; [ \"$2\" = . ] || { echo \"ahma_mcp: the server went away before it had said what to run\" >&2; \
             exit 126; }; _script=$1; shift 2; eval \" $_script\""
        )
    };
}
pub(super) use read_script;

/// The one that reads them from its pipe.
pub(crate) const READ_SCRIPT: &str = read_script!(". /dev/fd/9");

/// A prepared sandbox and shell. Copied by fork into every supervisor.
#[derive(Debug)]
pub(super) struct PreparedSandbox {
    pub(super) scope: PathBuf,
    pub(super) defaults: ExecDefaults,
    pub(super) wall: Wall,
}

/// The shell and the environment of every command.
#[derive(Debug)]
pub(super) struct ExecDefaults {
    pub(super) shell: CString,
    pub(super) arguments: Vec<CString>,
    pub(super) environment: Vec<CString>,
}

impl PreparedSandbox {
    /// Confines the calling process as far as the jail itself can live with, and prepares the rest.
    pub(super) fn build(configure: &Configure) -> Result<Self, String> {
        let wall = Wall::build(configure)?;
        Ok(Self {
            scope: configure.policy.scope.clone(),
            defaults: ExecDefaults {
                shell: c_string(configure.shell.as_os_str().as_bytes())?,
                arguments: arguments(configure)?,
                environment: configure
                    .environment
                    .iter()
                    .map(|(name, value)| c_string(format!("{name}={value}").as_bytes()))
                    .collect::<Result<_, _>>()?,
            },
            wall,
        })
    }
}

fn arguments(configure: &Configure) -> Result<Vec<CString>, String> {
    let name = configure.shell.file_name().unwrap_or(configure.shell.as_os_str());
    [name.as_bytes(), b"-c", READ_SCRIPT.as_bytes(), name.as_bytes()]
        .into_iter()
        .map(c_string)
        .collect()
}

pub(super) fn c_string(bytes: &[u8]) -> Result<CString, String> {
    CString::new(bytes).map_err(|_| format!("{} holds a NUL byte", String::from_utf8_lossy(bytes)))
}
