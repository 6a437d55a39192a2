//! The kernel's answers about processes on macOS.

use ahma_common::darwin;
use rustix::process::Pid;

use super::mark::Mark;

/// One process of this user.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessFacts {
    pub(super) pid: Pid,
    pub(super) parent: i32,
    pub(super) threads: usize,
}

/// Marks can be read here: asked about ourselves, who are in no sandbox, the kernel allows everything.
pub(super) fn check() -> Result<(), String> {
    let ourselves = rustix::process::getpid().as_raw_nonzero().get();
    let mark = Mark::random();
    match (
        darwin::may_look_up(ourselves, &mark.allowed()),
        darwin::may_look_up(ourselves, &mark.denied()),
    ) {
        (Some(true), Some(true)) => Ok(()),
        (None, _) | (_, None) => {
            Err("sandbox_check, which finds the processes of a command, is missing".into())
        }
        _ => Err("this process is in a sandbox already".into()),
    }
}

/// The process lives and is in the sandbox of this mark.
pub(super) fn has_mark(pid: Pid, mark: Mark) -> bool {
    let number = pid.as_raw_nonzero().get();
    darwin::has_mark(number, &mark.allowed(), &mark.denied()) == Some(true)
        && rustix::process::test_kill_process(pid).is_ok()
}

/// The processes of this user that have not ended; of all users if it is root, whose commands may become another.
pub(super) fn processes() -> Vec<ProcessFacts> {
    let user = rustix::process::getuid();
    let all = darwin::processes((!user.is_root()).then_some(user.as_raw())).into_iter();
    all.filter_map(facts).collect()
}

fn facts(pid: i32) -> Option<ProcessFacts> {
    let parent = darwin::facts(pid)?.parent;
    Some(ProcessFacts {
        pid: Pid::from_raw(pid)?,
        parent,
        // One that is about to end may not be counted, and may still fork.
        threads: darwin::thread_count(pid).unwrap_or(1),
    })
}
