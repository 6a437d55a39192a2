//! Proof at start-up: escapes are tried inside a real jail and judged from here.
//!
//! The script runs as any command does, through the same shells and the same wall. What counts is not what it says but
//! what the server finds afterwards: a file that changed, a secret that came out, a signal or a connection that arrived.

use std::{
    io,
    net::TcpListener,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    signal::unix::{SignalKind, signal},
};

use super::{LaunchError, Launcher, OutputPipes, Running, Script, Stdio};
use crate::{
    call::Program,
    jail::ProcessEvent,
    sandbox::{Network, Probe, Tier},
};

/// Why nothing was proven.
#[derive(Debug, thiserror::Error)]
pub enum SelfTestError {
    #[error("the self-test of the sandbox could not be run")]
    Setup(#[from] io::Error),
    #[error("the self-test of the sandbox could not be started")]
    Launch(#[from] LaunchError),
    #[error("commands do not run inside the sandbox: {output}")]
    NothingRuns { output: String },
    #[error("the sandbox leaks: {}", what.join(", "))]
    Leaks { what: Vec<&'static str> },
}

/// Tries to get out. Any success is an error.
pub async fn prove(launcher: &Launcher) -> Result<Vec<Probe>, SelfTestError> {
    if launcher.tier() == Tier::Off {
        return Ok(Vec::new());
    }
    let outside = Outside::prepare(&launcher.policy().private.join("probe"), launcher)?;
    let script = Script {
        program: Program::Script(outside.script()),
        directory: launcher.policy().scope.clone(),
        environment: Default::default(),
        stdio: Stdio::Merged,
    };
    let output = output_of(launcher.launch(script).await?).await?;
    if !output.contains("probe ran") {
        return Err(SelfTestError::NothingRuns { output });
    }
    let probes = outside.judge(&output)?;
    let what: Vec<_> = probes
        .iter()
        .filter(|probe| !probe.contained)
        .map(|probe| probe.what)
        .collect();
    if what.is_empty() {
        Ok(probes)
    } else {
        Err(SelfTestError::Leaks { what })
    }
}

/// What the script is set upon: files in a directory that no rule opens, a listening port, this process.
struct Outside {
    directory: std::path::PathBuf,
    secret: String,
    listener: Option<TcpListener>,
    signalled: Arc<AtomicBool>,
    _listening: tokio::task::JoinHandle<()>,
}

impl Outside {
    fn prepare(directory: &Path, launcher: &Launcher) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let secret = format!("{:032x}", rand::random::<u128>());
        std::fs::write(directory.join("secret"), &secret)?;
        std::fs::write(directory.join("victim"), "untouched")?;
        let listener = match launcher.policy().network {
            Network::Open => None,
            Network::Loopback | Network::Off | Network::Ports(_) => Some(TcpListener::bind("127.0.0.1:0")?),
        };
        if let Some(listener) = &listener {
            listener.set_nonblocking(true)?;
        }
        let signalled = Arc::new(AtomicBool::new(false));
        // Urgent data is ignored by default, so a signal that arrives does no harm.
        let mut arrivals = signal(SignalKind::from_raw(libc::SIGURG))?;
        let flag = Arc::clone(&signalled);
        let listening = tokio::spawn(async move {
            while arrivals.recv().await.is_some() {
                flag.store(true, Ordering::Relaxed);
            }
        });
        Ok(Self {
            directory: directory.to_owned(),
            secret,
            listener,
            signalled,
            _listening: listening,
        })
    }

    /// Plain POSIX shell, almost without starting programs: it runs at every start of the server.
    fn script(&self) -> String {
        let directory = shlex::try_quote(&self.directory.to_string_lossy())
            .map(Into::into)
            .unwrap_or_default();
        let directory: String = directory;
        let pid = std::process::id();
        let port = self
            .listener
            .as_ref()
            .and_then(|listener| listener.local_addr().ok())
            .map_or(0, |a| a.port());
        format!(
            "d={directory}; exec 2>/dev/null\n\
             read -r line < $d/secret && echo \"read $line\"\n\
             echo x > $d/written\n\
             printf '' > $d/victim\n\
             rm -f $d/victim\n\
             kill -URG {pid}\n\
             read -r line < /proc/{pid}/environ; test -n \"$line\" && echo environ-read\n\
             read -r line < /proc/{pid}/maps && echo maps-read\n\
             for f in /proc/{pid}/fd/*; do test -e \"$f\" && echo fd-seen; done\n\
             printf '' > /etc/ahma-probe && rm -f /etc/ahma-probe && echo etc-written\n\
             test {port} = 0 || ( exec 3<>/dev/tcp/127.0.0.1/{port} )\n\
             echo probe ran\n"
        )
    }

    fn judge(&self, output: &str) -> io::Result<Vec<Probe>> {
        let victim = std::fs::read_to_string(self.directory.join("victim")).ok();
        let said = |word: &str| output.lines().any(|line| line.trim() == word);
        let mut probes = vec![
            Probe {
                what: "read a file outside",
                contained: !output.contains(&self.secret),
            },
            Probe {
                what: "write a file outside",
                contained: !self.directory.join("written").exists(),
            },
            Probe {
                what: "truncate a file outside",
                contained: victim.as_deref() != Some(""),
            },
            Probe {
                what: "remove a file outside",
                contained: victim.is_some(),
            },
            Probe {
                what: "write to /etc",
                contained: !said("etc-written"),
            },
            Probe {
                what: "signal the server",
                contained: !self.signalled.load(Ordering::Relaxed),
            },
            Probe {
                what: "read the server's environment",
                contained: !said("environ-read"),
            },
            Probe {
                what: "read the server's memory map",
                contained: !said("maps-read"),
            },
            Probe {
                what: "look at the server's descriptors",
                contained: !said("fd-seen"),
            },
        ];
        if let Some(listener) = &self.listener {
            let contained = listener.accept().is_err();
            probes.push(Probe {
                what: "connect over the network",
                contained,
            });
        }
        std::fs::remove_dir_all(&self.directory)?;
        Ok(probes)
    }
}

async fn output_of(running: Running) -> io::Result<String> {
    let Running {
        output,
        mut process,
        tripwire,
    } = running;
    let mut bytes = Vec::new();
    if let OutputPipes::Merged(fd) = output {
        pipe::Receiver::from_owned_fd(fd)?.read_to_end(&mut bytes).await?;
    }
    while let ProcessEvent::Exited(_) = process.next_event().await {}
    tripwire.check().await;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
