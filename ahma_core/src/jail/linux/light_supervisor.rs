//! Supervisors of shells that share the jail's memory instead of copying it.
//!
//! Copying page tables, the faults after it and the end of the copies cost as much processor time as all else that the
//! jail does for a command. So in the full tier the supervisor of a shell is a process of its own, with its own
//! namespaces, descriptors and credentials, in the jail's memory, on a stack of its own (`CLONE_VM`); and it starts the
//! shell as `vfork` does.
//!
//! Everything that runs here before the shell's `execve`, and the whole life of the supervisor, may read what the jail
//! prepared and write to its own stack, and nothing else: no allocation, no panic, no reference count. The C library's
//! `errno` is the jail's own, so what is read from it after a failure is only good for a message.
//!
//! Other tiers need more (a broker thread, a walk through the tree of processes), and so does a process that becomes a
//! program: those are forked.

use std::{
    ffi::{CString, c_char, c_int, c_void},
    io,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    ptr,
    rc::Rc,
};

use rustix::process::{Pid, Signal};
use serde::Serialize;

use super::{
    confine::{self, CommandFilters},
    family::{LinuxFamily, Reach},
    process_budget::ProcessBudget,
    stack_text::StackText,
    stacks::Stacks,
};
use crate::{
    jail::{
        child,
        family::Family,
        prepared::{PreparedSandbox, SCRIPT_FD, c_string},
        streams::Streams,
        supervisor,
        wall::Wall,
        wire::{self, Output, ProcessKind, Start},
    },
    sandbox::{
        Tier,
        linux::{
            landlock::{Rules, Ruleset},
            namespaces,
        },
    },
};

/// Starts supervisors that share the memory of the jail, which has one of these.
#[derive(Debug)]
pub(in crate::jail) struct LightSupervisors {
    shell: &'static ShellPlan,
    /// Descriptors of the jail: the socket of the server, and what tells of the end of a child.
    server: RawFd,
    child_ended: RawFd,
    stacks: Stacks,
}

/// All that a shell is started with. Never freed: a supervisor may read it to the end of the jail.
#[derive(Debug)]
struct ShellPlan {
    max_processes: u32,
    rules: Rc<Rules>,
    filters: Rc<CommandFilters>,
    scope: CString,
    shell: CString,
    arguments: Words,
    environment: Words,
}

/// A list of words as `execve` takes it.
#[derive(Debug)]
struct Words {
    pointers: Vec<*const c_char>,
    /// Pointed to.
    _words: Vec<CString>,
}

impl Words {
    fn new(words: Vec<CString>) -> Self {
        let pointers = words.iter().map(|word| word.as_ptr());
        Self {
            pointers: pointers.chain([ptr::null()]).collect(),
            _words: words,
        }
    }
}

/// One start, as it lies on top of the stack of the new supervisor.
#[derive(Clone, Copy)]
struct Launch {
    shell: &'static ShellPlan,
    /// End of the stack of the process that becomes the shell.
    shell_stack: *mut c_void,
    server: RawFd,
    child_ended: RawFd,
    control: RawFd,
    script: RawFd,
    stdout: RawFd,
    stderr: RawFd,
}

/// One start as the process sees it that becomes the shell.
struct ShellLaunch {
    launch: Launch,
    ruleset: Ruleset,
    process_limit: u64,
}

impl LightSupervisors {
    /// `None` where supervisors have to be forked.
    pub(in crate::jail) fn of(
        sandbox: &PreparedSandbox,
        server: &OwnedFd,
        child_ended: &OwnedFd,
    ) -> Option<Self> {
        let wall = match &sandbox.wall {
            Wall::Linux(wall) if wall.tier == Tier::Full => wall,
            Wall::Linux(_) | Wall::Seatbelt(_) => return None,
        };
        let defaults = &sandbox.defaults;
        let shell = ShellPlan {
            max_processes: wall.max_processes,
            rules: Rc::clone(&wall.rules),
            filters: Rc::clone(&wall.filters),
            scope: c_string(sandbox.scope.as_os_str().as_bytes()).ok()?,
            shell: defaults.shell.clone(),
            arguments: Words::new(defaults.arguments.clone()),
            environment: Words::new(defaults.environment.clone()),
        };
        Some(Self {
            shell: Box::leak(Box::new(shell)),
            server: server.as_raw_fd(),
            child_ended: child_ended.as_raw_fd(),
            stacks: Stacks::default(),
        })
    }

    pub(in crate::jail) fn can_start(&self, start: Start) -> bool {
        start.kind == ProcessKind::Shell && !matches!(start.output, Output::Pty)
    }

    /// Starts a supervisor and its shell. The caller's copies of the descriptors are closed.
    pub(in crate::jail) fn start(&mut self, control: &OwnedFd, streams: Streams) -> io::Result<Pid> {
        let stack = self.stacks.take()?;
        let launch = Launch {
            shell: self.shell,
            shell_stack: stack.inner_end(),
            server: self.server,
            child_ended: self.child_ended,
            control: control.as_raw_fd(),
            script: streams.script.as_raw_fd(),
            stdout: streams.stdout.as_raw_fd(),
            stderr: streams.stderr.as_raw_fd(),
        };
        let pid = stack.push(launch, |top, launch| {
            // SAFETY: the stack is this process's alone until it has been collected, and holds its argument.
            unsafe {
                libc::clone(
                    supervise,
                    top,
                    libc::CLONE_VM | libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::SIGCHLD,
                    launch,
                )
            }
        });
        match Pid::from_raw(pid.max(0)) {
            Some(pid) => {
                self.stacks.in_use(pid, stack);
                Ok(pid)
            }
            None => {
                let error = io::Error::last_os_error();
                self.stacks.give_back(stack);
                Err(error)
            }
        }
    }

