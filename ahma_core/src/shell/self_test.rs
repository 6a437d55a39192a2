//! Proof at start-up: escapes are tried inside a real jail and judged from here.
//!
//! The script runs as any command does, through the same shells and the same sandbox. What counts is not what it says but
//! what the server finds afterwards: a file that changed, a secret that came out, a signal or a connection that arrived.

use std::{
    fs::Permissions,
    future::poll_fn,
    io,
    net::TcpListener,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    task::Poll,
    time::Duration,
};

use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    signal::unix::{Signal, SignalKind, signal},
};

use super::{LaunchError, Launcher, OutputPipes, RunningProcess, Script, Stdio};
use crate::{
    call::Program,
    jail::ProcessEvent,
    sandbox::{Network, Platform, Probe, ProbeOutcome, Tier},
};

/// Reason for which nothing was proven.
#[derive(Debug, thiserror::Error)]
pub enum SelfTestError {
    #[error("the self-test of the sandbox could not be run")]
    Setup(#[from] io::Error),
    #[error("the self-test of the sandbox could not be started")]
    Launch(#[from] LaunchError),
    #[error("{shell} does not run scripts inside the sandbox: {}", said(output))]
    NothingRuns { shell: PathBuf, output: String },
    #[error("the sandbox leaks: {}", what.join(", "))]
    Leaks { what: Vec<&'static str> },
}

/// Tries to get out. Any success is an error.
pub async fn prove(launcher: &Launcher) -> Result<Vec<Probe>, SelfTestError> {
    if launcher.tier() == Tier::Off {
        return Ok(Vec::new());
    }
    let probes = probe(launcher).await?;
    let what: Vec<_> = probes
        .iter()
        .filter(|probe| probe.verdict == ProbeOutcome::Escaped)
        .map(|probe| probe.what)
        .collect();
    if what.is_empty() {
        Ok(probes)
    } else {
        Err(SelfTestError::Leaks { what })
    }
}

fn said(output: &str) -> &str {
    match output.trim() {
        "" => "it printed nothing",
        printed => printed,
    }
}

/// Tries to escape, in any tier, and returns what came of it.
pub async fn probe(launcher: &Launcher) -> Result<Vec<Probe>, SelfTestError> {
    let mut outside = Outside::prepare(&launcher.policy().private.join("probe"), launcher)?;
    let script = Script {
        stdin: None,
        program: Program::Script(outside.script()),
        directory: launcher.policy().scope.clone(),
        environment: Default::default(),
        path_dirs: Vec::new(),
        stdio: Stdio::Merged,
    };
    let output = output_of(launcher.launch(script).await?).await?;
    if !output.contains("probe ran") {
        return Err(SelfTestError::NothingRuns {
            shell: launcher.shell().to_owned(),
            output,
        });
    }
    let signalled = outside.was_signalled().await?;
    Ok(outside.judge(&output, signalled)?)
}

/// Targets of the script: files in a directory that no rule opens, a listening port, this process.
struct Outside {
    directory: PathBuf,
    secret: String,
    /// Other names of the file with the secret.
    aliases: Vec<PathBuf>,
    listener: Option<TcpListener>,
    /// `/etc` is not opened to commands.
    etc_is_closed: bool,
    tier: Tier,
    platform: Platform,
    signals: Signal,
}

impl Outside {
    fn prepare(directory: &Path, launcher: &Launcher) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let secret = format!("{:032x}", rand::random::<u128>());
        // A whole line, or the shell's `read` fails although it has read it.
        std::fs::write(directory.join("secret"), format!("{secret}\n"))?;
        for name in ["truncated", "removed", "mode", "moved", "linked"] {
            std::fs::write(directory.join(name), UNTOUCHED)?;
        }
        std::fs::set_permissions(directory.join("mode"), Permissions::from_mode(PRIVATE_MODE))?;
        std::fs::create_dir_all(directory.join("elsewhere"))?;
        let listener = match launcher.policy().network {
            Network::Open => None,
            // It is this machine's own.
            Network::Loopback if launcher.tier() == Tier::Seatbelt => None,
            Network::Loopback | Network::Off | Network::Ports(_) => Some(TcpListener::bind("127.0.0.1:0")?),
        };
        if let Some(listener) = &listener {
            listener.set_nonblocking(true)?;
        }
        let etc_is_closed = !launcher
            .policy()
            .writable()
            .any(|open| Path::new("/etc").starts_with(open));
        Ok(Self {
            directory: directory.to_owned(),
            secret,
            aliases: aliases(&directory.join("secret"), Platform::HERE)?,
            listener,
            etc_is_closed,
            tier: launcher.tier(),
            platform: Platform::HERE,
            // Urgent data is ignored by default, so a signal that arrives does no harm.
            signals: signal(SignalKind::from_raw(libc::SIGURG))?,
        })
    }

    /// Plain POSIX shell, almost without starting programs: it runs at every start of the server. Only bash can connect
    /// by itself; another shell asks it to, if it is installed.
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
        let try_etc = self.etc_is_closed;
        let look = self.looks_at_server(pid);
        let aliases: String = self
            .aliases
            .iter()
            .filter_map(|alias| Some(read_line(&shlex::try_quote(alias.to_str()?).ok()?)))
            .collect();
        let read = read_line("$d/secret");
        // Seatbelt judges a file by the name that is used.
        let link = match self.tier {
            Tier::Seatbelt => {
                "ln $d/linked $TMPDIR/linked && echo x > $TMPDIR/linked; rm -f $TMPDIR/linked\n"
            }
            Tier::Full | Tier::Core | Tier::Off => "",
        };
        format!(
            "d={directory}; exec 2>/dev/null\n\
             {read}{aliases}\
             echo x > $d/written\n\
             printf '' > $d/truncated\n\
             rm -f $d/removed\n\
             chmod 644 $d/mode\n\
             mv $d/moved $d/elsewhere/\n\
             kill -URG {pid}\n\
             {link}\
             {look}\
             {try_etc} && printf '' > /etc/ahma-probe && rm -f /etc/ahma-probe && echo etc-written\n\
             connect='exec 3<>/dev/tcp/127.0.0.1/{port}'\n\
             if test {port} = 0; then :\n\
             elif test -n \"$BASH_VERSION\"; then echo network-tried; ( eval \"$connect\" )\n\
             elif bash -c :; then echo network-tried; bash -c \"$connect\"\n\
             fi\n\
             echo probe ran\n"
        )
    }

    /// Lines of the script that look into this process.
    fn looks_at_server(&self, pid: u32) -> String {
        match self.platform {
            Platform::Linux => format!(
                "line=; read -r line < /proc/{pid}/environ; test -n \"$line\" && echo environ-read\n\
                 line=; read -r line < /proc/{pid}/maps; test -n \"$line\" && echo maps-read\n\
                 for f in /proc/{pid}/fd/*; do test -e \"$f\" && echo fd-seen; done\n"
            ),
            Platform::MacOs => {
                format!("case \"$(ps -Eww -o command= -p {pid})\" in *HOME=*) echo environ-read ;; esac\n")
            }
        }
    }

    /// True if the script's signal has arrived. The runtime hands out all signals that are there, so when a later one of
    /// our own is, the script's would be too.
    async fn was_signalled(&mut self) -> io::Result<bool> {
        let mut own = signal(SignalKind::window_change())?;
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::WINCH)?;
        // The process that started us may have blocked signals; then neither comes.
        let _ = tokio::time::timeout(SIGNAL_TIMEOUT, own.recv()).await;
        Ok(poll_fn(|cx| Poll::Ready(self.signals.poll_recv(cx).is_ready())).await)
    }

