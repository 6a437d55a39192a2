//! The messages between server, jail and supervisors. [`wire_packets`](super::wire_packets) carries them on Linux, and
//! `wire_stream` elsewhere.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub(crate) use super::system::{pair, receive, receive_short, send};
use crate::sandbox::{Policy, Tier};

/// Sent to a new jail, once.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Configure {
    pub(crate) policy: Policy,
    pub(crate) tier: Tier,
    /// Try first what every supervisor will do.
    pub(crate) rehearse: bool,
    pub(crate) shell: PathBuf,
    /// The whole environment of every command.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) max_processes: u32,
    pub(crate) max_file_bytes: u64,
    /// Of the sender.
    pub(crate) version: String,
    /// If Seatbelt confines commands, or there is no sandbox on macOS.
    pub(crate) seatbelt: Option<SeatbeltConfigure>,
}

/// Settings besides the policy that Seatbelt needs to start commands.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SeatbeltConfigure {
    pub(crate) sandbox_exec: PathBuf,
    pub(crate) profile: String,
    /// This program.
    pub(crate) program: PathBuf,
}

/// The jail's answer to [`Configure`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Configured {
    Ready {
        landlock_abi: i32,
    },
    /// This tier does not work here.
    Refused {
        reason: String,
    },
}

/// Asks the jail for one confined process. Descriptors: control socket, script pipe, the file of the script if there is one,
/// then the output pipes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) kind: ProcessKind,
    pub(crate) output: Output,
    /// The script comes in a file, and the pipe only wakes.
    pub(crate) script_file: bool,
}

/// Kind of an idle process, which decides what is written to its pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProcessKind {
    /// A shell that reads a script.
    Shell,
    /// Our own code, which becomes the program that an [`ExecRequest`](super::program) names.
    Program,
}

/// Destination of the output.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Output {
    Merged,
    Separate,
    Pty,
}

/// From the server to a supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Instruction {
    /// The signal now, TERM after half the grace, KILL after the other half, until nothing is left.
    Stop { signal: i32, grace_ms: u64 },
}

/// From a supervisor to the server, in this order: perhaps `Terminal`, then `Idle`, perhaps `Exited`, then `Gone`; or
/// `Failed` and nothing more. `Supervisor` comes from the jail, at any time.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The supervisor's process id as the jail and the server see it.
    Supervisor { pid: i32 },
    /// A pseudo-terminal's master is attached.
    Terminal,
    /// The process exists and waits for what to run. The jail is needed no more.
    Idle,
    /// The command itself ended; something that it started still runs.
    Exited(Exited),
    /// Nothing is left. Holds the command's end if that was not reported before.
    Gone { exited: Option<Exited> },
    /// No process could be started.
    Failed { reason: String },
}

/// The end of a command.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exited {
    /// As `wait4` gave it.
    pub(crate) wait_status: i32,
    pub(crate) cpu_us: u64,
    pub(crate) peak_memory_kib: u64,
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
