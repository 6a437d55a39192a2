//! The final report of a run and its exit code.

use std::process::ExitCode;

use super::{
    display::Display,
    follow::{Followed, StoppedBy},
};
use crate::{
    app::exit::{Exit, signalled},
    catalog::Tool,
    jail::ExitStatus,
    operation::{EndState, LossCause, Outcome},
    toolbox::Unavailable,
};

/// The exit code of `timeout` in coreutils.
const TIMED_OUT: u8 = 124;

const SIGPIPE: i32 = 13;

/// Writes to stderr what stdout does not show, and returns the exit code.
pub(super) fn report(
    tool: &Tool,
    followed: &Followed,
    missing: Option<&Unavailable>,
    display: &mut Display,
) -> ExitCode {
    let outcome = &*followed.outcome;
    let code = code(outcome, followed.stopped_by);
    for notice in &outcome.notices {
        display.line(&format!("warning: {notice}"));
    }
    if let Some(loss) = &outcome.lost {
        let why = match &loss.cause {
            LossCause::Quota => "there was too much of it".to_owned(),
            LossCause::Storage(why) => why.clone(),
        };
        display.line(&format!(
            "warning: {} bytes of output are lost: {why}",
            loss.bytes
        ));
    }
    let seconds = outcome.duration.as_secs_f64();
    match (&outcome.reason, followed.stopped_by) {
        // The reader has seen enough.
        (_, Some(StoppedBy::ClosedOutput)) => {}
        (_, Some(StoppedBy::FailedOutput(kind))) => {
            display.line(&format!("error: cannot write to stdout: {kind}"));
        }
        (_, Some(StoppedBy::Signal(_))) => {
            display.line(&format!("{} was stopped after {seconds:.1} s", tool.name))
        }
        (Some(reason), None) if !outcome.is_success() => {
            display.line(&format!(
                "error: {} {}: {reason}",
                tool.name,
                words_of(outcome.state)
            ));
        }
        _ if display.is_terminal() => display.line(&format!("{} completed in {seconds:.1} s", tool.name)),
        _ => {}
    }
    if let Some(missing) = missing {
        display.line(&format!("{} is not available: {}", missing.tool, missing.reason));
    }
    let instructions = tool.install_instructions.as_deref();
    let instructions = instructions.filter(|_| missing.is_some());
    // Advice after a success is for people, not for programs.
    let hint = outcome.hint.as_deref();
    let hint = hint.filter(|_| display.is_terminal() || !outcome.is_success());
    let hint = hint.filter(|hint| Some(*hint) != instructions);
    let hints = [outcome.sandbox_hint.as_deref(), instructions, hint];
    for hint in hints.into_iter().flatten() {
        display.line(&format!("hint: {hint}"));
    }
    code.into()
}

fn words_of(state: EndState) -> &'static str {
    match state {
        EndState::Completed => "completed",
        EndState::Failed => "failed",
        EndState::Cancelled => "was cancelled",
        EndState::TimedOut => "timed out",
        EndState::Interrupted => "was lost",
    }
}

fn code(outcome: &Outcome, stopped_by: Option<StoppedBy>) -> u8 {
    match (outcome.state, stopped_by, outcome.exit) {
        (EndState::Cancelled, Some(StoppedBy::Signal(kind)), _) => signalled(kind.as_raw_value()),
        (EndState::Cancelled, Some(StoppedBy::ClosedOutput), _) => signalled(SIGPIPE),
        (_, Some(StoppedBy::FailedOutput(_)), _) => Exit::UserError as u8,
        (EndState::TimedOut, _, _) => TIMED_OUT,
        (EndState::Completed | EndState::Failed, _, Some(ExitStatus::Signal(signal))) => signalled(signal),
        // Only the low byte of a code reaches anyone.
        (EndState::Completed, _, Some(ExitStatus::Code(code))) => code as u8,
        (EndState::Failed, _, Some(ExitStatus::Code(code))) if code as u8 != 0 => code as u8,
        (EndState::Failed, _, Some(ExitStatus::Code(_))) => Exit::UserError as u8,
        (EndState::Completed, _, None) => Exit::Success as u8,
        (EndState::Failed | EndState::Cancelled | EndState::Interrupted, ..) => Exit::Internal as u8,
    }
}
