//! Two builds of the server turn by turn in one run, so that whatever else the machine does meets both alike.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    BRIDGES, Bench, PACE, What,
    client::{Listening, Session},
    pipelined,
    processor_time::ProcessGroup,
    sessions,
    table::Table,
    timed_calls,
};

/// Each is short, so that both builds meet the same minutes of a busy machine.
const TURNS: usize = 12;

/// Parts of one turn, in calls; sessions and starts are fewer, since they take longer.
const PACED: usize = 40;
const RAPID: usize = 150;
const IN_FLIGHT: usize = 300;
const STARTS: usize = 4;
const SESSIONS: usize = 8;
const CALLING_SESSIONS: usize = 3;
const HTTP_ROUNDS: usize = 96;

/// One build, with a session and a listener that last for the whole run.
struct Build {
    program: PathBuf,
    session: Session,
    _tools: tempfile::TempDir,
    group: Option<ProcessGroup>,
    listening: Listening,
    figures: Figures,
}

#[derive(Default)]
struct Figures {
    paced: Vec<Duration>,
    rapid: Vec<Duration>,
    program: Vec<Duration>,
    background: Vec<Duration>,
    starts: Vec<Duration>,
    sessions: Vec<Duration>,
    http: [Vec<Duration>; 2],
    http_rates: [f64; 2],
    /// Time of all parts with calls in flight, and of all sessions with their ends.
    in_flight: Duration,
    whole_sessions: Duration,
    calling_sessions: Duration,
    /// Processor time in milliseconds of the parts of that name.
    rapid_ms: f64,
    program_ms: f64,
    in_flight_ms: f64,
}

impl Build {
    fn start(program: &Path) -> Self {
        let (session, tools) = What::Shell.start(program, &["--max-operations", "16"]);
        let listening = Listening::start(program, &sessions::FLAGS, None);
        sessions::open(&listening).0.end();
        Self {
            group: ProcessGroup::around(session.process.id()),
            program: program.to_owned(),
            session,
            _tools: tools,
            listening,
            figures: Figures::default(),
        }
    }

    fn used_ms(&self) -> f64 {
        self.group.as_ref().map_or(0.0, ProcessGroup::used_ms)
    }

    fn turn(&mut self) {
        let paced = timed_calls(What::Shell, &mut self.session, PACE, PACED);
        self.figures.paced.extend(paced);
        let before = self.used_ms();
        let rapid = timed_calls(What::Shell, &mut self.session, Duration::ZERO, RAPID);
        self.figures.rapid.extend(rapid);
        // The processes that replace the last ones are started a moment later.
        std::thread::sleep(PACE);
        self.figures.rapid_ms += self.used_ms() - before;
        let before = self.used_ms();
        let program = timed_calls(What::Tool, &mut self.session, Duration::ZERO, RAPID);
        self.figures.program.extend(program);
        std::thread::sleep(PACE);
        self.figures.program_ms += self.used_ms() - before;
        for _ in 0..PACED {
            std::thread::sleep(PACE);
            self.figures.background.push(in_background(&mut self.session));
        }
        std::thread::sleep(PACE);
        let before = self.used_ms();
        self.figures.in_flight += pipelined(What::Shell, &mut self.session, 16, IN_FLIGHT);
        std::thread::sleep(PACE);
        self.figures.in_flight_ms += self.used_ms() - before;
        for _ in 0..STARTS {
            let begun = Instant::now();
            let mut session = Session::start(&self.program, &[], None);
            session.request("tools/list", json!({}));
            self.figures.starts.push(begun.elapsed());
        }
        let begun = Instant::now();
        for _ in 0..SESSIONS {
            let (http, elapsed) = sessions::open(&self.listening);
            http.end();
            self.figures.sessions.push(elapsed);
        }
        self.figures.whole_sessions += begun.elapsed();
        let begun = Instant::now();
        for _ in 0..CALLING_SESSIONS {
            sessions::with_a_call(&self.listening);
        }
        self.figures.calling_sessions += begun.elapsed();
        let bench = Bench {
            server: self.program.clone(),
            rounds: HTTP_ROUNDS,
            short: false,
        };
        for (place, (_, flags)) in BRIDGES.iter().enumerate() {
            self.figures.http[place].extend(bench.http(flags, Duration::ZERO, HTTP_ROUNDS));
            self.figures.http_rates[place] += bench.http_rate(flags, 16) / TURNS as f64;
        }
    }

