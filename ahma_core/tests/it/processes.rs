//! Real processes through the real jail, in every tier this machine has.

use std::{
    collections::BTreeMap,
    io::Read,
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    path::Path,
    time::Duration,
};

use ahma_core::{
    call::Program,
    jail::{ExitStatus, ProcessEvent},
    sandbox::{Network, Probe, ProbeOutcome, Tier},
    shell::{Launcher, OutputPipes, RunningProcess, Script, Stdio, TierChoice},
};
use tempfile::TempDir;

use crate::{
    escape,
    launchers::{self, TestLauncher},
};

const TIERS: [Tier; 4] = [Tier::Full, Tier::Core, Tier::Seatbelt, Tier::Off];

/// Those that the kernel is new enough for.
pub(crate) fn on_this_kernel(tiers: &[Tier]) -> impl Iterator<Item = Tier> {
    // The stand-in for macOS's sandbox keeps signals away as the core tier does.
    let works = |tier: &Tier| matches!(tier, Tier::Full | Tier::Off) || escape::core_tier_works();
    tiers.iter().copied().filter(works)
}

pub(crate) struct Bench {
    pub(crate) launcher: Launcher,
    pub(crate) scope: TempDir,
    _private: TempDir,
}

impl Bench {
    pub(crate) fn start(tier: Tier) -> Self {
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

    pub(crate) fn with_max_processes(tier: Tier, max_processes: u32) -> Self {
        let (mut settings, scope, _private) = launchers::settings(TierChoice::Only(tier));
        settings.max_processes = max_processes;
        Self {
            launcher: Launcher::start(settings).unwrap(),
            scope,
            _private,
        }
    }

    /// Launches a script whose processes have `MARK=marker` in their environment, and waits until it runs.
    pub(crate) async fn launch_marked(&self, marker: &str, script: &str) -> RunningProcess {
        let running = self
            .launch(&format!("export MARK={marker}\necho ready\n{script}"))
            .await;
        let OutputPipes::Merged(output) = &running.output else {
            panic!("merged")
        };
        wait_readable(output);
        running
    }

    pub(crate) async fn run(&self, script: &str) -> (String, Option<ExitStatus>) {
        let running = self.launch(script).await;
        collect(running).await
    }

    pub(crate) async fn launch(&self, script: &str) -> RunningProcess {
        self.launch_with(script, Stdio::Merged).await
    }

    async fn launch_with(&self, script: &str, stdio: Stdio) -> RunningProcess {
        self.start_program(Program::Script(script.to_owned()), self.scope.path(), stdio)
            .await
    }

    pub(crate) async fn launch_words(&self, words: &[&str], stdio: Stdio) -> RunningProcess {
        let program = Program::Argv(words.iter().map(|word| (*word).to_owned()).collect());
        self.start_program(program, self.scope.path(), stdio).await
    }

    async fn start_program(&self, program: Program, directory: &Path, stdio: Stdio) -> RunningProcess {
        let script = Script {
            stdin: None,
            program,
            directory: directory.to_owned(),
            environment: BTreeMap::from([("VALUE".to_owned(), "it's\n$HOME".to_owned())]),
            path_dirs: Vec::new(),
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

pub(crate) async fn collect(mut running: RunningProcess) -> (String, Option<ExitStatus>) {
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
            // Lines are counted from the text's own first.
            (
                "echo one\nno-such-command",
                "one\nbash: line 2: no-such-command: command not found\n",
                exit(127),
            ),
            (
                "printf '%s ' \"$0\" $# $LINENO \"$BASH_SOURCE\"",
                "bash 0 1  ",
                exit(0),
            ),
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
async fn programs_run_without_a_shell_as_they_would_from_one() {
    for tier in TIERS {
        let bench = Bench::start(tier);
        let file = |name: &str, text: &str, mode| {
            let path = bench.scope.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        file("plain", "echo no", 0o644);
        file("without-interpreter", "echo \"$0 $1\"", 0o755);
        file("with-interpreter", "#!/bin/sh\necho \"$0 $1\"", 0o755);
        let scope = format!("{}\n", bench.scope.path().display());
        let exit = |code| Some(ExitStatus::Code(code));
        for (words, output, status) in [
            (&["echo", "hi"] as &[&str], "hi\n", exit(0)),
            (
                &[
                    "printf", "[%s]", "", "; id", "$(id)", "`id`", "a'b\"c", "\n", "-n", "~", "*", "a\\",
                ],
                "[][; id][$(id)][`id`][a'b\"c][\n][-n][~][*][a\\]",
                exit(0),
            ),
            (&["printenv", "VALUE"], "it's\n$HOME\n", exit(0)),
            (&["printenv", "PWD"], &scope, exit(0)),
            (&["/bin/pwd", "-P"], &scope, exit(0)),
            (&["sh", "-c", "exit 7"], "", exit(7)),
            (&["sh", "-c", "kill -KILL $$"], "", Some(ExitStatus::Signal(9))),
            (&["sh", "-c", "echo a; echo b >&2; echo c"], "a\nb\nc\n", exit(0)),
            (&["ls", "/proc/self/fd"], "0\n1\n2\n3\n", exit(0)),
            (&["cat"], "", exit(0)),
            (&["./with-interpreter", "a"], "./with-interpreter a\n", exit(0)),
            (
                &["./without-interpreter", "a"],
                "./without-interpreter a\n",
                exit(0),
            ),
            (
                &["no-such-program"],
                "ahma_mcp: no-such-program: command not found\n",
                exit(127),
            ),
            (
                &["./plain"],
                "ahma_mcp: ./plain: Permission denied (os error 13)\n",
                exit(126),
            ),
        ] {
            let found = collect(bench.launch_words(words, Stdio::Merged).await).await;
            assert_eq!(found, (output.to_owned(), status), "{tier:?}: {words:?}");
        }
        let both = ["sh", "-c", "echo a; echo b >&2"];
        let separate = bench.launch_words(&both, Stdio::Separate).await;
        assert_eq!(collect(separate).await.0, "out:a\nerr:b\n", "{tier:?}");
        let terminal = bench.launch_words(&both, Stdio::Pty).await;
        assert_eq!(collect(terminal).await.0, "a\r\nb\r\n", "{tier:?}");
        let nowhere = bench.scope.path().join("nowhere");
        let program = Program::Argv(vec!["pwd".to_owned()]);
        let (output, status) = collect(bench.start_program(program, &nowhere, Stdio::Merged).await).await;
        assert_eq!(status, exit(1), "{tier:?}");
        assert!(
            output.contains("nowhere: No such file or directory"),
            "{tier:?}: {output}"
        );
        bench.launcher.shutdown().await;
    }
}

/// When memory is short the kernel must not begin with those who clear up after a command.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_killed_before_its_supervisor_when_memory_is_short() {
    for tier in [Tier::Full, Tier::Core] {
        let bench = Bench::start(tier);
        let words = [
            "sh",
            "-c",
            "cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj",
        ];
        let (output, _) = collect(bench.launch_words(&words, Stdio::Merged).await).await;
        let scores: Vec<i32> = output.lines().filter_map(|line| line.parse().ok()).collect();
        assert_eq!(scores.len(), 2, "{tier:?}: {output}");
        assert!(scores[0] >= 500 && scores[1] < scores[0], "{tier:?}: {output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_run_behind_the_wall() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let [secret, planted] = [secret, outside.path().join("planted")].map(|path| path.display().to_string());
    for tier in [Tier::Full, Tier::Core] {
        let bench = Bench::start(tier);
        // The first is a warm one, those after it may be cold.
        for words in [
            &["cat", &secret] as &[&str],
            &["touch", &planted],
            &["unshare", "--user", "true"],
            &["mount", "-t", "tmpfs", "none", "."],
        ] {
            let (output, status) = collect(bench.launch_words(words, Stdio::Merged).await).await;
            assert_ne!(status, Some(ExitStatus::Code(0)), "{tier:?}: {words:?}: {output}");
            assert!(!output.contains("not found"), "{tier:?}: {words:?}: {output}");
        }
        assert!(!Path::new(&planted).exists(), "{tier:?}");
        let privileges = [
            "grep",
            "-E",
            "^(CapEff|CapBnd|NoNewPrivs|Seccomp):",
            "/proc/self/status",
        ];
        let (output, _) = collect(bench.launch_words(&privileges, Stdio::Merged).await).await;
        let expected = "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n";
        assert_eq!(output, expected, "{tier:?}");
        bench.launcher.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_self_test_proves_every_tier_with_a_wall_and_trips_without_one() {
    for tier in on_this_kernel(&[Tier::Full, Tier::Core, Tier::Seatbelt]) {
        let bench = Bench::start(tier);
        let probes = ahma_core::shell::prove(&bench.launcher).await.unwrap();
        assert!(probes.len() >= 11, "{probes:?}");
        assert!(
            probes
                .iter()
                .all(|probe| probe.verdict == ProbeOutcome::Contained),
            "{probes:?}"
        );
        bench.launcher.shutdown().await;
    }
    // Not a test of its own: the signal it sends would reach the ones above, too.
    without_a_wall_every_probe_trips().await;
}

/// A probe that nothing can trip proves nothing.
async fn without_a_wall_every_probe_trips() {
    let without_bash = tempfile::tempdir().unwrap();
    for program in ["rm", "chmod", "mv"] {
        let link = without_bash.path().join(program);
        std::os::unix::fs::symlink(format!("/bin/{program}"), link).unwrap();
    }
    let usual = std::env::var("PATH").unwrap();
    let bare = without_bash.path().display().to_string();
    for (shell, path, connection) in [
        ("/bin/bash", &usual, ProbeOutcome::Escaped),
        ("/bin/dash", &usual, ProbeOutcome::Escaped),
        // It has no way to connect, and says so.
        ("/bin/dash", &bare, ProbeOutcome::NotTried),
    ] {
        if !test_support::needs(shell, &["-c", "true"], "apt-get install bash dash") {
            continue;
        }
        let (mut settings, _scope, _private) = launchers::settings(TierChoice::Only(Tier::Off));
        settings.shell = shell.into();
        settings.variables.insert("PATH".to_owned(), path.clone());
        settings.policy.network = Network::Off;
        let launcher = Launcher::start(settings).unwrap();
        let expected = |probe: &Probe| match probe.what {
            "connect over the network" => connection,
            "write to /etc" if !rustix::process::getuid().is_root() => ProbeOutcome::Contained,
            _ => ProbeOutcome::Escaped,
        };
        // On a busy machine the news of a signal may come after the verdict.
        let mut wrong = Vec::new();
        for _ in 0..10 {
            wrong = ahma_core::shell::probe(&launcher).await.unwrap();
            assert_eq!(wrong.len(), 12, "{shell}");
            wrong.retain(|probe| probe.verdict != expected(probe));
            if wrong.is_empty() {
                break;
            }
        }
        assert!(wrong.is_empty(), "{shell} {path}: {wrong:?}");
        launcher.shutdown().await;
    }
}

/// Between the look at the scope and the rules for it, a process that may write its parent makes it a link.
#[test]
fn a_scope_that_has_become_a_link_is_refused() {
    for tier in [Tier::Full, Tier::Core] {
        let (settings, scope, _private) = launchers::settings(TierChoice::Only(tier));
        let scope = scope.path();
        std::fs::rename(scope, scope.with_extension("old")).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), scope).unwrap();
        let error = Launcher::start(settings).unwrap_err().to_string();
        std::fs::remove_file(scope).unwrap();
        std::fs::rename(scope.with_extension("old"), scope).unwrap();
        assert!(error.contains("was replaced"), "{tier:?}: {error}");
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
    for tier in on_this_kernel(&TIERS) {
        let bench = Bench::start(tier);
        for (number, script) in [
            "sleep 1000 & sleep 1000",
            "setsid sleep 1000 & setsid -f sleep 1000; sleep 1000",
            "trap '' TERM; nohup sleep 1000 & while :; do sleep 0.1; done",
            "(exec >/dev/null 2>&1 </dev/null; (trap '' TERM HUP INT; while :; do sleep 0.05; done) & )\nsleep 1000",
            "f() { sleep 0.01; f & }; f; sleep 1000",
            // Each makes calls that the supervisor of the core tier answers, all the time.
            "touch f; for n in 1 2 3 4; do python3 -c 'import os\nwhile True: os.chmod(\"f\", 0o600)' & done; wait",
        ]
        .into_iter()
        .enumerate()
        {
            let marker = format!("ahma-test-{}-{tier:?}-{number}", std::process::id());
            let running = bench.launch_marked(&marker, script).await;
            running.process.stop(libc::SIGTERM, Duration::from_millis(100));
            wait_until_gone(running).await;
            assert_eq!(marked(&marker), Vec::<i32>::new(), "{tier:?}: {script}");
        }
        bench.launcher.shutdown().await;
    }
}

pub(crate) async fn wait_until_gone(mut running: RunningProcess) {
    loop {
        let event = tokio::time::timeout(test_support::TEST_TIMEOUT, running.process.next_event()).await;
        match event.expect("the command ends") {
            ProcessEvent::Exited(_) => {}
            ProcessEvent::Gone => return,
            ProcessEvent::Lost { reason } => panic!("{reason}"),
        }
    }
}

pub(crate) fn wait_readable(fd: &OwnedFd) {
    let mut fds = [rustix::event::PollFd::new(fd, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut fds, None).unwrap();
}

/// Processes on this machine with the variable `MARK=marker`.
pub(crate) fn marked(marker: &str) -> Vec<i32> {
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
