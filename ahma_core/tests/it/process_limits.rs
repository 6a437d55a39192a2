//! Limits on processes: bombs are bounded and ended, and ordinary commands do not notice.

use std::time::Duration;

use ahma_core::{jail::ExitStatus, sandbox::Tier, shell::Stdio};

use crate::{
    escape,
    processes::{Bench, collect, marked, on_this_kernel, wait_until_gone},
};

/// The kernel counts by user namespace, which all operations share.
#[tokio::test(flavor = "multi_thread")]
async fn operations_with_a_limit_of_their_own_do_not_share_another() {
    const MAX_PROCESSES: u64 = 320;
    let bench = Bench::with_max_processes(Tier::Full, MAX_PROCESSES as u32);
    let (output, _) = bench
        .run("cat /proc/sys/kernel/pid_max; ulimit -u | sed s/unlimited/99999999/")
        .await;
    let numbers: Vec<u64> = output.lines().map(|line| line.parse().unwrap()).collect();
    let given = rustix::process::getrlimit(rustix::process::Resource::Nproc)
        .current
        .unwrap_or(u64::MAX);
    // The setting belongs to the pid namespace since Linux 6.14.
    let shared = if numbers[0] == MAX_PROCESSES {
        64 * MAX_PROCESSES
    } else {
        MAX_PROCESSES
    };
    assert_eq!(numbers[1], shared.min(given), "{output}");
    bench.launcher.shutdown().await;
}

/// Each kind multiplies or moves on as fast as it can; the last one is never the same process for long. They begin with
/// `exec`, so that all of them have the mark in the environment that the kernel shows.
const BOMBS: [&str; 3] = [
    "exec bash -c 'bomb() { bomb | bomb & }; bomb; sleep 1000'",
    "exec python3 -c 'import os,time
while True:
    try: os.fork()
    except OSError: time.sleep(1)'",
    MOVING_BOMB,
];

/// Eight processes, of which each starts the next and ends.
const MOVING_BOMB: &str = "exec python3 -c 'import os,time
for n in range(3): os.fork()
while True:
    try:
        if os.fork(): os._exit(0)
    except OSError: time.sleep(1)'";