    fn rows(&self, name: &str, table: &mut Table, floor: &[Duration]) {
        let figures = &self.figures;
        let floor = Some(floor);
        table.times(&format!("{name}: sync call, 10 ms apart"), &figures.paced, floor);
        table.times(&format!("{name}: sync call, back to back"), &figures.rapid, floor);
        table.times(
            &format!("{name}: sync call of a tool, back to back"),
            &figures.program,
            floor,
        );
        table.times(
            &format!("{name}: answer of a call in the background, 10 ms apart"),
            &figures.background,
            floor,
        );
        if self.group.is_some() {
            let each = |used: f64, calls: usize| used / (TURNS * calls) as f64;
            table.figure(
                &format!("{name}: processor time of a call, back to back"),
                each(figures.rapid_ms, RAPID),
                "ms",
            );
            table.figure(
                &format!("{name}: processor time of a tool's call, back to back"),
                each(figures.program_ms, RAPID),
                "ms",
            );
            table.figure(
                &format!("{name}: processor time of a call, 16 in flight"),
                each(figures.in_flight_ms, IN_FLIGHT),
                "ms",
            );
        }
        let per_second = |count: usize, time: Duration| (TURNS * count) as f64 / time.as_secs_f64();
        table.rate(
            &format!("{name}: sync calls, 16 in flight"),
            per_second(IN_FLIGHT, figures.in_flight),
            None,
        );
        table.times(&format!("{name}: start to tools/list"), &figures.starts, None);
        table.times(
            &format!("{name}: isolated session to tools/list"),
            &figures.sessions,
            None,
        );
        table.rate(
            &format!("{name}: sessions one by one, with their ends"),
            per_second(SESSIONS, figures.whole_sessions),
            None,
        );
        table.rate(
            &format!("{name}: the same, with a call in each"),
            per_second(CALLING_SESSIONS, figures.calling_sessions),
            None,
        );
        for (place, (how, _)) in BRIDGES.iter().enumerate() {
            table.times(
                &format!("{name}: sync call over HTTP, back to back, {how}"),
                &figures.http[place],
                floor,
            );
            table.rate(
                &format!("{name}: sync calls over HTTP, 16 clients, {how}"),
                figures.http_rates[place],
                None,
            );
        }
    }
}

/// Time until a call that is not waited for is answered.
fn in_background(session: &mut Session) -> Duration {
    let hi = json!({"command": "echo hi", "execution_mode": "asynchronous"});
    let begun = Instant::now();
    let answer = session.call("sandboxed_shell", hi);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    begun.elapsed()
}

/// Measures `servers`, named by their place in the list.
pub(crate) fn measure(
    table: &mut Table,
    servers: &[PathBuf],
    floor: impl Fn(Duration, usize) -> Vec<Duration>,
) {
    let mut builds: Vec<Build> = servers.iter().map(|server| Build::start(server)).collect();
    let (mut floors, mut paced_floors) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        floors.extend(floor(Duration::ZERO, RAPID));
        paced_floors.extend(floor(PACE, PACED));
        // None is always the first.
        builds.rotate_left(turn % servers.len());
        builds.iter_mut().for_each(Build::turn);
    }
    table.times("bare posix_spawn of sh -c 'echo hi'", &floors, None);
    table.times(
        "bare posix_spawn of sh -c 'echo hi', 10 ms apart",
        &paced_floors,
        Some(&floors),
    );
    builds.sort_by_key(|build| servers.iter().position(|server| *server == build.program));
    for (number, build) in builds.iter().enumerate() {
        build.rows(&format!("{}", number + 1), table, &floors);
    }
}
