//! Effects on open sessions while a limit is exceeded: their latency before and meanwhile, how many newcomers were
//! refused, and how long after the cause is gone a client is let in again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::http::{JSON, Server};
use crate::{call, percentile};

/// Requests of one measurement.
const CALLS: usize = 1000;
/// Newcomers knock this often, each of two.
const KNOCK_EVERY: Duration = Duration::from_millis(1);
const KNOCKERS: usize = 2;

pub(crate) fn run(bridge: &str, backend: &[String]) {
    println!("\nwhile a limit is exceeded: p50 / p99 of an open session");
    let start = |flags: &[&str]| {
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        Server::start(bridge, backend, &flags)
    };
    sessions(&start(&["--max-sessions", "4"]));
    calls(&start(&["--max-calls", "8"]));
    let probe = start(&["--metrics", "--session-isolation"]);
    drop(probe.session());
    let (memory, load) = (
        settled(&probe, "ahma_memory_bytes"),
        settled(&probe, "ahma_load_per_cpu"),
    );
    drop(probe);
    let limit = format!("{:.0}", memory + f64::from(16 << 20));
    memory_limit(&start(&[
        "--session-isolation",
        "--max-sessions",
        "1000",
        "--max-memory",
        &limit,
    ]));
    let limit = format!("{:.2}", load + 0.15);
    load_limit(&start(&["--max-load", &limit]));
}

fn sessions(server: &Server) {
    let mut open: Vec<String> = (0..4).map(|_| server.session()).collect();
    let measured = open.pop().expect("four sessions");
    let during = Measured::while_exceeded(server, &measured, || knock(server));
    during.report("--max-sessions", || {
        server.connect().send("DELETE", JSON, open.pop().as_deref(), "");
        server.try_session().is_some()
    });
}

fn calls(server: &Server) {
    let (greedy, measured) = (server.session(), server.session());
    let slow =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"ms":4000}}}"#;
    let attempt = || {
        let head = server.connect().send("POST", JSON, Some(&greedy), slow);
        head.starts_with("HTTP/1.1 503")
    };
    thread::scope(|scope| {
        // They stay open for the whole measurement; further ones are refused.
        for _ in 0..8 {
            scope.spawn(attempt);
        }
        thread::sleep(Duration::from_millis(300));
        let during = Measured::while_exceeded(server, &measured, attempt);
        during.report("--max-calls", || {
            let head = server.connect().send("POST", JSON, Some(&greedy), &call(1));
            head.starts_with("HTTP/1.1 200")
        });
    });
}

fn memory_limit(server: &Server) {
    let measured = server.session();
    // Each session is a process of its own.
    let mut open = Vec::new();
    while let Some(session) = server.try_session() {
        open.push(session);
        thread::sleep(Duration::from_millis(20));
    }
    let during = Measured::while_exceeded(server, &measured, || knock(server));
    for session in open {
        server.connect().send("DELETE", JSON, Some(&session), "");
    }
    during.report("--max-memory", || server.try_session().is_some());
}

fn load_limit(server: &Server) {
    let measured = server.session();
    let busy = AtomicBool::new(true);
    thread::scope(|scope| {
        let cpus = thread::available_parallelism().map_or(2, usize::from);
        for _ in 0..2 * cpus {
            scope.spawn(|| {
                while busy.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        while !knock(server) {
            thread::sleep(Duration::from_millis(200));
        }
        // The load average stays high for a while; the processors are free again.
        busy.store(false, Ordering::Relaxed);
    });
    let during = Measured::while_exceeded(server, &measured, || knock(server));
    during.report("--max-load", || server.try_session().is_some());
}

/// A newcomer; whether it was refused.
fn knock(server: &Server) -> bool {
    match server.try_session() {
        None => true,
        Some(session) => {
            server.connect().send("DELETE", JSON, Some(&session), "");
            false
        }
    }
}

struct Measured {
    before: Vec<Duration>,
    during: Vec<Duration>,
    refused: usize,
    let_in: usize,
}

impl Measured {
    /// Measures an open session in peace, then while `attempt` is made over and over.
    fn while_exceeded(server: &Server, session: &str, attempt: impl Fn() -> bool + Sync) -> Self {
        let before = latencies(server, session);
        let (over, refused, let_in) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        let during = thread::scope(|scope| {
            for _ in 0..KNOCKERS {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let count = if attempt() { &refused } else { &let_in };
                        count.fetch_add(1, Ordering::Relaxed);
                        thread::sleep(KNOCK_EVERY);
                    }
                });
            }
            let during = latencies(server, session);
            over.store(true, Ordering::Relaxed);
            during
        });
        Self {
            before,
            during,
            refused: refused.into_inner(),
            let_in: let_in.into_inner(),
        }
    }

    fn report(mut self, limit: &str, mut is_let_in: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !is_let_in() {
            thread::sleep(Duration::from_millis(20));
        }
        println!(
            "{limit:<16} before {:.3} / {:.3} ms   meanwhile {:.3} / {:.3} ms   {} refused, {} let in   open again after {:.1} s",
            percentile(&mut self.before, 50),
            percentile(&mut self.before, 99),
            percentile(&mut self.during, 50),
            percentile(&mut self.during, 99),
            self.refused,
            self.let_in,
            begin.elapsed().as_secs_f64(),
        );
    }
}

fn latencies(server: &Server, session: &str) -> Vec<Duration> {
    let mut connection = server.connect();
    (0..CALLS)
        .map(|id| {
            let start = Instant::now();
            connection.post(JSON, session, &call(id));
            start.elapsed()
        })
        .collect()
}

/// A metric once it has been sampled.
fn settled(server: &Server, name: &str) -> f64 {
    loop {
        let value = server.metric(name);
        if value > 0.0 {
            return value;
        }
        thread::sleep(Duration::from_millis(100));
    }
}
