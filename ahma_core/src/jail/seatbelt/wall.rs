//! `sandbox-exec` with everything that it is given: profile, marks, and the shell or our own program inside.

use std::{
    ffi::CString,
    io::{self, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd, RawFd},
        unix::{ffi::OsStrExt, fs::OpenOptionsExt as _},
    },
    path::PathBuf,
    process::{Command, Stdio},
    rc::Rc,
};

use super::{family::MarkedFamily, kernel, mark::Mark, mark_record::MarkRecord, program_role};
use crate::{
    jail::{
        child,
        prepared::{PreparedSandbox, SCRIPT_FD, c_string, read_script},
        role::VERSION,
        streams::Streams,
        wall::{Forked, forked},
        wire::{Configure, ProcessKind, SeatbeltConfigure},
    },
    sandbox::{held, limits},
};

/// The descriptor that holds the script of a shell.
pub(crate) const SCRIPT_FILE_FD: RawFd = 8;

/// The descriptor that becomes standard error once the process is confined. Until then messages go to the supervisor.
pub(super) const STDERR_FD: RawFd = 6;

/// Last words of a process on its way behind the sandbox.
pub(super) const READY: &str = "ahma: confined\n";

/// Arguments and environment share a mebibyte on macOS; a profile longer than this is put into a file.
const MAX_PROFILE_ARGUMENT: usize = 200 * 1024;

/// The script of an idle shell. The `bash` of macOS cannot read its instructions from a pipe: it takes as many bytes as the
/// file is long. So they are in a file, and the pipe only wakes.
const READ_SCRIPT: &str =
    read_script!("echo 'ahma: confined' >&2; exec 2>&6 6>&-; read -r _ <&9; . /dev/fd/8; exec 8<&-");

/// Everything that is the same for each command.
#[derive(Debug)]
pub(in crate::jail) struct SeatbeltWall {
    /// `None` without a sandbox.
    launcher: Option<SandboxExec>,
    shell: PathBuf,
    /// This program, which becomes the program of a request once it is inside.
    program: PathBuf,
    max_processes: u32,
    /// Of the operation that was begun last.
    mark: Option<Mark>,
}

/// The program and the profile.
#[derive(Debug)]
struct SandboxExec {
    path: PathBuf,
    /// The flag that the profile follows, and the profile or its file.
    profile: [CString; 2],
    record: Rc<MarkRecord>,
}

/// Data with which a new process enters the sandbox.
pub(in crate::jail) struct SeatbeltLaunch {
    words: Vec<CString>,
    shell_words: Vec<CString>,
    program_words: Vec<CString>,
    status: OwnedFd,
}

