//! The meaning of a process's end for its operation.

use std::time::Duration;

use ahma_common::error_chain;
use rustix::process::Signal;

use crate::{
    call::{Command, ExitCodes, ExitMeaning, Program},
    jail::{
        ExitReport, ExitStatus,
        program::{self, NOT_FOUND},
    },
    shell::LaunchError,
};

use super::{
    Background, EndState,
    run::{RunEnd, StopReason},
};

/// The end of one command.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CommandResult {
    pub(super) state: EndState,
    pub(super) exit: Option<ExitStatus>,
    /// Always there when the state is not `completed`; what the state says already is not repeated.
    pub(super) reason: Option<String>,
    pub(super) background: Background,
    pub(super) cpu: Option<Duration>,
    pub(super) peak_memory_bytes: Option<u64>,
    /// Its exit code says that it has found something.
    pub(super) has_findings: bool,
}

impl CommandResult {
    pub(super) fn completed() -> Self {
        Self {
            state: EndState::Completed,
            exit: None,
            reason: None,
            background: Background::Clear,
            cpu: None,
            peak_memory_bytes: None,
            has_findings: false,
        }
    }

    /// For work that ended without a process to report on.
    pub(super) fn without_process(state: EndState, reason: String) -> Self {
        Self {
            state,
            reason: Some(reason),
            ..Self::completed()
        }
    }

    pub(super) fn stopped(why: &StopReason) -> Self {
        let (state, reason) = match why {
            StopReason::Cancelled(Some(reason)) => (EndState::Cancelled, reason.clone()),
            StopReason::Cancelled(None) => (EndState::Cancelled, "on request".to_owned()),
            StopReason::Interrupted(reason) => (EndState::Interrupted, reason.clone()),
            StopReason::TimedOut(timeout) => (
                EndState::TimedOut,
                format!("the timeout is {} s", timeout.as_secs_f64()),
            ),
        };
        Self::without_process(state, reason)
    }

    pub(super) fn not_launched(error: &LaunchError) -> Self {
        let reason = format!("could not be started: {}", error_chain(error));
        Self::without_process(EndState::Failed, reason)
    }

    pub(super) fn of(end: RunEnd, exit_codes: &ExitCodes) -> Self {
        match end {
            RunEnd::Exited { exit, background } => {
                let failure = failure(exit.status, exit_codes);
                let state = if failure.is_some() {
                    EndState::Failed
                } else {
                    EndState::Completed
                };
                Self {
                    state,
                    reason: failure,
                    background,
                    has_findings: matches!(exit.status, ExitStatus::Code(code)
                        if exit_codes.meaning(code) == Some(&ExitMeaning::Findings)),
                    ..Self::completed()
                }
                .with_report(Some(exit))
            }
            RunEnd::Stopped { why, exit } => Self::stopped(&why).with_report(exit),
            RunEnd::Lost { reason, exit } => {
                Self::without_process(EndState::Interrupted, reason).with_report(exit)
            }
        }
    }

    /// Names the program in the reason if it was not found. The confined process has printed that.
    pub(super) fn naming_missing_program(self, command: &Command, newest_line: Option<&str>) -> Self {
        match &command.program {
            Program::Argv(words) if self.is_not_found() => match words.first() {
                Some(name) if newest_line == Some(&program::not_found_line(name)) => Self {
                    reason: Some(format!("exit code {NOT_FOUND}: `{name}` was not found")),
                    ..self
                },
                _ => self,
            },
            _ => self,
        }
    }

    /// Advice after a failure: how to install what is not there, or what the tool file says.
    pub(super) fn failure_hint(&self, command: &Command) -> Option<String> {
        let install = command.install_instructions.clone();
        let install = install.filter(|_| self.is_not_found());
        install.or_else(|| command.failure_hint.clone())
    }

    fn is_not_found(&self) -> bool {
        self.state == EndState::Failed && self.exit == Some(ExitStatus::Code(NOT_FOUND))
    }

    fn with_report(self, report: Option<ExitReport>) -> Self {
        match report {
            None => self,
            Some(ExitReport {
                status,
                cpu,
                peak_memory_bytes,
            }) => Self {
                exit: Some(status),
                cpu: Some(cpu),
                peak_memory_bytes: Some(peak_memory_bytes),
                ..self
            },
        }
    }
}

fn failure(status: ExitStatus, exit_codes: &ExitCodes) -> Option<String> {
    match status {
        ExitStatus::Code(code) => match exit_codes.meaning(code) {
            Some(ExitMeaning::Success | ExitMeaning::Findings) => None,
            Some(ExitMeaning::Failure(meaning)) => Some(format!("exit code {code}: {meaning}")),
            None => Some(format!("exit code {code}")),
        },
        ExitStatus::Signal(signal) => Some(match signal_name(signal) {
            Some(name) => format!("killed by signal {signal} ({name})"),
            None => format!("killed by signal {signal}"),
        }),
    }
}

/// The names of signals that end programs in practice.
fn signal_name(signal: i32) -> Option<&'static str> {
    const NAMES: [(Signal, &str); 14] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    NAMES
        .iter()
        .find(|(named, _)| named.as_raw() == signal)
        .map(|(_, name)| *name)
}

#[cfg(test)]
#[path = "command_result_tests.rs"]
mod tests;