    /// A supervisor has been collected, and with it all in its namespace.
    pub(in crate::jail) fn ended(&mut self, supervisor: Pid) {
        self.stacks.ended(supervisor);
    }
}

/// A report that lives on the stack; on the wire it is [`wire::Report`].
#[derive(Serialize)]
enum ShortReport<'a> {
    Failed { reason: &'a str },
}

/// The whole life of a supervisor.
extern "C" fn supervise(launch: *mut c_void) -> c_int {
    // SAFETY: the jail has put it there before this process existed, and leaves it alone until it has been collected.
    let launch = unsafe { *launch.cast::<Launch>() };
    // SAFETY: these are numbers in this process's own table, where nothing else owns them.
    let (control, child_ended) = unsafe {
        // Held open here it would keep the server from noticing that the jail is gone.
        libc::close(launch.server);
        (
            OwnedFd::from_raw_fd(launch.control),
            OwnedFd::from_raw_fd(launch.child_ended),
        )
    };
    match start_shell(launch) {
        Ok((command, family)) => supervisor::supervise_started(command, family, child_ended, control),
        Err((step, errno)) => {
            let reason = StackText::<128>::of(format_args!("{step}: os error {errno}"));
            let failed = ShortReport::Failed {
                reason: reason.as_str(),
            };
            wire::send(&control, &failed, &[]).ok();
        }
    }
    0
}

/// Returns once the shell is confined and running, or could not be.
fn start_shell(launch: Launch) -> Result<(Pid, Family), (&'static str, i32)> {
    let failed = |step| move |error: io::Error| (step, error.raw_os_error().unwrap_or(0));
    rustix::process::setsid().map_err(|error| failed("cannot lead a session")(error.into()))?;
    namespaces::mount_own_proc().map_err(failed("cannot mount a /proc of its own"))?;
    let ruleset = launch.shell.rules.build(Some(Path::new("/proc")));
    let ruleset = ruleset.map_err(failed("cannot make its Landlock rules"))?;
    let (budget, process_limit) = ProcessBudget::of_namespace(launch.shell.max_processes);
    let mut shell_launch = ShellLaunch {
        launch,
        ruleset,
        process_limit,
    };
    // SAFETY: returns when the new process has left this memory, by `execve` or by its end, so that what it points to
    // outlives its use.
    let pid = unsafe {
        libc::clone(
            become_shell,
            launch.shell_stack,
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            (&raw mut shell_launch).cast(),
        )
    };
    let command = Pid::from_raw(pid.max(0))
        .ok_or_else(|| failed("cannot start a process")(io::Error::last_os_error()))?;
    for fd in [launch.script, launch.stdout, launch.stderr] {
        // Closed here, so that the end of the output is the end of the command and its children.
        // SAFETY: a number in this process's own table, where nothing else owns it.
        unsafe { libc::close(fd) };
    }
    confine::let_kill_first(command);
    Ok((
        command,
        Family::Linux(LinuxFamily::new(Reach::Namespace, None, budget, None)),
    ))
}

/// The process that becomes the shell. Returns only if that failed, which ends it.
extern "C" fn become_shell(launch: *mut c_void) -> c_int {
    // SAFETY: the supervisor keeps it until this process has left its memory.
    let launch = unsafe { &*launch.cast::<ShellLaunch>() };
    let error = exec_shell(launch);
    let errno = error.raw_os_error().unwrap_or(0);
    let message = StackText::<128>::of(format_args!(
        "ahma_mcp: the command could not be started: os error {errno}\n"
    ));
    // Standard error is the operation's output by now, or at worst the jail's own.
    rustix::io::write(rustix::stdio::stderr(), message.as_str().as_bytes()).ok();
    child::CANNOT_START
}

fn exec_shell(launch: &ShellLaunch) -> io::Error {
    let Launch { shell, .. } = &launch.launch;
    if let Err(error) = confine(launch) {
        return error;
    }
    // SAFETY: all strings end in NUL and both lists in a null pointer, and nothing frees them.
    unsafe {
        libc::execve(
            shell.shell.as_ptr(),
            shell.arguments.pointers.as_ptr(),
            shell.environment.pointers.as_ptr(),
        )
    };
    io::Error::last_os_error()
}

/// The same steps as those of a forked process.
fn confine(shell_launch: &ShellLaunch) -> io::Result<()> {
    let ShellLaunch {
        launch,
        ruleset,
        process_limit,
    } = shell_launch;
    let Launch { shell, .. } = launch;
    rustix::process::setsid()?;
    // The kernel kills it with its supervisor; this does not depend on that.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    child::unblock_signals();
    // SAFETY: these are numbers in this process's own table, where nothing else owns them.
    let owned = |fd| unsafe { OwnedFd::from_raw_fd(fd) };
    let script = child::take_streams(Streams {
        script: owned(launch.script),
        script_file: None,
        stdout: owned(launch.stdout),
        stderr: owned(launch.stderr),
        is_terminal: false,
    })?;
    rustix::process::chdir(shell.scope.as_c_str())?;
    confine::take_rights(Some(*process_limit), Some(ruleset), Some(&shell.filters))?;
    // Last, when no other descriptor is held that might have its number.
    let script = child::place(script, SCRIPT_FD)?;
    confine::close_all_but_script()?;
    // The shell opens it by its number.
    std::mem::forget(script);
    Ok(())
}