    fn judge(&self, output: &str, signalled: bool) -> io::Result<Vec<Probe>> {
        let said = |word: &str| output.lines().any(|line| line.trim() == word);
        let content = |name: &str| std::fs::read_to_string(self.directory.join(name)).ok();
        let mode = std::fs::metadata(self.directory.join("mode"))?
            .permissions()
            .mode()
            & 0o777;
        let mut probes: Vec<Probe> = [
            ("read a file outside", output.contains(&self.secret)),
            ("write a file outside", content("written").is_some()),
            (
                "truncate a file outside",
                content("truncated").as_deref() != Some(UNTOUCHED),
            ),
            ("remove a file outside", content("removed").is_none()),
            ("change the mode of a file outside", mode != PRIVATE_MODE),
            (
                "move a file outside to another directory",
                content("moved").is_none(),
            ),
            ("signal the server", signalled),
            ("read the server's environment", said("environ-read")),
        ]
        .into_iter()
        .chain(
            (self.platform == Platform::Linux).then(|| ("read the server's memory map", said("maps-read"))),
        )
        .chain(
            (self.platform == Platform::Linux).then(|| ("look at the server's descriptors", said("fd-seen"))),
        )
        .chain((self.tier == Tier::Seatbelt).then(|| {
            let is_changed = content("linked").as_deref() != Some(UNTOUCHED);
            ("write to a file outside by a hard link", is_changed)
        }))
        .map(|(what, escaped)| Probe {
            what,
            verdict: verdict(escaped),
        })
        .collect();
        probes.push(Probe {
            what: "write to /etc",
            verdict: if self.etc_is_closed {
                verdict(said("etc-written"))
            } else {
                ProbeOutcome::NotTried
            },
        });
        if let Some(listener) = &self.listener {
            let tried = said("network-tried");
            let escaped = listener.accept().is_ok();
            probes.push(Probe {
                what: "connect over the network",
                verdict: if tried {
                    verdict(escaped)
                } else {
                    ProbeOutcome::NotTried
                },
            });
        }
        std::fs::remove_dir_all(&self.directory)?;
        Ok(probes)
    }
}

fn read_line(name: &str) -> String {
    format!("line=; read -r line < {name}; echo \"read $line\"\n")
}

/// Names that lead to a file on macOS and are not its own: in other letters, through the volume, and by number.
fn aliases(file: &Path, platform: Platform) -> io::Result<Vec<PathBuf>> {
    if platform != Platform::MacOs {
        return Ok(Vec::new());
    }
    let found = std::fs::metadata(file)?;
    Ok(vec![
        file.to_string_lossy().to_uppercase().into(),
        format!("/System/Volumes/Data{}", file.display()).into(),
        format!("/.vol/{}/{}", found.dev(), found.ino()).into(),
    ])
}

const UNTOUCHED: &str = "untouched";

const PRIVATE_MODE: u32 = 0o600;

/// A signal to ourselves takes microseconds.
const SIGNAL_TIMEOUT: Duration = Duration::from_millis(200);

fn verdict(escaped: bool) -> ProbeOutcome {
    if escaped {
        ProbeOutcome::Escaped
    } else {
        ProbeOutcome::Contained
    }
}

async fn output_of(running: RunningProcess) -> io::Result<String> {
    let RunningProcess {
        output,
        mut process,
        guard_check,
    } = running;
    let mut bytes = Vec::new();
    if let OutputPipes::Merged(fd) = output {
        pipe::Receiver::from_owned_fd(fd)?.read_to_end(&mut bytes).await?;
    }
    while let ProcessEvent::Exited(_) = process.next_event().await {}
    guard_check.finish().await;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
