//! Real processes through the real jail, in every tier this machine has.

use std::{collections::BTreeMap, io::Read, os::fd::OwnedFd, path::Path, time::Duration};

use ahma_core::{
    call::Program,
    jail::{ExitStatus, ProcessEvent},
    sandbox::Tier,
    shell::{Launcher, OutputPipes, Running, Script, Stdio, TierChoice},
};
use tempfile::TempDir;

use crate::launchers::TestLauncher;

const TIERS: [Tier; 3] = [Tier::Full, Tier::Core, Tier::Off];

struct Bench {
    launcher: Launcher,
    scope: TempDir,
    _private: TempDir,
}

impl Bench {
    fn start(tier: Tier) -> Self {
        let TestLauncher {
            launcher,
            scope,
            private,
        } = TestLauncher::start(TierChoice::Only(tier));
        Self {
            launcher,
            scope,
            _private: private,
        }
    }

    async fn run(&self, script: &str) -> (String, Option<ExitStatus>) {
        let running = self.launch(script).await;
        collect(running).await
    }

    async fn launch(&self, script: &str) -> Running {
        self.launch_with(script, Stdio::Merged).await
    }

    async fn launch_with(&self, script: &str, stdio: Stdio) -> Running {
        let script = Script {
            program: Program::Script(script.to_owned()),
            directory: self.scope.path().to_owned(),
            environment: BTreeMap::new(),
            stdio,
        };
        self.launcher.launch(script).await.unwrap()
    }
}

async fn read_all(fd: OwnedFd) -> String {
    tokio::task::spawn_blocking(move || {
        rustix::io::ioctl_fionbio(&fd, false).unwrap();
        let mut bytes = Vec::new();
        // A terminal ends in EIO.
        let _ = std::fs::File::from(fd).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
    .await
    .unwrap()
}

async fn collect(mut running: Running) -> (String, Option<ExitStatus>) {
    let output = match running.output {
        OutputPipes::Merged(fd) => read_all(fd).await,
        OutputPipes::Separate { stdout, stderr } => {
            format!("out:{}err:{}", read_all(stdout).await, read_all(stderr).await)
        }
    };
    let mut status = None;
    loop {
        match running.process.next_event().await {
            ProcessEvent::Exited(report) => status = Some(report.status),
            ProcessEvent::Gone => return (output, status),
            ProcessEvent::Lost { reason } => panic!("lost: {reason}; output: {output}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_behave_as_with_a_shell_of_their_own() {
    for tier in TIERS {
        let bench = Bench::start(tier);
        let exit = |code| Some(ExitStatus::Code(code));
        for (script, output, status) in [
            ("echo hi", "hi\n", exit(0)),
            ("exit 7", "", exit(7)),
            ("cat <<END\nhello\nEND", "hello\n", exit(0)),
            ("echo a # comment", "a\n", exit(0)),
            ("set -e; false; echo no", "", exit(1)),
            ("exec echo hi", "hi\n", exit(0)),
            ("read line; echo \"[$line] $?\"", "[] 1\n", exit(0)),
            ("cd /; pwd", "/\n", exit(0)),
            ("echo out; echo err >&2; echo out", "out\nerr\nout\n", exit(0)),
            ("(sleep 0.2; echo late) & echo now", "now\nlate\n", exit(0)),
            ("kill -KILL $$", "", Some(ExitStatus::Signal(9))),
            ("echo x > f; cat f; rm f", "x\n", exit(0)),
            ("echo gone > /dev/null; echo $?", "0\n", exit(0)),
            // 0, 1, 2 and the one of ls itself.
            ("ls /proc/self/fd | wc -l", "4\n", exit(0)),
            ("mktemp >/dev/null && echo ok", "ok\n", exit(0)),
        ] {
            assert_eq!(
                bench.run(script).await,
                (output.to_owned(), status),
                "{tier:?}: {script}"
            );
        }
        bench.launcher.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_self_test_proves_every_tier_with_a_wall() {
    for tier in [Tier::Full, Tier::Core] {
        let bench = Bench::start(tier);
        let probes = ahma_core::shell::prove(&bench.launcher).await.unwrap();
        assert!(probes.len() >= 9, "{probes:?}");
        assert!(probes.iter().all(|probe| probe.contained), "{probes:?}");
        bench.launcher.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn terminals_and_separate_streams_work() {
    for tier in TIERS {
        let bench = Bench::start(tier);
        let separate = bench.launch_with("echo a; echo b >&2", Stdio::Separate).await;
        assert_eq!(collect(separate).await.0, "out:a\nerr:b\n", "{tier:?}");
        let terminal = bench
            .launch_with("test -t 1 && test -t 2 && echo terminal", Stdio::Pty)
            .await;
        assert_eq!(collect(terminal).await.0, "terminal\r\n", "{tier:?}");
        bench.launcher.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_leaves_nothing() {
    for tier in TIERS {
        let bench = Bench::start(tier);
        for (number, script) in [
            "sleep 1000 & sleep 1000",
            "setsid sleep 1000 & setsid -f sleep 1000; sleep 1000",
            "trap '' TERM; nohup sleep 1000 & while :; do sleep 0.1; done",
            "(exec >/dev/null 2>&1 </dev/null; (trap '' TERM HUP INT; while :; do sleep 0.05; done) & )\nsleep 1000",
            "f() { sleep 0.01; f & }; f; sleep 1000",
        ]
        .into_iter()
        .enumerate()
        {
            let marker = format!("ahma-test-{}-{tier:?}-{number}", std::process::id());
            let script = format!("export MARK={marker}\necho ready\n{script}");
            let mut running = bench.launch(&script).await;
            let OutputPipes::Merged(output) = running.output else { panic!("merged") };
            wait_readable(&output);
            running.process.stop(Duration::from_millis(100));
            loop {
                match running.process.next_event().await {
                    ProcessEvent::Exited(_) => {}
                    ProcessEvent::Gone => break,
                    ProcessEvent::Lost { reason } => panic!("{tier:?}: {script}: {reason}"),
                }
            }
            assert_eq!(marked(&marker), Vec::<i32>::new(), "{tier:?}: {script}");
        }
        bench.launcher.shutdown().await;
    }
}

fn wait_readable(fd: &OwnedFd) {
    let mut fds = [rustix::event::PollFd::new(fd, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut fds, None).unwrap();
}

/// Processes on this machine with the variable `MARK=marker`.
fn marked(marker: &str) -> Vec<i32> {
    let needle = format!("MARK={marker}");
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            std::fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).is_ok_and(|environ| {
                environ
                    .split(|byte| *byte == 0)
                    .any(|word| word == needle.as_bytes())
            })
        })
        .collect()
}
