//! Finds out whether the program behind a tool is there, by running its availability check in the sandbox.

use std::{collections::BTreeMap, path::Path, time::Duration};

use tokio::{io::AsyncReadExt as _, net::unix::pipe};

use crate::{
    call::Program,
    jail::{ExitStatus, ProcessEvent},
    mtdf::Probe,
    shell::{Launcher, OutputPipes, Script, Stdio},
};

/// A check that takes longer has something wrong with it.
pub(super) const LONGEST_PROBE: Duration = Duration::from_secs(10);

/// Why a tool is not available; `Ok` if it is.
pub(super) type Answer = Result<(), String>;

pub(super) async fn ask(launcher: &Launcher, scope: &Path, probe: &Probe) -> Answer {
    match tokio::time::timeout(LONGEST_PROBE, run(launcher, scope, probe)).await {
        // Dropping the run has stopped the processes.
        Err(_) => Err(format!(
            "{} did not answer within {} s",
            shown(probe),
            LONGEST_PROBE.as_secs()
        )),
        Ok(Err(reason)) => Err(format!("{} {reason}", shown(probe))),
        Ok(Ok(())) => Ok(()),
    }
}

async fn run(launcher: &Launcher, scope: &Path, probe: &Probe) -> Answer {
    let script = Script {
        program: Program::Argv(probe.argv.clone()),
        directory: probe
            .directory
            .as_ref()
            .map_or_else(|| scope.to_owned(), |directory| scope.join(directory)),
        environment: BTreeMap::new(),
        stdio: Stdio::Merged,
    };
    let mut running = launcher
        .launch(script)
        .await
        .map_err(|error| format!("could not be started: {error}"))?;
    let output = async {
        let OutputPipes::Merged(fd) = running.output else {
            return;
        };
        // Read to the end and thrown away: a closed pipe would end some programs early, and not well.
        if let Ok(mut output) = pipe::Receiver::from_owned_fd(fd) {
            let mut chunk = [0; 4096];
            while matches!(output.read(&mut chunk).await, Ok(1..)) {}
        }
    };
    let status = async {
        match running.process.next_event().await {
            ProcessEvent::Exited(report) => Some(report.status),
            ProcessEvent::Gone | ProcessEvent::Lost { .. } => None,
        }
    };
    let status = tokio::select! {
        biased;
        status = status => status,
        () = async { output.await; std::future::pending().await } => None,
    };
    match status {
        Some(ExitStatus::Code(code)) if probe.success_codes.contains(&code) => Ok(()),
        Some(ExitStatus::Code(NOT_FOUND)) => Err("was not found".to_owned()),
        Some(ExitStatus::Code(code)) => Err(format!("ended with exit code {code}")),
        Some(ExitStatus::Signal(signal)) => Err(format!("was ended by signal {signal}")),
        None => Err("was lost".to_owned()),
    }
}

/// What shells answer for a command that does not exist.
const NOT_FOUND: i32 = 127;

fn shown(probe: &Probe) -> String {
    format!("`{}`", probe.argv.join(" "))
}
