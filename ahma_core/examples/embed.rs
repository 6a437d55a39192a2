//! Runs shell commands through the engine, with no MCP and no HTTP.
//!
//! ```text
//! cargo run -p ahma_core --no-default-features --example embed -- 'echo hello' 'seq 5 | tail -1' 'ls /root'
//! ```
//!
//! The commands run at the same time, confined to the current directory. The program prints each outcome as it comes.

use std::{collections::BTreeMap, env, io, io::Write, path::PathBuf, process::ExitCode, time::Duration};

use ahma_core::{
    call::{Command, CommandPlan, ExecutionMode, Lifetime, Program, Work},
    jail,
    operation::{Engine, EngineSettings, Outcome},
    sandbox::{Host, Network, Platform, SandboxSettings, Toolchains, assemble},
    shell::{Launcher, LauncherSettings, PoolSettings, SeatbeltSettings, TierChoice},
};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failure> {
    // The helper that starts commands is this same program in another role, so this comes before everything else.
    if let Some(code) = jail::run_if_asked() {
        return Ok(code);
    }
    let commands: Vec<String> = env::args().skip(1).collect();
    let scope = env::current_dir()?;
    let private = tempfile::tempdir()?;
    std::fs::create_dir(private.path().join("tmp"))?;
    let launcher = launcher(scope.clone(), private.path().to_owned())?;

    let runtime = tokio::runtime::Runtime::new()?;
    let failures = runtime.block_on(async {
        tokio::spawn(launcher.clone().keep_pools_filled());
        let engine = Engine::new(
            launcher.clone(),
            EngineSettings::new(private.path().join("state")),
        );
        let failures = run_all(&engine, commands, &scope).await;
        engine.shutdown().await;
        launcher.shutdown().await;
        failures
    })?;
    Ok(if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Starts the jail with the strongest sandbox this machine has.
fn launcher(scope: PathBuf, private: PathBuf) -> Result<Launcher, Failure> {
    let variables: BTreeMap<String, String> = env::vars().collect();
    let host = Host {
        platform: Platform::HERE,
        home: variables.get("HOME").map(PathBuf::from),
        path: variables.get("PATH").cloned().unwrap_or_default(),
        variables: variables.clone(),
    };
    let sandbox = SandboxSettings {
        scope,
        private: private.clone(),
        network: Network::Off,
        allow_read: Vec::new(),
        allow_write: Vec::new(),
        allow_tmp: false,
        toolchains: Toolchains::Auto,
        trust_workspace_config: false,
        tools_dir: ".ahma/tools".into(),
        also_protected: Vec::new(),
    };
    Ok(Launcher::start(LauncherSettings {
        helper: "/proc/self/exe".into(),
        policy: assemble(&sandbox, &host)?,
        tier: TierChoice::Highest,
        proven: None,
        shell: "/bin/sh".into(),
        variables,
        pass_variables: Vec::new(),
        pool: PoolSettings::default(),
        max_processes: 1024,
        max_file_bytes: 1 << 30,
        quarantine: private.join("quarantine"),
        seatbelt: SeatbeltSettings::default(),
    })?)
}

/// Runs all commands at once; says how many did not complete.
async fn run_all(engine: &Engine, commands: Vec<String>, scope: &std::path::Path) -> io::Result<usize> {
    let operations: Vec<_> = commands
        .into_iter()
        .map(|text| {
            engine.start(CommandPlan {
                tool: "shell".into(),
                work: Work::Command(Command::new(Program::Script(text))),
                mode: ExecutionMode::Synchronous,
                timeout: Duration::from_secs(60),
                lifetime: Lifetime::Finite,
                directory: scope.to_owned(),
            })
        })
        .collect();
    let mut failures = 0;
    for operation in operations {
        let outcome = operation.outcome().await;
        failures += usize::from(!outcome.is_success());
        print(&outcome)?;
    }
    Ok(failures)
}

fn print(outcome: &Outcome) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let reason = outcome
        .reason
        .as_deref()
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    writeln!(
        stdout,
        "{}: {}{reason} in {:.1?}",
        outcome.id, outcome.state, outcome.duration
    )?;
    stdout.write_all(outcome.output.text.as_bytes())
}