/// The kernel limits processes: in the full tier (those of root since Linux 6.14, by a limit of the pid namespace), and
/// elsewhere where a cgroup is delegated.
async fn kernel_limits_processes(bench: &Bench, max_processes: u32) -> bool {
    let (output, _) = bench.run("cat /proc/sys/kernel/pid_max /proc/self/cgroup").await;
    match bench.launcher.tier() {
        Tier::Full => {
            !rustix::process::getuid().is_root() || output.starts_with(&format!("{max_processes}\n"))
        }
        Tier::Core | Tier::Seatbelt | Tier::Off => output.contains("/ahma-"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_is_bounded_and_ends_with_its_command() {
    const MAX_PROCESSES: u32 = 320;
    const GROWS: usize = 1;
    for tier in on_this_kernel(&[Tier::Full, Tier::Core]) {
        let bench = Bench::with_max_processes(tier, MAX_PROCESSES);
        if !kernel_limits_processes(&bench, MAX_PROCESSES).await {
            eprintln!(
                "skipped in the {} tier: the kernel does not limit processes here",
                tier.name()
            );
            continue;
        }
        for (number, bomb) in BOMBS.into_iter().enumerate() {
            let marker = format!("ahma-bomb-{}-{tier:?}-{number}", std::process::id());
            let running = bench.launch_marked(&marker, bomb).await;
            // Of the others one dies out when it is refused a process, and one never has many.
            if number == GROWS {
                test_support::wait_for("the bomb to grow", || {
                    (marked(&marker).len() > MAX_PROCESSES as usize / 2).then_some(())
                });
            }
            for _ in 0..5 {
                let found = marked(&marker).len();
                assert!(
                    found <= MAX_PROCESSES as usize,
                    "{tier:?}: {bomb}: {found} processes"
                );
                assert_eq!(bench.run("echo alive").await.0, "alive\n", "{tier:?}: {bomb}");
            }
            running.process.stop(libc::SIGTERM, Duration::from_millis(100));
            wait_until_gone(running).await;
            assert_eq!(marked(&marker), Vec::<i32>::new(), "{tier:?}: {bomb}");
        }
        bench.launcher.shutdown().await;
    }
}

/// Without a limit of the kernel the processes are counted, so these bombs bound themselves.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_processes_end_their_operation_where_they_are_only_counted() {
    const MAX_PROCESSES: u32 = 320;
    const TOO_MANY: [&str; 2] = [
        "exec python3 -c 'import os,time
for n in range(10): os.fork()
time.sleep(1000)'",
        "exec python3 -c 'import threading
end = threading.Event()
for n in range(1000): threading.Thread(target=end.wait).start()'",
    ];
    for tier in [Tier::Core, Tier::Seatbelt, Tier::Off] {
        let bench = Bench::with_max_processes(tier, MAX_PROCESSES);
        if kernel_limits_processes(&bench, MAX_PROCESSES).await {
            continue;
        }
        for (number, script) in TOO_MANY.into_iter().enumerate() {
            let marker = format!("ahma-many-{}-{tier:?}-{number}", std::process::id());
            let running = bench.launch_marked(&marker, script).await;
            wait_until_gone(running).await;
            assert_eq!(marked(&marker), Vec::<i32>::new(), "{tier:?}: {script}");
            assert_eq!(bench.run("echo alive").await.0, "alive\n", "{tier:?}: {script}");
        }
        bench.launcher.shutdown().await;
    }
}

/// A sweep finds processes by walking the tree, and these leave it as it walks.
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_move_on_do_not_outrun_the_sweep() {
    for tier in [Tier::Core, Tier::Seatbelt, Tier::Off] {
        let bench = Bench::start(tier);
        for round in 0..escape::rounds() {
            let marker = format!("ahma-moving-{}-{tier:?}-{round}", std::process::id());
            let running = bench.launch_marked(&marker, MOVING_BOMB).await;
            running.process.stop(libc::SIGTERM, Duration::from_millis(50));
            wait_until_gone(running).await;
            assert_eq!(marked(&marker), Vec::<i32>::new(), "{tier:?}");
        }
        bench.launcher.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_count_as_processes() {
    const MAX_PROCESSES: u32 = 320;
    const THREADS: &str = "exec python3 -c 'import os, threading
end = threading.Event(); made = 0
try:
    while made < 2000: threading.Thread(target=end.wait).start(); made += 1
except RuntimeError: pass
print(made); end.set()'";
    let bench = Bench::with_max_processes(Tier::Full, MAX_PROCESSES);
    let (output, _) = bench.run(THREADS).await;
    let made: u32 = output.trim().parse().unwrap_or_else(|_| panic!("{output}"));
    assert!((MAX_PROCESSES / 2..=MAX_PROCESSES).contains(&made), "{made}");
    bench.launcher.shutdown().await;
}

/// Takes what the tests leave of a processor, and some of what they want. Ends with the test.
struct BusyLoop(std::process::Child);

impl BusyLoop {
    fn start() -> Self {
        let mut command = std::process::Command::new("nice");
        let busy = ["-n", "10", "sh", "-c", "while :; do :; done"];
        Self(command.args(busy).spawn().unwrap())
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Children of a pipeline end while the shell forks the next: their signals must not make a fork fail.
#[tokio::test(flavor = "multi_thread")]
async fn no_fork_of_a_pipeline_fails_on_a_busy_machine() {
    let count = 50 * escape::rounds();
    let pipelines = format!(
        "n=0; while [ $n -lt {count} ]; do [ \"$(echo a | cat | cat | cat | cat)\" = a ] || echo failed; n=$((n+1)); done"
    );
    let _busy: Vec<_> = (0..2).map(|_| BusyLoop::start()).collect();
    for tier in on_this_kernel(&[Tier::Full, Tier::Core, Tier::Seatbelt]) {
        let bench = Bench::start(tier);
        for shell in ["dash", "bash"] {
            if !test_support::needs(shell, &["-c", "true"], "apt-get install bash dash") {
                continue;
            }
            let words = [shell, "-c", &pipelines];
            let found = collect(bench.launch_words(&words, Stdio::Merged).await).await;
            let expected = (String::new(), Some(ExitStatus::Code(0)));
            assert_eq!(found, expected, "{tier:?}: {shell}");
        }
        bench.launcher.shutdown().await;
    }
}