impl SeatbeltWall {
    pub(in crate::jail) fn build(configure: &Configure) -> Result<Self, String> {
        let SeatbeltConfigure {
            sandbox_exec,
            profile,
            ..
        } = configure.seatbelt.as_ref().ok_or("no profile was given")?;
        if !sandbox_exec.is_file() {
            return Err(format!("{} is missing", sandbox_exec.display()));
        }
        kernel::check()?;
        let profile = if profile.len() <= MAX_PROFILE_ARGUMENT {
            [c_string(b"-p")?, c_string(profile.as_bytes())?]
        } else {
            let path = configure.policy.private.join("profile.sb");
            let written = std::fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&path)
                .and_then(|mut file| file.write_all(profile.as_bytes()));
            written.map_err(|error| format!("{}: {error}", path.display()))?;
            [c_string(b"-f")?, c_string(path.as_os_str().as_bytes())?]
        };
        let private = &configure.policy.private;
        let record = MarkRecord::open(private).map_err(|error| format!("{}: {error}", private.display()))?;
        let launcher = SandboxExec {
            path: sandbox_exec.clone(),
            profile,
            record: Rc::new(record),
        };
        Self::with(Some(launcher), configure)
    }

    /// No sandbox at all.
    pub(in crate::jail) fn open(configure: &Configure) -> Result<Self, String> {
        Self::with(None, configure)
    }

    fn with(launcher: Option<SandboxExec>, configure: &Configure) -> Result<Self, String> {
        // Commands inherit them.
        limits::lower(configure.max_file_bytes).map_err(|error| error.to_string())?;
        let seatbelt = configure.seatbelt.as_ref().ok_or("no program was named")?;
        Ok(Self {
            launcher,
            shell: configure.shell.clone(),
            program: seatbelt.program.clone(),
            max_processes: configure.max_processes,
            mark: None,
        })
    }

    /// Starts a program under the profile. `sandbox-exec` fails inside another sandbox, and for a profile that this
    /// version of macOS does not take.
    pub(in crate::jail) fn rehearse(&mut self) -> Result<(), String> {
        let Some(launcher) = &self.launcher else {
            return Ok(());
        };
        let text = |bytes: &CString| bytes.to_string_lossy().into_owned();
        let mark = Mark::random();
        let output = Command::new(&launcher.path)
            .args(launcher.profile.iter().map(text))
            .args(parameters(mark))
            .arg("/usr/bin/true")
            .env_clear()
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", launcher.path.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!(
            "sandbox-exec failed ({}): {}",
            output.status,
            said.trim()
        ))
    }

    /// The mark of the operation that was begun last.
    pub(in crate::jail) fn mark(&self) -> Option<Mark> {
        self.mark
    }

    /// None without a sandbox.
    pub(super) fn mark_record(&self) -> Option<Rc<MarkRecord>> {
        self.launcher.as_ref().map(|launcher| Rc::clone(&launcher.record))
    }

    pub(in crate::jail) fn fork_supervisor(&mut self) -> io::Result<Forked> {
        // Before the fork, so that the jail knows it too.
        self.mark = self.launcher.as_ref().map(|_| Mark::random());
        // SAFETY: the process has one thread, so its copy may run any code.
        forked(unsafe { libc::fork() }.into())
    }

    pub(in crate::jail) fn open_operation(&mut self) -> io::Result<(MarkedFamily, SeatbeltLaunch)> {
        let (status, their_status) = held::pipe()?;
        let c_words = |words: &[&[u8]]| -> io::Result<Vec<CString>> {
            words
                .iter()
                .map(|word| c_string(word).map_err(io::Error::other))
                .collect()
        };
        let mut words = Vec::new();
        if let (Some(SandboxExec { path, profile, .. }), Some(mark)) = (&self.launcher, self.mark) {
            words.extend(c_words(&[path.as_os_str().as_bytes()])?);
            words.extend(profile.iter().cloned());
            let parameters = parameters(mark);
            words.extend(c_words(&parameters.each_ref().map(|word| word.as_bytes()))?);
        }
        let name = self.shell.file_name().unwrap_or(self.shell.as_os_str());
        let launch = SeatbeltLaunch {
            words,
            shell_words: c_words(&[
                self.shell.as_os_str().as_bytes(),
                b"-c",
                READ_SCRIPT.as_bytes(),
                name.as_bytes(),
            ])?,
            program_words: c_words(&[
                self.program.as_os_str().as_bytes(),
                program_role::PROGRAM_ROLE.as_bytes(),
                VERSION.as_bytes(),
                self.shell.as_os_str().as_bytes(),
            ])?,
            status: their_status,
        };
        let family = MarkedFamily::new(self.mark, status, self.max_processes);
        Ok((family, launch))
    }
}

impl SeatbeltLaunch {
    /// Becomes `sandbox-exec`, which becomes the shell or our own program. Returns only if that failed.
    pub(in crate::jail) fn exec(
        self,
        sandbox: &PreparedSandbox,
        streams: Streams,
        kind: ProcessKind,
    ) -> io::Error {
        match self.try_exec(sandbox, streams, kind) {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    fn try_exec(
        self,
        sandbox: &PreparedSandbox,
        streams: Streams,
        kind: ProcessKind,
    ) -> io::Result<std::convert::Infallible> {
        child::unblock_signals();
        let script_file = streams
            .script_file
            .as_ref()
            .map(|file| file.try_clone())
            .transpose()?;
        let script = child::take_streams(streams)?;
        std::env::set_current_dir(&sandbox.scope)?;
        let stderr = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), FIRST_FREE)?;
        let status = rustix::io::fcntl_dupfd_cloexec(&self.status, FIRST_FREE)?;
        let script = rustix::io::fcntl_dupfd_cloexec(&script, FIRST_FREE)?;
        let mut kept = vec![child::place(script, SCRIPT_FD)?, child::place(stderr, STDERR_FD)?];
        if let Some(file) = script_file {
            kept.push(child::place(
                rustix::io::fcntl_dupfd_cloexec(file, FIRST_FREE)?,
                SCRIPT_FILE_FD,
            )?);
        }
        rustix::stdio::dup2_stderr(status.as_fd())?;
        held::close_on_exec_all_but(&[SCRIPT_FD, SCRIPT_FILE_FD, STDERR_FD])?;
        let mut words = self.words;
        words.extend(match kind {
            ProcessKind::Shell => self.shell_words,
            ProcessKind::Program => self.program_words,
        });
        let program = words.first().cloned().ok_or(io::ErrorKind::InvalidInput)?;
        // Open until the process is another program.
        let error = child::exec(&program, &words, &sandbox.defaults.environment);
        drop(kept);
        Err(error)
    }
}

/// Above the numbers that are given out.
const FIRST_FREE: RawFd = SCRIPT_FD + 1;

/// The marks, as parameters of the profile.
fn parameters(mark: Mark) -> [String; 4] {
    [
        "-D".to_owned(),
        format!("MARK_ALLOWED={}", mark.allowed()),
        "-D".to_owned(),
        format!("MARK_DENIED={}", mark.denied()),
    ]
}
